"""Options about quantization, which `llmc compile` and `llmc quantize` share."""

from __future__ import annotations

import argparse
from typing import Any

from llmc.compiler.cli.arguments import add_option
from llmc.compiler.quantization.formats import known_formats


def add_quantization(group: argparse._ActionsContainer, required: bool = False) -> None:
    """required: whether a format must be named."""
    formats = "\n".join(f"{name:11} {summary}" for name, summary in known_formats().items())
    default: dict[str, Any] = {"required": True} if required else {"default": "none"}
    add_option(group, "qformat", help="quantization format of the linears:\n" + formats, **default)
    add_option(group, "exclude", action="append", default=[], metavar="GLOB",
               help="leave linears as they are, by the name of the layer (*.down_proj); may be repeated")  # fmt: skip
    add_option(
        group, "quantize_lm_head", action="store_true", help="quantize the last linear, which makes the logits, too"
    )
    add_option(group, "dequantize", action="store_true",
               help="of a checkpoint that is quantized already: take the values of its layers,\n"
                    "stored as --dtype says, in place of their codes")  # fmt: skip
    add_option(group, "no_quality_gate", action="store_true",
               help="do not compare the quantized model with the unquantized one")  # fmt: skip
    add_option(group, "max_kl_divergence", type=float, metavar="NATS",
               help="quality gate: the most that distributions may differ (default: the format's)")  # fmt: skip
    add_option(group, "min_top1_agreement", type=float, metavar="FRACTION",
               help="quality gate: how often both models must agree (default: the format's)")  # fmt: skip


def chosen(arguments: argparse.Namespace) -> dict[str, Any]:
    """The fields of `CompileOptions` that these options set."""
    return {
        "qformat": arguments.qformat,
        "exclude": tuple(arguments.exclude),
        "quantize_lm_head": arguments.quantize_lm_head,
        "dequantize": arguments.dequantize,
        "quality_gate": not arguments.no_quality_gate,
        "max_kl_divergence": arguments.max_kl_divergence,
        "min_top1_agreement": arguments.min_top1_agreement,
    }
