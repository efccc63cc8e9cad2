"""In: an encoder and a decoder whose layers have the same names. Out: the losses of joint steps."""

import numpy as np
import torch
import torch.nn as nn


class Encoder(nn.Module):
    def __init__(self, vocab=9, hidden=6):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.fc = nn.Linear(hidden, hidden)

    def forward(self, words):
        return torch.tanh(self.fc(self.embedding(words))).mean(1)


class Decoder(nn.Module):
    def __init__(self, vocab=8, hidden=6):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.fc = nn.Linear(hidden, vocab)

    def forward(self, word, state):
        return self.fc(self.embedding(word) + state)


def train(words, first, target, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion):
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    loss = criterion(decoder(first, encoder(words)), target)
    loss.backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
    return loss.item()


def build():
    return Encoder()


def run(encoder):
    decoder = Decoder()
    with torch.no_grad():
        for p in decoder.parameters():
            p.copy_(torch.sin(torch.arange(p.numel(), dtype=torch.float32)).view(p.shape))
    encoder_optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
    decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    rng = np.random.RandomState(3)
    losses = []
    for _ in range(20):
        words = torch.from_numpy(rng.randint(0, 9, (4, 5)))
        first = torch.from_numpy(rng.randint(0, 8, 4))
        target = torch.from_numpy(rng.randint(0, 8, 4))
        losses.append(
            train(words, first, target, encoder, decoder, encoder_optimizer, decoder_optimizer,
                  criterion)
        )  # fmt: skip
    return {"losses": losses}
