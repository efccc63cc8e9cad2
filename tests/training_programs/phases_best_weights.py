"""In: a model. Out: losses and accuracies: phases, the best weights kept, Tensors in texts."""

import copy
import time

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(6)
        self.relu = nn.ReLU(inplace=True)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(6, 2)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.avgpool(x)
        return self.fc(torch.flatten(x, 1))


def train_model(
    model, dataloaders, dataset_sizes, criterion, optimizer, scheduler, device, num_epochs=25
):
    since = time.time()
    history = []
    best_model_wts = copy.deepcopy(model.state_dict())
    best_acc = 0.0
    for epoch in range(num_epochs):
        print(f"Epoch {epoch}/{num_epochs - 1}")
        print("-" * 10)
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()
            running_loss = 0.0
            running_corrects = 0
            for inputs, labels in dataloaders[phase]:
                inputs = inputs.to(device)
                labels = labels.to(device)
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    _, preds = torch.max(outputs, 1)
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss.item() * inputs.size(0)
                running_corrects += torch.sum(preds == labels.data)
            if phase == "train":
                scheduler.step()
            epoch_loss = running_loss / dataset_sizes[phase]
            epoch_acc = running_corrects.double() / dataset_sizes[phase]
            print(f"{phase} Loss: {epoch_loss:.4f} Acc: {epoch_acc:.4f}")
            history.append([epoch_loss, epoch_acc.item()])
            if phase == "val" and epoch_acc > best_acc:
                best_acc = epoch_acc
                best_model_wts = copy.deepcopy(model.state_dict())
    time_elapsed = time.time() - since
    print(f"Training complete in {time_elapsed // 60:.0f}m {time_elapsed % 60:.0f}s")
    print(f"Best val Acc: {best_acc:4f}")
    model.load_state_dict(best_model_wts)
    return model, history


def build():
    return Net()


def run(model):
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = model.to(device)
    rng = np.random.RandomState(12)
    sets = {
        x: TensorDataset(
            torch.from_numpy(rng.randn(12, 3, 8, 8).astype(np.float32)),
            torch.from_numpy(rng.randint(0, 2, 12)),
        )
        for x in ["train", "val"]
    }
    dataloaders = {
        x: DataLoader(sets[x], batch_size=4, shuffle=False, num_workers=0) for x in ["train", "val"]
    }
    dataset_sizes = {x: len(sets[x]) for x in ["train", "val"]}
    for param in model.conv1.parameters():
        param.requires_grad = False
    optimizer_ft = optim.SGD(
        [
            {"params": model.bn1.parameters(), "lr": 1e-3, "weight_decay": 0.0},
            {"params": model.fc.parameters()},
        ],
        lr=0.05,
        momentum=0.9,
    )
    exp_lr_scheduler = lr_scheduler.StepLR(optimizer_ft, step_size=2, gamma=0.1)
    model, history = train_model(
        model,
        dataloaders,
        dataset_sizes,
        nn.CrossEntropyLoss(),
        optimizer_ft,
        exp_lr_scheduler,
        device,
        num_epochs=4,
    )
    return {"history": history, "lr": [g["lr"] for g in optimizer_ft.param_groups]}
