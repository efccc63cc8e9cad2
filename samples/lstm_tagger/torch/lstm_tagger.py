"""A bidirectional LSTM that gives each token of a sentence a tag."""

from typing import Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD = 0


class Embedder(nn.Module):
    """Token vectors with dropout; the vector of the padding token stays zero."""

    def __init__(self, vocab_size: int, dim: int, dropout: float) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, dim, padding_idx=PAD)
        self.drop = nn.Dropout(dropout)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.drop(self.table(tokens))


class LSTMTagger(nn.Module):
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
        self.lstm = nn.LSTM(
            embedding_dim,
            hidden_dim // 2,  # two directions
            num_layers=num_layers,
            batch_first=True,
            bidirectional=True,
            dropout=dropout if num_layers > 1 else 0.0,
        )
        self.norm = nn.LayerNorm(hidden_dim)
        self.drop = nn.Dropout(p=dropout)
        self.classify = nn.Linear(hidden_dim, num_tags)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.classify.weight)
        nn.init.zeros_(self.classify.bias)

    def forward(self, tokens: torch.Tensor, mask: Optional[torch.Tensor] = None) -> torch.Tensor:
        """tokens: int64 (batch, length) -> log-probabilities (batch, length, tags)."""
        if mask is None:
            mask = tokens != PAD
        hidden, _ = self.lstm(self.embed(tokens))
        hidden = self.drop(self.norm(hidden))
        hidden = hidden * mask.unsqueeze(-1).to(hidden.dtype)
        return F.log_softmax(self.classify(hidden), dim=-1)


def masked_nll(log_probs: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean negative log-likelihood of the tags where mask is true."""
    batch, length, num_tags = log_probs.size()
    loss = F.nll_loss(log_probs.view(-1, num_tags), tags.reshape(-1), reduction="none")
    loss = loss.view(batch, length).masked_fill(~mask, 0.0)
    return loss.sum() / mask.sum().clamp(min=1)


def accuracy(log_probs: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> Tuple[int, int]:
    """(right, counted) over the real tokens."""
    right = (log_probs.argmax(dim=-1) == tags) & mask
    return int(right.sum().item()), int(mask.sum().item())
