"""A word language model whose output layer is the embedding; its state goes from chunk to chunk."""

import math

import numpy as np
import torch
import torch.nn as nn


class LanguageModel(nn.Module):
    def __init__(self, vocab=30, dim=12):
        super().__init__()
        self.encoder = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, dim, num_layers=1)
        self.decoder = nn.Linear(dim, vocab)
        self.decoder.weight = self.encoder.weight
        self.vocab = vocab

    def forward(self, tokens, hidden):
        output, hidden = self.rnn(self.encoder(tokens), hidden)
        return self.decoder(output).view(-1, self.vocab), hidden

    def init_hidden(self, batch):
        weight = next(self.parameters())
        return weight.new_zeros(1, batch, 12), weight.new_zeros(1, batch, 12)


def repackage_hidden(hidden):
    """The state without the steps that made it."""
    if isinstance(hidden, torch.Tensor):
        return hidden.detach()
    return tuple(repackage_hidden(h) for h in hidden)


def text(length, batch, seed):
    rng = np.random.RandomState(seed)
    start = rng.randint(0, 30, batch)
    steps = np.arange(length)[:, None] * (1 + np.arange(batch) % 3)
    return torch.from_numpy(((start + steps) % 30).astype(np.int64))


def build():
    return LanguageModel()


def run(model, epochs=2, bptt=5):
    data = text(61, 4, seed=4)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    losses = []
    for epoch in range(epochs):
        model.train()
        hidden = model.init_hidden(4)
        for i in range(0, data.size(0) - 1, bptt):
            tokens = data[i : i + bptt]
            targets = data[i + 1 : i + 1 + bptt].reshape(-1)
            hidden = repackage_hidden(hidden)
            model.zero_grad()
            output, hidden = model(tokens, hidden)
            loss = criterion(output, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: perplexity {math.exp(losses[-1]):.2f}")
    return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    run(build())
