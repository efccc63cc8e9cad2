"""Fine-tuning as with BERT: decay left off biases and norms, warm-up, gradients clipped by norm."""

import numpy as np
import torch
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR


class SentenceEncoder(nn.Module):
    def __init__(self, vocab=40, dim=16, classes=2):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim, padding_idx=0)
        self.position = nn.Parameter(torch.zeros(1, 12, dim))
        self.attention = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.norm1 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 32), nn.GELU(), nn.Linear(32, dim))
        self.norm2 = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, classes)

    def forward(self, input_ids, mask):
        x = self.embedding(input_ids) + self.position[:, : input_ids.size(1)]
        h = self.norm1(x)
        x = x + self.attention(h, h, h, key_padding_mask=~mask, need_weights=False)[0]
        x = x + self.mlp(self.norm2(x))
        weight = mask.unsqueeze(-1).float()
        return self.classifier((x * weight).sum(1) / weight.sum(1))


def get_linear_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps):
    def lr_lambda(current_step):
        if current_step < num_warmup_steps:
            return float(current_step) / float(max(1, num_warmup_steps))
        left = num_training_steps - current_step
        return max(0.0, left / float(max(1, num_training_steps - num_warmup_steps)))

    return LambdaLR(optimizer, lr_lambda)


def sentences(steps, seed):
    rng = np.random.RandomState(seed)
    for _ in range(steps):
        ids = rng.randint(1, 40, (6, 12)).astype(np.int64)
        lengths = rng.randint(4, 13, 6)
        mask = np.arange(12)[None] < lengths[:, None]
        labels = (ids[:, 0] > 20).astype(np.int64)
        yield torch.from_numpy(ids * mask), torch.from_numpy(mask), torch.from_numpy(labels)


def build():
    return SentenceEncoder()


def run(model, steps=24):
    no_decay = ("bias", "norm1.weight", "norm2.weight")
    grouped = [
        {
            "params": [p for n, p in model.named_parameters() if not n.endswith(no_decay)],
            "weight_decay": 0.01,
        },
        {
            "params": [p for n, p in model.named_parameters() if n.endswith(no_decay)],
            "weight_decay": 0.0,
        },
    ]
    optimizer = AdamW(grouped, lr=2e-2, eps=1e-6)
    scheduler = get_linear_schedule_with_warmup(optimizer, 4, steps)
    loss_fct = nn.CrossEntropyLoss()
    model.train()
    losses = []
    for step, (input_ids, mask, labels) in enumerate(sentences(steps, seed=2)):
        logits = model(input_ids, mask)
        loss = loss_fct(logits, labels)
        loss.backward()
        grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        model.zero_grad()
        losses += [loss.item(), grad_norm.item()]
        if step % 8 == 0:
            print(f"step {step}: loss {loss.item():.4f}, lr {scheduler.get_last_lr()[0]:.5f}")
    return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    run(build())
