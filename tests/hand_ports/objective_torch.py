"""In: nothing. Out: losses, and models that return their loss, in torch."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, alpha=0.25):
        super().__init__()
        self.gamma, self.alpha = gamma, alpha

    def forward(self, logits, targets):
        targets = targets.float()
        p = torch.sigmoid(logits)
        ce = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        p_t = p * targets + (1 - p) * (1 - targets)
        alpha_t = self.alpha * targets + (1 - self.alpha) * (1 - targets)
        return (alpha_t * ce * (1 - p_t) ** self.gamma).mean()


class DiceCE(nn.Module):
    def __init__(self, smooth=1.0, label_smoothing=0.1):
        super().__init__()
        self.smooth = smooth
        self.ce = nn.CrossEntropyLoss(label_smoothing=label_smoothing, ignore_index=255)

    def forward(self, logits, mask):
        probs = logits.softmax(1)
        onehot = F.one_hot(mask, logits.shape[1]).permute(0, 3, 1, 2).float()
        inter = (probs * onehot).sum((2, 3))
        union = probs.sum((2, 3)) + onehot.sum((2, 3))
        dice = 1 - ((2 * inter + self.smooth) / (union + self.smooth)).mean()
        return self.ce(logits, mask) + dice


class Distill(nn.Module):
    """A student learns what a frozen teacher says."""

    def __init__(self, t=3.0):
        super().__init__()
        self.student = nn.Linear(12, 5)
        self.teacher = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 5))
        self.t = t

    def forward(self, x, y):
        with torch.no_grad():
            soft = F.softmax(self.teacher(x) / self.t, dim=1)
        out = self.student(x)
        kl = F.kl_div(F.log_softmax(out / self.t, dim=1), soft, reduction="batchmean")
        return 0.7 * kl * self.t**2 + 0.3 * F.cross_entropy(out, y)


class Clip(nn.Module):
    """Two towers and a learned temperature."""

    def __init__(self):
        super().__init__()
        self.visual = nn.Linear(20, 8, bias=False)
        self.textual = nn.Linear(12, 8, bias=False)
        self.logit_scale = nn.Parameter(torch.tensor(2.6592))

    def forward(self, image, text):
        image = F.normalize(self.visual(image), dim=-1)
        text = F.normalize(self.textual(text), dim=-1)
        logits = self.logit_scale.exp().clamp(max=100) * image @ text.t()
        labels = torch.arange(len(logits))
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


class Regularised(nn.Module):
    """A loss with its own weight decay, of matrices only."""

    def __init__(self, decay=1e-2):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(6, 10), nn.Linear(10, 1)
        self.decay = decay

    def forward(self, x, y):
        out = self.fc2(torch.tanh(self.fc1(x))).flatten()
        penalty = sum(p.pow(2).sum() for n, p in self.named_parameters() if "bias" not in n)
        return F.smooth_l1_loss(out, y, beta=0.5) + self.decay * penalty


class Triplet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(9, 16), nn.ELU(), nn.Linear(16, 4))
        self.loss = nn.TripletMarginLoss(margin=0.5)

    def forward(self, anchor, positive, negative):
        return self.loss(self.embed(anchor), self.embed(positive), self.embed(negative))


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(7, 16), nn.Tanh())
        self.actor = nn.Linear(16, 3)
        self.critic = nn.Linear(16, 1)

    def forward(self, state, action, reward):
        h = self.body(state)
        logp = F.log_softmax(self.actor(h), dim=-1)
        value = self.critic(h).squeeze(-1)
        advantage = reward - value.detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        chosen = logp.gather(1, action.unsqueeze(1)).squeeze(1)
        entropy = -(logp.exp() * logp).sum(-1).mean()
        policy = -(chosen * advantage).mean()
        return policy + 0.5 * F.mse_loss(value, reward) - 0.01 * entropy
