"""Writes a quantized checkpoint that other tools load: `llmc quantize`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmc.compiler import pipeline
from llmc.compiler.disk import check_replaceable
from llmc.compiler.dtypes import BY_NAME
from llmc.compiler.output import OutputFolder
from llmc.compiler.quality import Quality, check_quality
from llmc.compiler.quantization.compressed_layout import check_writable, layer_weights, quantization_config
from llmc.compiler.quantization.marks import linear_parameters, other_readers
from llmc.compiler.quantization.report import WeightReport
from llmc.compiler.quantization.stored import check_values
from llmc.compiler.weights import Weight, check_sources, quantized_pairs, total_bytes, write_weights
from llmc.errors import ModelError, OptionError
from llmc.passes import clone

if TYPE_CHECKING:
    from llmc.compiler.driver import Compilation
    from llmc.frontends import Checkpoint

_INDEX = "model.safetensors.index.json"
#: Storage types that are written as they are; others, like the blocks of .gguf files, become bfloat16.
_KEPT = ("f32", "f16", "bf16")


@dataclasses.dataclass(frozen=True)
class CheckpointSummary:
    """What was written."""

    output: Path
    format: str
    linears: int
    files: int
    bytes: int
    quality: Quality
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"{self.output}: {self.linears} linears in {self.format}, {self.bytes / 1e6:,.0f} MB in "
            f"{self.files} file{'s' if self.files > 1 else ''}"
        )


def write_checkpoint(compilation: Compilation, destination: Path, shard_bytes: int) -> CheckpointSummary:
    """Quantizes the model of `compilation` as its options say into the folder `destination`.

    Linears of the format become codes and scales in the layout of compressed-tensors; all else is copied. Each row
    is read once. Nothing appears at `destination` before everything is written and the quality gate has let it pass.
    shard_bytes: files are begun anew when they would exceed it.
    Raises ModelError, OptionError, OutputError, QualityError.
    """
    format = compilation.resolved.quantization
    if format is None:
        raise OptionError("--qformat none: name the format to quantize to")
    check_writable(format)
    check_replaceable(destination, force=False)
    checkpoint = compilation.imported.checkpoint
    if not checkpoint.has_weights:
        raise ModelError(f"{compilation.model} has no weights: expected *.safetensors beside its config.json")
    if checkpoint.buffer_divisors():
        raise ModelError(
            f"{compilation.model} stores factors of its rope frequencies, for which config.json has no place: "
            "quantize the Hugging Face folder of the model"
        )
    compilation.check_stored()
    warnings = check_values(checkpoint, compilation.progress)
    quantized, ignored = _choose(compilation)
    weights = _weights(checkpoint, quantized, compilation)
    check_sources(weights, checkpoint, ignore=compilation.imported.ignored)
    shards = _shards(weights, shard_bytes)
    report = WeightReport()
    with OutputFolder(destination) as out:
        out.require_space(sum(total_bytes(shard) for shard in shards.values()))
        for name, shard in shards.items():
            with out.open(name) as part:
                write_weights(shard, checkpoint, part.write, compilation.progress, report, label=f"writing {name}")
        if len(shards) > 1:
            out.write_json(_INDEX, _index(shards))
        config = _config(checkpoint) | {"quantization_config": quantization_config(format, ignored)}
        out.write_json("config.json", config)
        for name in sorted(checkpoint.export_tokenizer(out.folder)):
            out.adopt(name)
        quality = check_quality(compilation, out.folder, report, compilation.of_written(out.folder))
        out.commit()
    quality.write(destination)
    return CheckpointSummary(
        output=destination,
        format=format.name,
        linears=len(quantized),
        files=len(shards),
        bytes=sum(total_bytes(shard) for shard in shards.values()),
        quality=quality,
        warnings=tuple(warnings),
    )


def _choose(compilation: Compilation) -> tuple[set[str], list[str]]:
    """Checkpoint tensors to be quantized, and modules of the linears that are not."""
    imported = compilation.imported
    module = clone(imported.module)
    with compilation.progress.task("choosing linears"):
        compilation.run_passes(module, pipeline.assignment_passes(compilation.resolved))
    linears, marked = linear_parameters(module), linear_parameters(module, marked=True)
    if transposed := [name for name in marked if name.endswith(".transposed")]:
        raise ModelError(
            f"'{transposed[0]}' is stored as [in, out], for which compressed-tensors has no layout: leave it out "
            "with --exclude, or quantize with `llmc compile --qformat`"
        )
    if shared := sorted(set(marked) & other_readers(module)):
        raise ModelError(
            f"'{shared[0]}' is read by the embedding too (tie_word_embeddings), which has no codes in a checkpoint: "
            "leave out --quantize_lm_head, or quantize with `llmc compile --qformat`"
        )
    left = [name.removesuffix(".transposed").removesuffix(".weight") for name in linears if name not in marked]
    return {imported.tensors[name] for name in marked}, left


def _weights(checkpoint: Checkpoint, quantized: set[str], compilation: Compilation) -> list[Weight]:
    """All tensors of the new checkpoint, in the order of the old names."""
    format = compilation.resolved.quantization
    assert format is not None
    weights: list[Weight] = []
    for name in checkpoint.names():
        if name in compilation.imported.ignored:
            continue
        shape = tuple(checkpoint.shape(name))
        if name in quantized:
            weights += layer_weights(name, name.removesuffix(".weight"), shape, format)
            continue
        kept = checkpoint.dtype(name) in _KEPT and checkpoint.stored_format(name) is None
        dtype = BY_NAME[checkpoint.dtype(name) if kept else "bf16"]
        weights.append(Weight(name, dtype, shape, recipe=f"#llm.source<{json.dumps(name)}>"))
    return weights


def _shards(weights: list[Weight], limit: int) -> dict[str, list[Weight]]:
    """Files and what is in them; codes stay with their scales, which come from the same read."""
    scales_of = {codes.name: scales for codes, scales in quantized_pairs(weights)}
    behind = {scales.name for scales in scales_of.values()}
    shards: list[list[Weight]] = [[]]
    size = 0
    for weight in weights:
        if weight.name in behind:
            continue
        unit = [weight, *([scales_of[weight.name]] if weight.name in scales_of else [])]
        added = sum(part.stored_bytes for part in unit)
        if shards[-1] and size + added > limit:
            shards.append([])
            size = 0
        shards[-1] += unit
        size += added
    if len(shards) == 1:
        return {"model.safetensors": shards[0]}
    return {f"model-{i:05}-of-{len(shards):05}.safetensors": shard for i, shard in enumerate(shards, 1)}


def _index(shards: dict[str, list[Weight]]) -> dict[str, Any]:
    return {
        "metadata": {"total_size": sum(weight.stored_bytes for shard in shards.values() for weight in shard)},
        "weight_map": {weight.name: name for name, shard in shards.items() for weight in shard},
    }


def _config(checkpoint: Checkpoint) -> dict[str, Any]:
    """config.json as it was, or what transformers makes of a .gguf file; without a quantization of its own."""
    file = checkpoint.path / "config.json"
    if checkpoint.format == "huggingface":
        config = dict(json.loads(file.read_text(encoding="utf-8")))
    else:
        config = checkpoint.config.to_dict() | {
            "architectures": [checkpoint.identity()["architecture"]], "dtype": "bfloat16"
        }  # fmt: skip
    config.pop("quantization_config", None)
    return config
