"""The entry points: a checkpoint, or any torch module, to `llm` IR."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmc.frontends.checkpoint import Checkpoint, open_checkpoint

if TYPE_CHECKING:
    import numpy as np
    import torch
    from mlir import ir
    from transformers import PretrainedConfig

#: Names of the inputs of `step`, for locations.
_DECODER_INPUTS = ("tokens", "positions")


@dataclass(frozen=True)
class ImportOptions:
    #: Longest sequence the engine will see; decides whether a length-dependent rope is static.
    max_seq_len: int | None = None
    #: Also keep the torch dialect text of the model (`--emit=torch`).
    keep_torch: bool = False
    #: Take the values of layers that are quantized already in place of their codes.
    dequantize: bool = False


@dataclass(frozen=True)
class ImportedModel:
    """A model in `llm` IR, and everything around the graph that the engine needs."""

    module: ir.Module
    config: PretrainedConfig
    checkpoint: Checkpoint
    #: For the engine's manifest: architecture, sizes, source.
    identity: dict[str, Any]
    #: Checkpoint tensors that the graph uses, by parameter symbol.
    tensors: dict[str, str]
    #: Checkpoint tensors that are known not to matter (stored rotary frequencies, second copies of tied tensors).
    ignored: list[str]
    torch_text: str | None = None

    def export_tokenizer(self, directory: str | Path) -> list[str]:
        """Writes tokenizer, chat template and generation defaults; returns the file names."""
        return self.checkpoint.export_tokenizer(Path(directory))


@dataclass(frozen=True)
class ImportedModule:
    """A torch module in `llm` IR with the values of its parameters."""

    module: ir.Module
    weights: dict[str, np.ndarray] = field(repr=False)


def import_checkpoint(
    path: str | Path, options: ImportOptions | None = None, context: ir.Context | None = None
) -> ImportedModel:
    """Imports a Hugging Face folder (config.json alone suffices) or a .gguf file.

    Raises `FrontendError` for anything that cannot be imported faithfully.
    """
    from llmc.frontends.convert.module import convert_module
    from llmc.frontends.huggingface.model import DecoderStep, build_model
    from llmc.frontends.tracing.dialect import import_program
    from llmc.frontends.tracing.trace import export_decoder
    from llmc.frontends.weights import bind

    options = options or ImportOptions()
    checkpoint = open_checkpoint(path, options.dequantize)
    model, buffers = build_model(checkpoint.config, options.max_seq_len)
    binding = bind(model, buffers, checkpoint)
    torch_module = import_program(export_decoder(DecoderStep(model)), wrapper="model.")
    conversion = convert_module(torch_module, binding.sources, context, _DECODER_INPUTS, one_dynamic_size=True)
    return ImportedModel(
        module=conversion.module,
        config=checkpoint.config,
        checkpoint=checkpoint,
        identity=_identity(checkpoint),
        tensors=conversion.tensors,
        ignored=binding.ignored,
        torch_text=str(torch_module) if options.keep_torch else None,
    )


def import_module(
    module: torch.nn.Module,
    example_inputs: tuple[Any, ...],
    dynamic_shapes: Any = None,
    context: ir.Context | None = None,
) -> ImportedModule:
    """Imports any torch module; `dynamic_shapes` is that of `torch.export.export`.

    A leading dimension of size 1 of inputs and outputs is folded away, as for decoders.
    """
    from llmc.frontends.convert.module import convert_module
    from llmc.frontends.parameter_source import ParameterSource
    from llmc.frontends.tracing.dialect import import_program
    from llmc.frontends.tracing.trace import export, has_one_dynamic_size

    values = {
        name: tensor.detach().cpu().float().numpy()
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]
    }
    program = export(module.eval(), example_inputs, dynamic_shapes)
    sources = {name: ParameterSource(name, tensor=name) for name in values}
    one_dynamic_size = has_one_dynamic_size(program)
    conversion = convert_module(import_program(program), sources, context, one_dynamic_size=one_dynamic_size)
    return ImportedModule(conversion.module, {name: values[name] for name in conversion.tensors.values()})


def _identity(checkpoint: Checkpoint) -> dict[str, Any]:
    config = checkpoint.config
    sizes = {
        name: getattr(config, name, None)
        for name in (
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "num_key_value_heads",
            "head_dim",
            "max_position_embeddings",
            "tie_word_embeddings",
        )
    }
    return {**checkpoint.identity(), **{name: value for name, value in sizes.items() if value is not None}}
