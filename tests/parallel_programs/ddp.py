"""In: nothing. Out: losses and weights of ten steps of two processes, printed by rank 0 as JSON."""

import json
import os

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Numbers(Dataset):
    def __init__(self, count):
        rng = np.random.RandomState(3)
        self.x = rng.randn(count, 6).astype(np.float32)
        self.y = rng.randint(0, 3, count)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return torch.tensor(self.x[index]), int(self.y[index])


class Net(nn.Module):
    def __init__(self, rank):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.norm = nn.BatchNorm1d(8)
        self.last = nn.Linear(8, 3)
        # another start in every process: DDP makes them those of rank 0
        rng = np.random.RandomState(rank)
        with torch.no_grad():
            for linear in (self.first, self.last):
                linear.weight.copy_(torch.tensor(rng.randn(*linear.weight.shape) * 0.3).float())
                linear.bias.copy_(torch.tensor(rng.randn(*linear.bias.shape) * 0.1).float())

    def forward(self, x):
        return self.last(torch.relu(self.norm(self.first(x))))


def train(net, loader, sampler, rank, world):
    losses, orders = [], []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net.train()
    for epoch in range(2):
        sampler.set_epoch(epoch)
        orders.append(list(sampler))
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            total = loss.detach().clone()
            dist.all_reduce(total, op=dist.ReduceOp.SUM)
            losses.append(total.item() / world)
    return losses, orders


def accumulate(net, data, rank):
    """Two backward passes for each update, on another part of the data in each process."""
    losses = []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    net.train()
    for step in range(3):
        optimizer.zero_grad()
        for part in range(2):
            start = 4 * (2 * step + part) + 2 * rank
            x, y = torch.tensor(data.x[start : start + 4]), torch.tensor(data.y[start : start + 4])
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
    return losses


def evaluate(net, data):
    net.eval()
    x = torch.tensor(data.x)
    with torch.no_grad():
        return net(x).sum(0)


def main():
    if dist.is_available() and not dist.is_initialized():
        dist.init_process_group(backend="gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    assert int(os.environ["RANK"]) == rank and int(os.environ.get("WORLD_SIZE", 1)) == world
    local_rank = int(os.environ["LOCAL_RANK"])
    net = DDP(Net(rank))
    data = Numbers(38)
    sampler = DistributedSampler(data, shuffle=True, seed=5)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    losses, orders = train(net, loader, sampler, rank, world)
    out = evaluate(net, data)
    every = [torch.zeros(3) for _ in range(world)]
    dist.all_gather(every, out)
    largest = torch.tensor([float(local_rank + 1), 2.0])
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    sent = torch.tensor([rank + 5])
    dist.broadcast(sent, src=1)
    least = torch.tensor([float(rank + 2), 7.0 - rank])
    dist.all_reduce(least, op=dist.ReduceOp.MIN)
    product = torch.tensor([float(rank + 2), 3.0])
    dist.reduce(product, 0, op=dist.ReduceOp.PRODUCT)
    accumulated = accumulate(net, data, rank)
    dist.barrier()
    if rank == 0:
        weights = {k: v.numpy().ravel().tolist() for k, v in net.module.state_dict().items()}
        weights = {k: v for k, v in weights.items() if len(v) > 1}
        found = {
            "losses": losses,
            "orders": orders,
            "eval": [one.numpy().tolist() for one in every],
            "largest": largest.numpy().tolist(),
            "least": least.numpy().tolist(),
            "product": product.numpy().tolist(),
            "accumulated": accumulated,
            "sent": sent.numpy().tolist(),
            "weights": sorted(weights.values()),
        }
        print("RESULT " + json.dumps(found), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
