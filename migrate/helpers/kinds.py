"""In: nothing. Out: classes that stand for torch.nn's private base classes in isinstance."""

from mindspore import nn
from mindspore.nn.layer.conv import _Conv
from mindspore.nn.layer.normalization import _BatchNorm
from mindspore.nn.layer.rnns import _RNNBase


class KindOf(type):
    """The type of a class that stands for its ``members`` in isinstance and issubclass."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.members)

    def __subclasscheck__(cls, other):
        return issubclass(other, cls.members)


class AnyBatchNorm(metaclass=KindOf):
    """torch.nn.modules.batchnorm._BatchNorm: BatchNorm of any rank, SyncBatchNorm."""

    members = (_BatchNorm, nn.BatchNorm3d)


class AnyConv(metaclass=KindOf):
    """torch.nn.modules.conv._ConvNd: convolutions of any rank, transposed ones too."""

    members = (_Conv,)


class AnyRecurrent(metaclass=KindOf):
    """torch.nn.RNNBase: RNN, GRU and LSTM."""

    members = (_RNNBase,)
