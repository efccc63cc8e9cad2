"""In: a layer that is built. Out: other settings of it, which count from then on."""

from mindspore import nn, ops
from mindspore.nn.layer.normalization import _BatchNorm

from migrate.helpers.convolution import conv_pads, per_axis
from migrate.helpers.keeping import compile_anew


def set_convolution(conv, name, value):
    """``conv.stride = value`` as in torch, also for padding and dilation, of a convolution.

    A Cell is built for its settings. So the primitive that it calls is made anew, and so are the
    graphs that hold it. Raises TypeError for another layer of MindSpore.
    """
    if not isinstance(conv, (nn.Conv1d, nn.Conv2d, nn.Conv3d)):
        if any(kind.__module__.startswith("mindspore.nn.layer") for kind in type(conv).__mro__):
            raise TypeError(
                f"{type(conv).__name__}: its {name} cannot be changed after it is built"
            )
        setattr(conv, name, value)
        return
    axes = 1 if isinstance(conv, nn.Conv1d) else 2 if isinstance(conv, nn.Conv2d) else 3
    before = (1,) * (axes == 1)  # a Conv1d is one over two axes
    old = conv.conv3d if axes == 3 else conv.conv2d
    pads = tuple(old.pad)
    if name == "padding":
        conv.padding = value if isinstance(value, str) else per_axis(value, axes)
    else:
        setattr(conv, name, (*before, *per_axis(value, axes)))
    stride, dilation = per_axis(conv.stride, axes), per_axis(conv.dilation, axes)
    renewed = name == "padding" or isinstance(conv.padding, str)
    # in torch, too, borders that are no zeros stay as wide as they were at first
    if renewed and getattr(conv, "padding_mode", "zeros") == "zeros":
        pads = conv_pads(conv.padding, conv.kernel_size[-axes:], dilation[-axes:], axes)
        pads = (0, 0) * len(before) + tuple(pads)
    settings = {"pad_mode": "pad", "pad": pads, "stride": stride, "dilation": dilation}
    if axes == 3:  # the Cell takes the groups one by one
        channels = conv.out_channels // conv.group
        conv.conv3d = ops.Conv3D(channels, conv.kernel_size, **settings)
    else:
        conv.conv2d = ops.Conv2D(conv.out_channels, conv.kernel_size, group=conv.group, **settings)
    compile_anew()


def set_bias(layer, name, value):
    """``layer.bias = value`` as in torch, also None, or where it was built without one.

    A Dense or convolution adds it where has_bias says so.
    """
    if value is None and name in layer._params:
        delattr(layer, name)  # a graph takes what stays among the Parameters for one
    if hasattr(layer, "has_bias"):
        layer.has_bias = value is not None
        if not hasattr(layer, "bias_add"):  # of a Dense
            layer.bias_add = ops.BiasAdd()
    setattr(layer, name, value)
    compile_anew()


def set_ceil_mode(pool, name, value):
    """``pool.ceil_mode = value`` as in torch: a MaxPool2d of MindSpore gets a primitive for it.

    Raises TypeError for another layer of MindSpore, which would not look at it.
    """
    computes = next(kind for kind in type(pool).__mro__ if "construct" in vars(kind))
    if computes is nn.MaxPool2d:
        padded, old = pool.use_pad, pool.max_pool
        pool.max_pool = ops.MaxPool3DWithArgmax(
            ksize=(1, *per_axis(pool.kernel_size, 2)),
            strides=(1, *per_axis(pool.stride, 2)),
            pads=old.pads if padded else 0,
            dilation=old.dilation if padded else (1, 1, 1),
            ceil_mode=value,
        )
        pool.use_pad = True
        compile_anew()
    elif computes.__module__.startswith("mindspore.nn.layer"):
        raise TypeError(f"{type(pool).__name__}: its {name} cannot be changed after it is built")
    setattr(pool, name, value)


def set_norm(norm, name, value):
    """``bn.eps = value`` as in torch, also for momentum; of a BatchNorm, GroupNorm or LayerNorm.

    The Cells' primitives have read both when they were built, and are made anew. momentum weighs
    the new value, as in torch. Raises TypeError for another layer of MindSpore.
    """
    if isinstance(norm, _BatchNorm) and value is not None:
        setattr(norm, name, float(value))
        norm.bn_train = ops.BatchNorm(True, norm.eps, norm.momentum, norm.format)
        norm.bn_infer = ops.BatchNorm(False, norm.eps, data_format=norm.format)
        compile_anew()
        return
    if isinstance(norm, nn.LayerNorm) and name == "eps":
        norm.epsilon = value
        norm.layer_norm = ops.LayerNorm(norm.begin_norm_axis, norm.begin_params_axis, value)
    elif not isinstance(norm, nn.GroupNorm) or name != "eps":
        computes = next((kind for kind in type(norm).__mro__ if "construct" in vars(kind)), object)
        if computes.__module__.startswith("mindspore.nn.layer") or value is None:
            raise TypeError(
                f"{type(norm).__name__}: its {name} cannot be changed after it is built"
            )
    setattr(norm, name, value)
    compile_anew()


def set_reduction(loss, name, value):
    """``loss.reduction = value`` as in torch: some losses of MindSpore go by flags of their own."""
    setattr(loss, name, value)
    if isinstance(loss, nn.LossBase):
        loss.reduce, loss.average = value != "none", value == "mean"
    if isinstance(loss, nn.SmoothL1Loss):
        loss.smooth_l1_loss = ops.SmoothL1Loss(loss.beta, value)
    compile_anew()


def loss_reduction(loss):
    """``loss.reduction`` as in torch: some losses of MindSpore have flags in its place."""
    if hasattr(loss, "reduction") or not isinstance(loss, nn.LossBase):
        return loss.reduction
    if not loss.reduce:
        return "none"
    return "mean" if loss.average else "sum"
