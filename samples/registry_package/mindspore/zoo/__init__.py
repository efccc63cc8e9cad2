"""A small zoo: models are registered by name and built from a configuration."""

from .registry import ACTIVATIONS, MODELS, NORMS
from . import layers, mixers, residual  # noqa: F401  (registering happens at import)

__all__ = ["ACTIVATIONS", "MODELS", "NORMS"]
