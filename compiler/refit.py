"""Binds weights to an engine: evaluates its recipes over a checkpoint of the same configuration."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from llmc.compiler.engine import Engine
from llmc.compiler.manifest import MANIFEST, WEIGHTS, config_sha256, weight_section
from llmc.compiler.output import OutputFolder, canonical_json
from llmc.compiler.progress import SILENT, Progress
from llmc.compiler.quantization.stored import check_values
from llmc.compiler.weights import check_sources, total_bytes, write_weights
from llmc.errors import EngineError, ModelError, OptionError

if TYPE_CHECKING:
    from llmc.frontends import Checkpoint


@dataclasses.dataclass(frozen=True)
class RefitSummary:
    """What was written."""

    output: Path
    tensors: int
    bytes: int
    #: About the checkpoint: what may be wrong with it, or is not used.
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"bound {self.tensors} tensors ({self.bytes / 1e6:,.0f} MB) to {self.output}"


def refit(
    engine_path: Path,
    model: str,
    output: Path | None = None,
    force: bool = False,
    progress: Progress = SILENT,
    dequantize: bool = False,
) -> RefitSummary:
    """Writes the weights of `model` into the engine, or into a copy at `output`.

    dequantize: layers that are quantized already may be read as values, and quantized again.
    The engine is replaced as a whole at the end: a failure leaves it as it was.
    Raises EngineError, ModelError (another configuration, missing tensors), OutputError.
    """
    engine = Engine(engine_path)
    if output is None and engine.is_bound and not force:
        raise OptionError(
            f"{engine_path} has its weights already: add --force to replace them, or name a new engine with -o"
        )
    _check_parts(engine)
    checkpoint, unused = _open(model, engine, dequantize)
    check_sources(engine.weights, checkpoint, ignore=unused)
    warnings = check_values(checkpoint, progress)
    replaces_own = output is None
    with OutputFolder(output or engine_path, force=force or replaces_own) as out:
        out.require_space(total_bytes(engine.weights))
        for part in engine.manifest["parts"]:
            if part["path"] != WEIGHTS:
                with engine.open(part["path"]) as source, out.open(part["path"]) as target:
                    shutil.copyfileobj(source, target)
        with out.open(WEIGHTS) as target:
            hashes = write_weights(engine.weights, checkpoint, target.write, progress)
        manifest = dict(engine.manifest)
        manifest["weights"] = weight_section(engine.weights, hashes)
        manifest["parts"] = out.part_list()
        out.write(MANIFEST, canonical_json(manifest))
        out.commit()
        return RefitSummary(out.destination, len(engine.weights), out.parts[WEIGHTS][0], tuple(warnings))


def _check_parts(engine: Engine) -> None:
    for damage in engine.verify(weights=False):
        raise EngineError(f"{engine.path} is damaged: {damage}; recompile it")


def _open(model: str, engine: Engine, dequantize: bool) -> tuple[Checkpoint, set[str]]:
    """The checkpoint, checked against its own configuration and the engine's, and the names of
    those tensors that the model does not use by definition."""
    from llmc.frontends.checkpoint import open_checkpoint
    from llmc.frontends.errors import FrontendError
    from llmc.frontends.huggingface.model import build_model
    from llmc.frontends.weights import bind

    try:
        checkpoint = open_checkpoint(model, dequantize)
        if not checkpoint.has_weights:
            raise ModelError(f"{model} has no weights: expected *.safetensors beside its config.json")
        expected, found = engine.manifest["model"]["config_sha256"], config_sha256(checkpoint.config)
        if expected != found:
            raise ModelError(
                f"{model} has another configuration than the engine was compiled for (expected "
                f"{engine.manifest['model']['architecture']} with config sha256 {expected[:16]}, found "
                f"{found[:16]}): compile an engine for it with `llmc compile`"
            )
        torch_model, buffers = build_model(checkpoint.config, engine.manifest["limits"]["max_seq_len"])
        binding = bind(torch_model, buffers, checkpoint)
    except FrontendError as error:
        raise ModelError(str(error)) from None
    used = {source.tensor for source in binding.sources.values()}
    return checkpoint, set(checkpoint.names()) - used
