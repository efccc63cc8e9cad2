"""In: torch.nn's arguments of transformer layers. Out: Cells with torch's weights and order."""

import copy

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.initializer import XavierUniform, initializer

from migrate.helpers.attention import MultiheadAttention
from migrate.helpers.containers import ModuleList
from migrate.helpers.layers import Dropout, Linear
from migrate.helpers.norm import LayerNorm


def gelu_by_erf(x):
    """GELU by the error function, torch's default."""
    return ops.gelu(x, approximate="none")


def activation_of(activation):
    """The function that a name or a function stands for. Raises ValueError for other names."""
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise ValueError(f"activation should be relu/gelu, not {activation}")
    return ops.relu if activation == "relu" else gelu_by_erf


class TransformerEncoderLayer(nn.Cell):
    """Reproduces torch.nn.TransformerEncoderLayer (its slow path: nothing is skipped)."""

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.activation = activation_of(activation)

    def _attended(self, x, attn_mask, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask, False, attn_mask)
        return self.dropout1(out)

    def _fed_forward(self, x):
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def construct(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        if self.norm_first:
            src = src + self._attended(self.norm1(src), src_mask, src_key_padding_mask)
            return src + self._fed_forward(self.norm2(src))
        src = self.norm1(src + self._attended(src, src_mask, src_key_padding_mask))
        return self.norm2(src + self._fed_forward(src))


class TransformerDecoderLayer(nn.Cell):
    """Reproduces torch.nn.TransformerDecoderLayer."""

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype
        )
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = activation_of(activation)

    def _attended(self, x, attn_mask, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask, False, attn_mask)
        return self.dropout1(out)

    def _recalled(self, x, memory, attn_mask, key_padding_mask):
        out, _ = self.multihead_attn(x, memory, memory, key_padding_mask, False, attn_mask)
        return self.dropout2(out)

    def _fed_forward(self, x):
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def construct(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=False,
        memory_is_causal=False,
    ):
        if self.norm_first:
            x = tgt + self._attended(self.norm1(tgt), tgt_mask, tgt_key_padding_mask)
            x = x + self._recalled(self.norm2(x), memory, memory_mask, memory_key_padding_mask)
            return x + self._fed_forward(self.norm3(x))
        x = self.norm1(tgt + self._attended(tgt, tgt_mask, tgt_key_padding_mask))
        x = self.norm2(x + self._recalled(x, memory, memory_mask, memory_key_padding_mask))
        return self.norm3(x + self._fed_forward(x))


class TransformerEncoder(nn.Cell):
    """Reproduces torch.nn.TransformerEncoder: ``num_layers`` copies of the layer."""

    def __init__(
        self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True
    ):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def construct(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(nn.Cell):
    """Reproduces torch.nn.TransformerDecoder: ``num_layers`` copies of the layer."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def construct(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
            )
        return tgt if self.norm is None else self.norm(tgt)


def square_subsequent_mask(sz, dtype=None):
    """(sz, sz): minus infinity above the diagonal, zero elsewhere."""
    above = ops.ones((sz, sz), ms.float32).triu(1) > 0
    return ops.zeros((sz, sz), dtype or ms.float32).masked_fill(above, float("-inf"))


class Transformer(nn.Cell):
    """Reproduces torch.nn.Transformer: an encoder, a decoder, Xavier-uniform matrices."""

    def __init__(
        self,
        d_model=512,
        nhead=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        shared = (*sizes, batch_first, norm_first, bias, device, dtype)
        norm = (d_model, layer_norm_eps, True, bias, device, dtype)
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*shared), num_encoder_layers, LayerNorm(*norm)
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*shared), num_decoder_layers, LayerNorm(*norm)
        )
        for parameter in self.get_parameters():
            if parameter.ndim > 1:
                parameter.set_data(initializer(XavierUniform(), parameter.shape, parameter.dtype))
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        return square_subsequent_mask(sz, dtype)

    def construct(
        self,
        src,
        tgt,
        src_mask=None,
        tgt_mask=None,
        memory_mask=None,
        src_key_padding_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        src_is_causal=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        )
