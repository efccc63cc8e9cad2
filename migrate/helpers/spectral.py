"""In: signals and complex numbers. Out: spectra, and signals from spectra, as torch's."""

import mindspore as ms
from mindspore import ops

from migrate.helpers.complex_numbers import conj
from migrate.helpers.gathering import roll


def opposite(norm):
    """The normalisation of the inverse transform that scales as ``norm`` does forward."""
    if norm == "ortho":
        return "ortho"
    return "backward" if norm == "forward" else "forward"


def hfft(input, n=None, dim=-1, norm=None):
    """torch.fft.hfft, by ops.irfft: ops.hfft takes the conjugate at every second call on CPU."""
    return ops.irfft(conj(input), n, dim, opposite(norm))


def hfftn(input, s=None, dim=None, norm=None):
    """torch.fft.hfftn, by ops.irfftn, as ops.hfftn fails like ops.hfft."""
    return ops.irfftn(conj(input), s, dim, opposite(norm))


def ihfft(input, n=None, dim=-1, norm=None):
    """torch.fft.ihfft, by ops.rfft: the gradient of ops.ihfft is wrong."""
    return ops.conj(ops.rfft(input, n, dim, opposite(norm)))


def ihfftn(input, s=None, dim=None, norm=None):
    """torch.fft.ihfftn, by ops.rfftn: the gradient of ops.ihfftn is wrong."""
    return ops.conj(ops.rfftn(input, s, dim, opposite(norm)))


def centred(window, win_length, n_fft, dtype):
    """The window of a short-time transform, with zeros around it up to ``n_fft``."""
    if window is None:
        window = ops.ones((win_length,), dtype)
    left = (n_fft - win_length) // 2
    right = n_fft - win_length - left
    return ops.cat((ops.zeros((left,), dtype), window, ops.zeros((right,), dtype)))


def stft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
):
    """torch.stft of signals (L,) or (B, L): (..., frequencies, frames), or pairs of parts."""
    hop = n_fft // 4 if hop_length is None else hop_length
    signals = input.reshape((-1, input.shape[-1]))
    if center:
        half = n_fft // 2
        signals = ops.pad(signals.unsqueeze(1), (half, half), mode=pad_mode).squeeze(1)
    count = 1 + (signals.shape[-1] - n_fft) // hop
    places = (ops.arange(count) * hop).unsqueeze(-1) + ops.arange(n_fft)
    frames = ops.gather(signals, places, 1)
    frames = frames * centred(window, win_length or n_fft, n_fft, input.dtype)
    norm = "ortho" if normalized else "backward"
    # only of real signals does half of the spectrum tell all
    whole = onesided is False or ops.is_complex(input)
    transform = ops.fft if whole else ops.rfft
    spectra = transform(frames, norm=norm).swapaxes(-2, -1)
    spectra = spectra.reshape(input.shape[:-1] + spectra.shape[-2:])
    if return_complex is False:
        return ops.stack((ops.real(spectra), ops.imag(spectra)), -1)
    return spectra


def istft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=None,
    length=None,
):
    """torch.istft to real signals (..., L): frames are added, then divided by their weights."""
    hop = n_fft // 4 if hop_length is None else hop_length
    spectra = input.reshape((-1, *input.shape[-2:])).swapaxes(-2, -1)
    norm = "ortho" if normalized else "backward"
    # of the spectrum of a real signal one half tells all: torch reads no more either
    frames = ops.irfft(spectra[..., : n_fft // 2 + 1], n_fft, norm=norm)
    window = centred(window, win_length or n_fft, n_fft, frames.dtype)
    batch, count = frames.shape[:2]
    total = n_fft + hop * (count - 1)
    places = ((ops.arange(count) * hop).unsqueeze(-1) + ops.arange(n_fft)).reshape((-1,))
    parts = ops.permute(frames * window, (1, 2, 0)).reshape((-1, batch))
    places = places.astype(ms.int32)
    signals = ops.unsorted_segment_sum(parts, places, total)
    weights = ops.square(window).broadcast_to((count, n_fft)).reshape((-1, 1))
    weights = ops.unsorted_segment_sum(weights, places, total)
    start = n_fft // 2 if center else 0
    end = total - start if length is None else min(start + length, total)
    signals = (signals[start:end] / weights[start:end]).swapaxes(0, 1)
    if length is not None and end - start < length:
        signals = ops.pad(signals, (0, length - (end - start)))
    return signals.reshape(input.shape[:-2] + signals.shape[-1:])


def fftshift(input, dim=None):
    """torch.fft.fftshift; the gradient of MindSpore's own is in the wrong places where the length
    is odd."""
    axes = shifted_axes(input, dim)
    return roll(input, [input.shape[axis] // 2 for axis in axes], axes)


def ifftshift(input, dim=None):
    """torch.fft.ifftshift, the inverse of fftshift."""
    axes = shifted_axes(input, dim)
    return roll(input, [-(input.shape[axis] // 2) for axis in axes], axes)


def shifted_axes(input, dim):
    """The axes that a shift moves: all of them where ``dim`` is None."""
    if dim is None:
        return tuple(range(input.ndim))
    return (dim,) if isinstance(dim, int) else tuple(dim)
