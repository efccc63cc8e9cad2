"""Fine-tuning as with BERT: decay left off biases and norms, warm-up, gradients clipped by norm."""

import numpy as np
import mindspore as ms
from mindspore import nn, ops
from mindspore.experimental import optim
from torch_helpers import ClippedTrainStep, CrossEntropyLoss, Embedding, MultiheadAttention, bitwise_not, last_lr, named_parameters, of_epoch


class SentenceEncoder(nn.Cell):
    def __init__(self, vocab=40, dim=16, classes=2):
        super().__init__()
        self.embedding = Embedding(vocab, dim, padding_idx=0)
        self.position = ms.Parameter(ops.zeros((1, 12, dim)))
        self.attention = MultiheadAttention(dim, 2, batch_first=True)
        self.norm1 = nn.LayerNorm((dim,), epsilon=1e-05)
        self.mlp = nn.SequentialCell(nn.Dense(dim, 32), nn.GELU(approximate=False), nn.Dense(32, dim))
        self.norm2 = nn.LayerNorm((dim,), epsilon=1e-05)
        self.classifier = nn.Dense(dim, classes)

    def construct(self, input_ids, mask):
        x = self.embedding(input_ids) + self.position[:, : input_ids.shape[1]]
        h = self.norm1(x)
        x = x + self.attention(h, h, h, key_padding_mask=bitwise_not(mask), need_weights=False)[0]
        x = x + self.mlp(self.norm2(x))
        weight = mask.unsqueeze(-1).float()
        return self.classifier((x * weight).sum(1) / weight.sum(1))


def get_linear_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps):
    def lr_lambda(current_step):
        if current_step < num_warmup_steps:
            return float(current_step) / float(max(1, num_warmup_steps))
        left = num_training_steps - current_step
        return max(0.0, left / float(max(1, num_training_steps - num_warmup_steps)))

    return optim.lr_scheduler.LambdaLR(optimizer, of_epoch(lr_lambda))


def sentences(steps, seed):
    rng = np.random.RandomState(seed)
    for _ in range(steps):
        ids = rng.randint(1, 40, (6, 12)).astype(np.int64)
        lengths = rng.randint(4, 13, 6)
        mask = np.arange(12)[None] < lengths[:, None]
        labels = (ids[:, 0] > 20).astype(np.int64)
        yield ms.Tensor.from_numpy(ids * mask), ms.Tensor.from_numpy(mask), ms.Tensor.from_numpy(labels)


def build():
    return SentenceEncoder().set_train()


class NetWithLoss(nn.Cell):
    def __init__(self, model, loss_fct):
        super().__init__(auto_prefix=False)
        self.model = model
        self.loss_fct = loss_fct

    def construct(self, input_ids, mask, labels):
        logits = self.model(input_ids, mask)
        loss = self.loss_fct(logits, labels)
        return loss


def run(model, steps=24):
    no_decay = ("bias", "norm1.weight", "norm2.weight")
    grouped = [
        {
            "params": [p for n, p in named_parameters(model) if not n.endswith(no_decay)],
            "weight_decay": 0.01,
        },
        {
            "params": [p for n, p in named_parameters(model) if n.endswith(no_decay)],
            "weight_decay": 0.0,
        },
    ]
    optimizer = optim.AdamW(grouped, lr=2e-2, eps=1e-6)
    scheduler = get_linear_schedule_with_warmup(optimizer, 4, steps)
    loss_fct = CrossEntropyLoss()
    model.set_train(True)
    losses = []
    train_net = ClippedTrainStep(NetWithLoss(model, loss_fct), optimizer, max_norm=0.5, returns_norm=True)
    for step, (input_ids, mask, labels) in enumerate(sentences(steps, seed=2)):
        loss, grad_norm = train_net(input_ids, mask, labels)
        scheduler.step()
        losses += [loss.item(), grad_norm.item()]
        if step % 8 == 0:
            print(f"step {step}: loss {loss.item():.4f}, lr {last_lr(scheduler)[0]:.5f}")
    return losses


if __name__ == "__main__":
    ms.set_seed(0)
    run(build())
