"""In: nothing. Out: the layers of torch.nn.modules.activation, by their names."""

from migrate.helpers.activation import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    RReLU,
    Sigmoid,
    SiLU,
    Softplus,
    Softshrink,
    Softsign,
    Tanh,
    Tanhshrink,
    Threshold,
)
from migrate.helpers.attention import MultiheadAttention
from migrate.helpers.softmax import LogSoftmax, Softmax, Softmax2d, Softmin


class activation_layers:
    """torch.nn.modules.activation: what vars() and getattr() give of it, in its order."""

    locals().update(
        Threshold=Threshold,
        ReLU=ReLU,
        RReLU=RReLU,
        Hardtanh=Hardtanh,
        ReLU6=ReLU6,
        Sigmoid=Sigmoid,
        Hardsigmoid=Hardsigmoid,
        Tanh=Tanh,
        SiLU=SiLU,
        Mish=Mish,
        Hardswish=Hardswish,
        ELU=ELU,
        CELU=CELU,
        SELU=SELU,
        GLU=GLU,
        GELU=GELU,
        Hardshrink=Hardshrink,
        LeakyReLU=LeakyReLU,
        LogSigmoid=LogSigmoid,
        Softplus=Softplus,
        Softshrink=Softshrink,
        MultiheadAttention=MultiheadAttention,
        PReLU=PReLU,
        Softsign=Softsign,
        Tanhshrink=Tanhshrink,
        Softmin=Softmin,
        Softmax=Softmax,
        Softmax2d=Softmax2d,
        LogSoftmax=LogSoftmax,
    )
