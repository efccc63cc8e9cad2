"""A word language model whose output layer is the embedding; its state goes from chunk to chunk."""

import math
import mindspore as ms
from mindspore import nn, ops
from mindspore.common import initializer
from mindspore.experimental import optim
from torch_helpers import ClippedTrainStep, CrossEntropyLoss, LSTM, parameters

import numpy as np


class LanguageModel(nn.Cell):
    def __init__(self, vocab=30, dim=12):
        super().__init__()
        self.encoder = nn.Embedding(vocab, dim, embedding_table=initializer.Normal(1.0))
        self.rnn = LSTM(dim, dim, num_layers=1)
        self.decoder = nn.Dense(dim, vocab)
        self.decoder.weight = self.encoder.embedding_table
        self.vocab = vocab

    def construct(self, tokens, hidden):
        output, hidden = self.rnn(self.encoder(tokens), hidden)
        return self.decoder(output).view(-1, self.vocab), hidden

    def init_hidden(self, batch):
        weight = next(parameters(self))
        return ops.zeros((1, batch, 12), dtype=weight.dtype), ops.zeros((1, batch, 12), dtype=weight.dtype)


def repackage_hidden(hidden):
    """The state without the steps that made it."""
    if isinstance(hidden, ms.Tensor):
        return ops.stop_gradient(hidden)
    return tuple(repackage_hidden(h) for h in hidden)


def text(length, batch, seed):
    rng = np.random.RandomState(seed)
    start = rng.randint(0, 30, batch)
    steps = np.arange(length)[:, None] * (1 + np.arange(batch) % 3)
    return ms.Tensor.from_numpy(((start + steps) % 30).astype(np.int64))


def build():
    return LanguageModel()


class NetWithLoss(nn.Cell):
    def __init__(self, model, criterion):
        super().__init__(auto_prefix=False)
        self.model = model
        self.criterion = criterion

    def construct(self, tokens, hidden, targets):
        output, hidden = self.model(tokens, hidden)
        loss = self.criterion(output, targets)
        return loss, hidden


def run(model, epochs=2, bptt=5):
    data = text(61, 4, seed=4)
    criterion = CrossEntropyLoss()
    optimizer = optim.SGD(model.trainable_params(), lr=1.0)
    losses = []
    train_net = ClippedTrainStep(NetWithLoss(model, criterion), optimizer, max_norm=0.25, has_aux=True)
    for epoch in range(epochs):
        model.set_train(True)
        hidden = model.init_hidden(4)
        for i in range(0, data.shape[0] - 1, bptt):
            tokens = data[i : i + bptt]
            targets = data[i + 1 : i + 1 + bptt].reshape(-1)
            hidden = repackage_hidden(hidden)
            loss, hidden = train_net(tokens, hidden, targets)
            losses.append(loss.item())
        print(f"epoch {epoch}: perplexity {math.exp(losses[-1]):.2f}")
    return losses


if __name__ == "__main__":
    ms.set_seed(0)
    run(build())
