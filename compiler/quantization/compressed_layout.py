"""The layout of compressed-tensors: what a quantized linear becomes in a checkpoint, and how config.json says so.

Names and packing are those that frontends/checkpoint/quantized/compressed_tensors.py reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from llmc.compiler.dtypes import BY_NAME
from llmc.compiler.quantization.formats import QuantizationFormat
from llmc.compiler.recipes import Shape
from llmc.compiler.weights import Weight
from llmc.errors import OptionError

#: MLIR name of codes -> type and bits in a scheme.
_KINDS = {"f8E4M3FN": ("float", 8), "i8": ("int", 8), "i4": ("int", 4)}
#: Formats whose codes are those of `Codes` recipes and nothing more.
_WRITTEN = ("fp8_rowwise", "int8_wo", "int4_wo")


def check_writable(format: QuantizationFormat) -> None:
    """Raises OptionError for a format that has no checkpoint layout yet."""
    if format.name not in _WRITTEN:
        raise OptionError(
            f"--qformat {format.name}: checkpoints are written of {', '.join(_WRITTEN)}; "
            "`llmc compile --qformat` makes an engine of the others"
        )


def layer_weights(tensor: str, module: str, shape: Shape, format: QuantizationFormat) -> list[Weight]:
    """The tensors of one linear, made from the checkpoint's `tensor` of shape [N, K].

    module: what they are called by, without ".weight".
    """
    kind, bits = _KINDS[format.weights]
    arguments = f'#llm.source<"{tensor}">, to = {format.weights}, group = {format.group}'
    rows, columns = shape
    groups = columns // format.group if format.group else 1
    scales = Weight(f"{module}.weight_scale", BY_NAME["f32"], (rows, groups), recipe=f"#llm.scales<{arguments}>")
    recipe = f"#llm.codes<{arguments}>"
    if kind == "float":
        return [Weight(f"{module}.weight", BY_NAME["f8e4m3"], (rows, columns), recipe=recipe), scales]
    packed = Weight(
        f"{module}.weight_packed", BY_NAME["i32"], (rows, columns), recipe=recipe, layout=f"words<bits = {bits}>"
    )
    size = Weight(f"{module}.weight_shape", BY_NAME["i64"], (2,), value=np.array(shape, np.int64))
    return [packed, scales, size]


def quantization_config(format: QuantizationFormat, ignore: Iterable[str]) -> dict[str, Any]:
    """`quantization_config` of config.json. ignore: modules of linears that stay as they are."""
    kind, bits = _KINDS[format.weights]
    weights: dict[str, Any] = {
        "num_bits": bits,
        "type": kind,
        "symmetric": True,
        "dynamic": False,
        "strategy": "group" if format.group else "channel",
        "group_size": format.group or None,
    }
    inputs = None
    if format.inputs:
        kind, bits = _KINDS[format.inputs]
        inputs = {"num_bits": bits, "type": kind, "symmetric": True, "dynamic": True, "strategy": "token"}
    return {
        "quant_method": "compressed-tensors",
        "format": "float-quantized" if format.weights == "f8E4M3FN" else "pack-quantized",
        "quantization_status": "compressed",
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "weights": weights,
                "input_activations": inputs,
                "output_activations": None,
            }
        },
        "ignore": sorted(ignore),
        "kv_cache_scheme": None,
    }
