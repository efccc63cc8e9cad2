"""In: a model. Out: losses while an image is optimized, not the model (style transfer)."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class VGGish(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(3, 4, 3, padding=1)
        self.c2 = nn.Conv2d(4, 6, 3, padding=1)

    def forward(self, x):
        a = F.relu(self.c1(x))
        b = F.relu(self.c2(F.max_pool2d(a, 2)))
        return a, b


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    G = torch.mm(features, features.t())
    return G.div(a * b * c * d)


def build():
    return VGGish()


def run(cnn):
    rng = np.random.RandomState(13)
    content_img = torch.from_numpy(rng.rand(1, 3, 8, 8).astype(np.float32))
    style_img = torch.from_numpy(rng.rand(1, 3, 8, 8).astype(np.float32))
    cnn.eval()
    for p in cnn.parameters():
        p.requires_grad_(False)
    content_target = cnn(content_img)[1].detach()
    style_targets = [gram_matrix(f).detach() for f in cnn(style_img)]
    input_img = content_img.clone().requires_grad_(True)
    optimizer = optim.Adam([input_img], lr=0.05)
    losses = []
    for _step in range(6):
        with torch.no_grad():
            input_img.clamp_(0, 1)
        optimizer.zero_grad()
        feats = cnn(input_img)
        content_loss = F.mse_loss(feats[1], content_target)
        style_score = 0
        for index, f in enumerate(feats):
            style_score += F.mse_loss(gram_matrix(f), style_targets[index])
        loss = 1000 * style_score + content_loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "img": input_img.detach().mean().item()}
