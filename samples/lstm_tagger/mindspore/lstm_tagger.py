"""A bidirectional LSTM that gives each token of a sentence a tag."""

from typing import Optional, Tuple

import mindspore as ms
from mindspore import nn, ops
from torch_helpers import Embedding, LSTM, xavier_uniform_, zeros_

PAD = 0


class Embedder(nn.Cell):
    """Token vectors with dropout; the vector of the padding token stays zero."""

    def __init__(self, vocab_size: int, dim: int, dropout: float) -> None:
        super().__init__()
        self.table = Embedding(vocab_size, dim, padding_idx=PAD)
        self.drop = nn.Dropout(p=dropout)

    def construct(self, tokens: ms.Tensor) -> ms.Tensor:
        return self.drop(self.table(tokens))


class LSTMTagger(nn.Cell):
    def __init__(
        self,
        vocab_size: int = 1000,
        num_tags: int = 17,
        embedding_dim: int = 64,
        hidden_dim: int = 128,
        num_layers: int = 2,
        dropout: float = 0.3,
    ) -> None:
        super().__init__()
        self.hidden_dim = hidden_dim
        self.embed = Embedder(vocab_size, embedding_dim, dropout)
        # two directions
        self.lstm = LSTM(embedding_dim, hidden_dim // 2, num_layers=num_layers, batch_first=True, dropout=dropout if num_layers > 1 else 0.0, bidirectional=True)
        self.norm = nn.LayerNorm((hidden_dim,), epsilon=1e-05)
        self.drop = nn.Dropout(p=dropout)
        self.classify = nn.Dense(hidden_dim, num_tags)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        xavier_uniform_(self.classify.weight)
        zeros_(self.classify.bias)

    def construct(self, tokens: ms.Tensor, mask: Optional[ms.Tensor] = None) -> ms.Tensor:
        """tokens: int64 (batch, length) -> log-probabilities (batch, length, tags)."""
        if mask is None:
            mask = tokens != PAD
        hidden, _ = self.lstm(self.embed(tokens))
        hidden = self.drop(self.norm(hidden))
        hidden = hidden * mask.unsqueeze(-1).astype(hidden.dtype)
        return ops.log_softmax(self.classify(hidden), axis=-1)


def masked_nll(log_probs: ms.Tensor, tags: ms.Tensor, mask: ms.Tensor) -> ms.Tensor:
    """Mean negative log-likelihood of the tags where mask is true."""
    batch, length, num_tags = log_probs.shape
    loss = ops.nll_loss(log_probs.view(-1, num_tags), tags.reshape(-1), reduction="none")
    loss = loss.view(batch, length).masked_fill(~mask, 0.0)
    return loss.sum() / mask.sum().clamp(min=1)


def accuracy(log_probs: ms.Tensor, tags: ms.Tensor, mask: ms.Tensor) -> Tuple[int, int]:
    """(right, counted) over the real tokens."""
    right = (ops.argmax(log_probs, dim=-1) == tags) & mask
    return int(right.sum().item()), int(mask.sum().item())
