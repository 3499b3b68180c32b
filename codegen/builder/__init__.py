"""Builds `tile` kernels from Python: types, values with operators, and the kernel itself."""

from . import types
from .kernel import KernelBuilder
from .values import Value, constant, select, splat

__all__ = ["KernelBuilder", "Value", "constant", "select", "splat", "types"]
