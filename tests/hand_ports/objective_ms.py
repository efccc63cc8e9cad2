"""In: nothing. Out: the losses of objective_torch.py in MindSpore; arguments make mistakes."""

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops


class SigmoidFocal(nn.LossBase):
    def __init__(self, gamma=2.0, alpha=0.25, reduction="mean"):
        super().__init__(reduction)
        self.gamma, self.alpha = gamma, alpha

    def construct(self, logits, labels):
        labels = ops.cast(labels, ms.float32)
        log_p, log_q = ops.logsigmoid(logits), ops.logsigmoid(-logits)
        p = ops.sigmoid(logits)
        one = -self.alpha * labels * ops.pow(1 - p, self.gamma) * log_p
        other = -(1 - self.alpha) * (1 - labels) * ops.pow(p, self.gamma) * log_q
        return self.get_loss(one + other)


class DiceLoss(nn.Cell):
    def __init__(self, smoothing=0.1, axes=(2, 3), squared=False):
        super().__init__()
        self.entropy = nn.CrossEntropyLoss(label_smoothing=smoothing, ignore_index=255)
        self.axes, self.squared = axes, squared

    def construct(self, predictions, mask):
        mask = mask.astype(ms.int32)
        probs = ops.softmax(predictions, 1)
        onehot = ops.one_hot(mask, predictions.shape[1], 1.0, 0.0).transpose(0, 3, 1, 2)
        inter = (probs * onehot).sum(self.axes)
        bottom = (probs**2 if self.squared else probs).sum(self.axes) + onehot.sum(self.axes)
        dice = 1 - ((2 * inter + 1.0) / (bottom + 1.0)).mean()
        return self.entropy(predictions, mask) + dice


class DistillationLoss(nn.Cell):
    def __init__(self, t=3.0, reduction="batchmean", squared=True, swapped=False):
        super().__init__()
        self.student = nn.Dense(12, 5)
        self.teacher = nn.SequentialCell(nn.Dense(12, 16), nn.ReLU(), nn.Dense(16, 5))
        self.t, self.reduction, self.squared, self.swapped = t, reduction, squared, swapped

    def construct(self, x, y):
        soft = ops.softmax(self.teacher(x) / self.t, axis=1)
        out = self.student(x)
        logp, soft = ops.log_softmax(out / self.t, axis=1), ops.stop_gradient(soft)
        if self.swapped:
            kl = (ops.exp(logp) * (logp - ops.log(soft))).sum(1).mean()
        else:
            kl = ops.kl_div(logp, soft, self.reduction)
        factor = self.t * self.t if self.squared else 1.0
        return 0.7 * kl * factor + 0.3 * ops.cross_entropy(out, y.astype(ms.int32))


class ClipNet(nn.Cell):
    def __init__(self, most=100.0, both=True, log=True):
        super().__init__()
        self.image_projection = nn.Dense(20, 8, has_bias=False)
        self.text_projection = nn.Dense(12, 8, has_bias=False)
        self.logit_scale = Parameter(Tensor(2.6592, ms.float32), name="logit_scale")
        self.l2 = ops.L2Normalize(axis=-1)
        self.most, self.both, self.log = most, both, log

    def construct(self, image, text):
        image = self.l2(self.image_projection(image))
        text = self.l2(self.text_projection(text))
        scale = ops.exp(self.logit_scale) if self.log else self.logit_scale
        scale = ops.clamp(scale, max=self.most)
        logits = ops.matmul(image, text.T) * scale
        labels = ops.arange(logits.shape[0]).astype(ms.int32)
        loss = ops.cross_entropy(logits, labels)
        return (loss + ops.cross_entropy(logits.T, labels)) / 2 if self.both else loss


class WithPenalty(nn.Cell):
    def __init__(self, biases=False, beta=0.5, halved=False):
        super().__init__()
        self.hidden = nn.Dense(6, 10)
        self.out = nn.Dense(10, 1)
        self.huber = nn.SmoothL1Loss(beta=beta, reduction="mean")
        self.l2 = ops.L2Loss()
        self.biases, self.factor = biases, 1.0 if halved else 2.0

    def construct(self, x, y):
        out = self.out(ops.tanh(self.hidden(x))).reshape(-1)
        penalty = self.l2(self.hidden.weight) + self.l2(self.out.weight)
        if self.biases:
            penalty = penalty + self.l2(self.hidden.bias) + self.l2(self.out.bias)
        return self.huber(out, y) + 1e-2 * self.factor * penalty


class TripletNet(nn.Cell):
    def __init__(self, margin=0.5, squared=False):
        super().__init__()
        self.net = nn.SequentialCell([nn.Dense(9, 16), nn.ELU(), nn.Dense(16, 4)])
        self.margin, self.squared = margin, squared

    def apart(self, a, b):
        square = ops.square(a - b + 1e-6).sum(-1)
        return square if self.squared else ops.sqrt(square)

    def construct(self, anchor, positive, negative):
        a, p, n = self.net(anchor), self.net(positive), self.net(negative)
        return ops.relu(self.apart(a, p) - self.apart(a, n) + self.margin).mean()


class A2C(nn.Cell):
    def __init__(self, ddof=1, detached=True, entropy=-0.01):
        super().__init__()
        self.fc = nn.Dense(7, 16, activation="tanh")
        self.policy = nn.Dense(16, 3)
        self.value = nn.Dense(16, 1)
        self.ddof, self.detached, self.entropy = ddof, detached, entropy

    def construct(self, state, action, reward):
        h = self.fc(state)
        logits = self.policy(h)
        value = self.value(h).squeeze(-1)
        advantage = reward - (ops.stop_gradient(value) if self.detached else value)
        spread = ops.sqrt(ops.var(advantage, None, self.ddof)) + 1e-8
        advantage = (advantage - advantage.mean()) / spread
        policy = (ops.cross_entropy(logits, action.astype(ms.int32), reduction="none")
                  * advantage).mean()  # fmt: skip
        p = ops.softmax(logits, -1)
        entropy = -(p * ops.log_softmax(logits, -1)).sum(-1).mean()
        return policy + 0.5 * ops.mse_loss(value, reward) + self.entropy * entropy
