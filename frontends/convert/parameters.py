"""The `llm.parameter` declarations of a module and the `llm.weight` ops that read them."""

from __future__ import annotations

import json

import numpy as np
from mlir import ir

from llmc.dialects import llm
from llmc.frontends.convert.values import Weight
from llmc.frontends.errors import FrontendError
from llmc.frontends.parameter_source import ParameterSource


class Parameters:
    """Declares a parameter when it is first read; tied names share one declaration."""

    def __init__(self, sources: dict[str, ParameterSource], declarations: ir.InsertionPoint):
        self._sources = sources
        self._declarations = declarations
        self._declared: dict[str, ir.RankedTensorType] = {}
        self._read: dict[str, ir.Value] = {}
        #: Checkpoint tensors that the module uses, by symbol.
        self.used: dict[str, str] = {}

    def read(self, weight: Weight) -> ir.Value:
        source = self._sources.get(weight.name)
        if source is None:
            raise FrontendError(f"buffer '{weight.name}' of the model has no value: its module does not initialise it")
        symbol = source.symbol + (".transposed" if weight.transposed else "")
        if symbol not in self._read:
            type = self._declare(symbol, source, weight)
            self._read[symbol] = llm.WeightOp(type, ir.FlatSymbolRefAttr.get(symbol)).result
        return self._read[symbol]

    def _declare(self, symbol: str, source: ParameterSource, weight: Weight) -> ir.RankedTensorType:
        type = ir.RankedTensorType.get(weight.shape, ir.F32Type.get())
        recipe = value = None
        if source.tensor is None:
            array = np.asarray(source.value, dtype=np.float32)
            array = np.ascontiguousarray(array.T if weight.transposed else array)
            value = ir.DenseElementsAttr.get(array, type=type)
        else:
            self.used[symbol] = source.tensor
            recipe = _attribute(f"#llm.source<{json.dumps(source.tensor)}>")
            if weight.transposed:
                recipe = _attribute(f"#llm.transpose<{recipe}>")
        with self._declarations:
            llm.ParameterOp(symbol, ir.TypeAttr.get(type), recipe=recipe, value=value)
        return type


def _attribute(text: str) -> ir.Attribute:
    # The attributes of the dialect have no Python classes; their assembly is their constructor.
    return ir.Attribute.parse(text)
