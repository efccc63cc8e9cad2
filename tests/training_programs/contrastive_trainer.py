"""In: an encoder. Out: its losses: a dictionary gives a trainer two schedules of one optimizer."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU())
        self.projector = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, x):
        return self.projector(self.backbone(x))


class SimCLR:
    def __init__(self, *args, **kwargs):
        self.model = kwargs["model"]
        self.optimizer = kwargs["optimizer"]
        self.scheduler = kwargs["scheduler"]
        self.warmup = kwargs["warmup"]
        self.batch_size = 8
        self.n_views = 2
        self.temperature = 0.5
        self.criterion = torch.nn.CrossEntropyLoss()

    def info_nce_loss(self, features):
        labels = torch.cat([torch.arange(self.batch_size) for i in range(self.n_views)], dim=0)
        labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
        features = F.normalize(features, dim=1)
        similarity_matrix = torch.matmul(features, features.T)
        mask = torch.eye(labels.shape[0], dtype=torch.bool)
        labels = labels[~mask].view(labels.shape[0], -1)
        similarity_matrix = similarity_matrix[~mask].view(similarity_matrix.shape[0], -1)
        positives = similarity_matrix[labels.bool()].view(labels.shape[0], -1)
        negatives = similarity_matrix[~labels.bool()].view(similarity_matrix.shape[0], -1)
        logits = torch.cat([positives, negatives], dim=1)
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        logits = logits / self.temperature
        return logits, labels

    def train(self, train_loader, epochs):
        history = []
        self.model.train()
        for epoch_counter in range(epochs):
            for images in train_loader:
                images = torch.cat(images, dim=0)
                features = self.model(images)
                logits, labels = self.info_nce_loss(features)
                loss = self.criterion(logits, labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                history.append(loss.item())
            if epoch_counter >= 1:
                self.scheduler.step()
            self.warmup.step()
            history += [self.scheduler.get_last_lr()[0], self.warmup.get_last_lr()[0]]
        return history


def build():
    return Encoder()


def run(model):
    rng = np.random.RandomState(6)
    loader = [
        [torch.from_numpy(rng.randn(8, 6).astype(np.float32)) for _ in range(2)] for _ in range(3)
    ]
    optimizer = torch.optim.SGD(model.parameters(), 0.05, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, T_max=len(loader), eta_min=0, last_epoch=-1
    )
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2)
    simclr = SimCLR(model=model, optimizer=optimizer, scheduler=scheduler, warmup=warmup)
    return {"history": simclr.train(loader, 3)}
