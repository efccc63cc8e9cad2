"""In: an encoder and a decoder. Out: their losses: the encoder's optimizer may be none."""

import numpy as np
import torch
import torch.nn as nn


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 6)
        self.decoder = nn.Linear(6, 4)


def build():
    return Both()


def clip_gradient(optimizer, grad_clip):
    for group in optimizer.param_groups:
        for param in group["params"]:
            if param.grad is not None:
                param.grad.data.clamp_(-grad_clip, grad_clip)


def train(encoder, decoder, encoder_optimizer, decoder_optimizer, batches, grad_clip=None):
    losses = []
    for x in batches:
        scores = decoder(torch.tanh(encoder(x)))
        loss = (scores - x).pow(2).mean()
        loss += 0.1 * scores.abs().mean()
        decoder_optimizer.zero_grad()
        if encoder_optimizer is not None:
            encoder_optimizer.zero_grad()
        loss.backward()
        if grad_clip is not None:
            clip_gradient(decoder_optimizer, grad_clip)
            if encoder_optimizer is not None:
                clip_gradient(encoder_optimizer, grad_clip)
        decoder_optimizer.step()
        if encoder_optimizer is not None:
            encoder_optimizer.step()
        losses.append(loss.item())
    return losses


def run(model):
    rng = np.random.RandomState(0)
    batches = [torch.from_numpy(rng.randn(5, 4).astype(np.float32)) for _ in range(4)]
    first = torch.optim.Adam(model.decoder.parameters(), lr=0.01)
    second = torch.optim.Adam(model.encoder.parameters(), lr=0.02)
    found = train(model.encoder, model.decoder, None, first, batches)
    return found + train(model.encoder, model.decoder, second, first, batches, 0.05)
