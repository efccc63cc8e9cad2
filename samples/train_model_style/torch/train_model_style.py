"""A classifier with validation accuracy, the best weights, early stopping and a schedule."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU())
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        return self.head(self.body(x))


def points(count, seed):
    """Three clouds of points that overlap."""
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 3, count)
    features = rng.randn(count, 2) + 1.5 * labels[:, None]
    return TensorDataset(torch.from_numpy(features.astype(np.float32)), torch.from_numpy(labels))


def build():
    return Net()


def run(model, epochs=20, patience=3):
    train_loader = DataLoader(points(72, seed=0), batch_size=12)
    valid_loader = DataLoader(points(40, seed=1), batch_size=10)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)
    best, waited, history, weights = 0.0, 0, [], {}
    for epoch in range(epochs):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            history.append(loss.item())
        model.eval()
        # over all held-out points
        val_loss, correct, seen = 0.0, 0, 0
        with torch.no_grad():
            for x, y in valid_loader:
                out = model(x)
                val_loss += criterion(out, y).item() * y.size(0)
                correct += (out.argmax(dim=1) == y).sum().item()
                seen += y.size(0)
        mean_loss, accuracy = val_loss / seen, correct / seen
        history += [mean_loss, accuracy]
        print(f"epoch {epoch}: accuracy {accuracy:.3f}, lr {scheduler.get_last_lr()[0]:.4f}")
        scheduler.step()
        if accuracy > best:
            best, waited = accuracy, 0
            weights = {name: value.clone() for name, value in model.state_dict().items()}
        else:
            waited += 1
        if waited >= patience:
            print("no better for", patience, "epochs")
            break
    model.load_state_dict(weights)
    return {"history": history, "best": best, "epochs": epoch + 1}


if __name__ == "__main__":
    torch.manual_seed(0)
    run(build())
