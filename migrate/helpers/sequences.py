"""In: sequences of different lengths, Parameters. Out: torch.nn.utils' joined and padded forms."""

from mindspore import ops


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """torch.nn.utils.rnn.pad_sequence: tensors (L_i, ...) as one (L, B, ...) or (B, L, ...)."""
    longest = max([one.shape[0] for one in sequences])
    rows = []
    for one in sequences:
        gap = ops.full((longest - one.shape[0], *one.shape[1:]), padding_value, dtype=one.dtype)
        parts = (one, gap) if padding_side == "right" else (gap, one)
        rows.append(ops.cat(parts) if longest > one.shape[0] else one)
    return ops.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """torch.nn.utils.rnn.unpad_sequence: the tensors that pad_sequence has joined."""
    rows = padded_sequences if batch_first else padded_sequences.swapaxes(0, 1)
    return [row[: int(length)] for row, length in zip(rows, lengths)]


def parameters_to_vector(parameters):
    """torch.nn.utils.parameters_to_vector: all values of Parameters in one row."""
    return ops.cat([one.reshape(-1) for one in parameters])


def vector_to_parameters(vec, parameters):
    """torch.nn.utils.vector_to_parameters: assigns parts of a row to Parameters, in order."""
    start = 0
    for one in parameters:
        ops.assign(one, vec[start : start + one.size].reshape(one.shape).astype(one.dtype))
        start += one.size
