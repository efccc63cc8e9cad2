"""In: features and classes in frequency clusters. Out: torch.nn.AdaptiveLogSoftmaxWithLoss."""

import mindspore as ms
from mindspore import nn, ops


def row_log_softmax(x):
    """log_softmax over the last axis; the kernel's gradient is coarser than torch's."""
    shifted = x - ops.stop_gradient(ops.amax(x, -1, keepdims=True))
    return shifted - ops.log(ops.exp(shifted).sum(-1, keepdims=True))


class AdaptiveLogSoftmaxWithLoss(nn.Cell):
    """Reproduces torch.nn.AdaptiveLogSoftmaxWithLoss exactly; the call gives (output, loss).

    ``input`` is (N, in_features) or (in_features,), ``target`` (N,) or a scalar. Every cluster is
    computed for every row: more work than in torch, the same numbers, and no shape from values.
    """

    def __init__(
        self,
        in_features,
        n_classes,
        cutoffs,
        div_value=4.0,
        head_bias=False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.in_features, self.n_classes, self.div_value = in_features, n_classes, div_value
        self.cutoffs = [*cutoffs, n_classes]
        self.shortlist_size, self.n_clusters = self.cutoffs[0], len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head_bias, dtype = head_bias, dtype or ms.float32
        self.head = nn.Dense(in_features, self.head_size, has_bias=head_bias, dtype=dtype)
        tail = []
        for i in range(self.n_clusters):
            inner = int(in_features // (div_value ** (i + 1)))
            outer = self.cutoffs[i + 1] - self.cutoffs[i]
            tail.append(
                nn.SequentialCell(
                    nn.Dense(in_features, inner, has_bias=False, dtype=dtype),
                    nn.Dense(inner, outer, has_bias=False, dtype=dtype),
                )
            )
        self.tail = nn.CellList(tail)

    def log_prob(self, input):
        """The logarithms of all probabilities, (N, n_classes)."""
        head = row_log_softmax(self.head(input))
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            inside = row_log_softmax(cluster(input))
            place = self.shortlist_size + i
            parts.append(inside + head[:, place : place + 1])
        return ops.cat(parts, 1)

    def predict(self, input):
        """The most probable class of each row."""
        return self.log_prob(input).argmax(1)

    def construct(self, input, target):
        rows = input if input.ndim == 2 else input.expand_dims(0)
        picked = self.log_prob(rows).gather_elements(1, target.reshape((-1, 1)))
        nothing = ops.full((), float("nan"), dtype=picked.dtype)
        loss = -picked.mean() if picked.size > 0 else nothing
        return picked.reshape(target.shape), loss
