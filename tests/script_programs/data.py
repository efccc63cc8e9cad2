"""In: torch's datasets, samplers and loaders. Out: every batch as JSON; nothing here is random."""

import json
from collections import namedtuple

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    StackDataset,
    Subset,
    TensorDataset,
    get_worker_info,
)
from torch.utils.data.distributed import DistributedSampler

Pair = namedtuple("Pair", "left right")
KINDS = ("flat", "dict", "nested", "pair", "text", "float", "bool", "numpy", "scalar")


class Items(Dataset):
    def __init__(self, kind, size=5):
        self.kind, self.size = kind, size

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        x = np.full((2,), i, dtype=np.float32)
        if self.kind == "dict":
            return {"x": x, "label": i, "more": {"y": float(i)}}
        if self.kind == "nested":
            return x, (i, [x, i * 0.5])
        if self.kind == "pair":
            return Pair(x, i)
        return {
            "flat": (x, i), "text": (x, "ab"[i % 2]), "float": i * 0.5, "bool": i % 2 == 0,
            "numpy": np.arange(i, i + 3), "scalar": np.float64(i),
        }[self.kind]  # fmt: skip


class Stream(IterableDataset):
    def __iter__(self):
        assert get_worker_info() is None
        return iter(range(5))


def plain(value):
    if isinstance(value, torch.Tensor):
        return [str(value.dtype).split(".")[-1].lower(), list(value.shape), value.tolist()]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


def batches(loader):
    return [plain(batch) for batch in loader]


def total(items):
    return {"count": len(items), "sum": sum(int(label) for _, label in items)}


def main():
    found = {kind: batches(DataLoader(Items(kind), batch_size=2)) for kind in KINDS}
    data = Items("flat")
    last = DataLoader(data, batch_size=2, drop_last=True, num_workers=0, pin_memory=False)
    found["dropped"] = [batches(last), len(last), len(last.dataset), last.batch_size]
    found["stream"] = batches(DataLoader(Stream(), batch_size=2))
    found["chained"] = batches(DataLoader(ChainDataset([Stream(), Stream()]), batch_size=4))
    found["alone"] = batches(DataLoader(Items("numpy"), batch_size=None))
    found["collated"] = batches(DataLoader(data, batch_size=2, collate_fn=total))
    chosen = BatchSampler(SequentialSampler(data), 3, False)
    found["chosen"] = batches(DataLoader(data, batch_sampler=chosen))
    found["joined"] = batches(DataLoader(ConcatDataset([data, Subset(data, [3, 1])]), batch_size=3))
    stacked = StackDataset(Items("numpy"), Items("flat"))
    found["stacked"] = batches(DataLoader(stacked, batch_size=2))
    tensors = TensorDataset(torch.arange(7), torch.ones(7, 2))
    for rank in range(3):
        sampler = DistributedSampler(tensors, num_replicas=3, rank=rank, shuffle=False)
        loader = DataLoader(tensors, batch_size=2, sampler=sampler)
        loader.sampler.set_epoch(1)
        found[f"rank {rank}"] = [batches(loader), len(loader), len(sampler)]
    return found


if __name__ == "__main__":
    print(json.dumps(main()))
