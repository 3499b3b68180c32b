"""Compiles a checkpoint into an engine. No GPU is needed, whatever the target."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from llmc.compiler.cli.arguments import add_option
from llmc.compiler.cli.console import make_progress
from llmc.compiler.cli.quantization_options import add_quantization, chosen
from llmc.compiler.options import CompileOptions
from llmc.compiler.phases import EMITTABLE, Phase, emit_help, find_phase
from llmc.compiler.targets import known_targets
from llmc.errors import OptionError

if TYPE_CHECKING:
    from llmc.compiler.driver import Compilation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    defaults = CompileOptions()
    parser.add_argument("model", metavar="MODEL", help="Hugging Face folder or .gguf file")
    add_option(parser, "output", "output_dir", short="o", type=Path, metavar="ENGINE",
               help="engine folder to write, or a file name that ends in .llmc")  # fmt: skip
    add_option(parser, "target", default=defaults.target, help="what to compile for:\n" + _lines(known_targets()))
    add_option(
        parser, "model_name", "served-model-name", help="what the engine calls the model (default: its architecture)"
    )
    add_option(parser, "force", action="store_true", help="replace an engine that exists")

    model = parser.add_argument_group("precision")
    add_option(model, "dtype", default="auto", help="storage of the weights: auto, bfloat16, float16, float32")
    add_option(model, "kv_cache_dtype", default="auto", help="storage of keys and values; the same names")
    add_quantization(model)

    limits = parser.add_argument_group("limits")
    add_option(limits, "max_batch_size", "max-num-seqs", type=int, default=defaults.max_batch_size,
               help="sequences of one step")  # fmt: skip
    add_option(limits, "max_num_tokens", "max-num-batched-tokens", type=int,
               default=defaults.max_num_tokens, help="tokens of one step, prefill and decode together")  # fmt: skip
    add_option(limits, "max_seq_len", "max-model-len", type=int,
               help="tokens of one sequence, prompt and answer (default: the model's own limit)")  # fmt: skip
    add_option(limits, "block_size", "tokens_per_block", type=int,
               help="tokens of one block of the KV cache (default: the target's choice)")  # fmt: skip

    code = parser.add_argument_group("code")
    add_option(code, "schedules", type=Path, metavar="FILE",
               help="measured schedules, made by `llmc tune` (default: those that llmc ships)")  # fmt: skip

    weights = parser.add_argument_group("weights")
    add_option(weights, "strip_weights", "strip_plan", action="store_true",
               help="write no weights, bind them later with `llmc refit`; a config.json is enough")  # fmt: skip

    work = parser.add_argument_group("looking inside")
    add_option(work, "emit", choices=[phase.value for phase in EMITTABLE], metavar="LEVEL",
               help="stop at a level of IR and print it, or write it to -o:\n" + emit_help())  # fmt: skip
    add_option(work, "dump_ir", type=Path, metavar="DIR", help="write the IR after every phase and pass into DIR")
    add_option(work, "locations", action="store_true", help="with --emit: print where each op comes from")

    # For comparisons; the choice of users is the target's own.
    add_option(work, "kernels", default=defaults.kernels, help=argparse.SUPPRESS)

    run = parser.add_argument_group("the compiler itself")
    add_option(run, "threads", "workers", type=int, default=0, help="worker threads; 0: one a CPU")
    add_option(run, "cache_dir", type=Path, help="kernel cache (default: $LLMC_CACHE_DIR or ~/.cache/llmc)")
    add_option(run, "no_cache", action="store_true", help="neither read nor write the kernel cache")
    add_option(run, "quiet", short="q", action="store_true", help="no progress, no summary")


def run(arguments: argparse.Namespace) -> int:
    options = CompileOptions(
        target=arguments.target,
        kernels=arguments.kernels,
        dtype=arguments.dtype,
        kv_cache_dtype=arguments.kv_cache_dtype,
        max_batch_size=arguments.max_batch_size,
        max_num_tokens=arguments.max_num_tokens,
        max_seq_len=arguments.max_seq_len,
        block_size=arguments.block_size,
        model_name=arguments.model_name,
        strip_weights=arguments.strip_weights,
        **chosen(arguments),
        schedules=arguments.schedules,
        cache_dir=arguments.cache_dir,
        use_cache=not arguments.no_cache,
        threads=arguments.threads,
    )
    if arguments.output is None and not arguments.emit:
        raise OptionError("where to? Name the engine with -o ENGINE, or stop at a level with --emit")
    # After the cheap checks: what follows imports MLIR and torch.
    from llmc.compiler.driver import Compilation

    compilation = Compilation(
        arguments.model, options, progress=make_progress(arguments.quiet), dump_dir=arguments.dump_ir
    )
    if arguments.emit:
        return _emit(compilation, find_phase(arguments.emit), arguments)
    start = time.perf_counter()
    summary = compilation.write_engine(arguments.output, force=arguments.force)
    for warning in summary.warnings:
        print(f"llmc: warning: {warning}", file=sys.stderr)
    if not arguments.quiet:
        if summary.quality:
            print(summary.quality, file=sys.stderr)
        print(f"{summary} in {time.perf_counter() - start:.1f} s", file=sys.stderr)
        print(_next_step(arguments), file=sys.stderr)
    return 0


def _emit(compilation: Compilation, phase: Phase, arguments: argparse.Namespace) -> int:
    text = compilation.emit(phase, locations=arguments.locations)
    if arguments.output is None:
        print(text)
    else:
        from llmc.compiler.disk import disk_errors

        with disk_errors(arguments.output):
            arguments.output.write_text(text + "\n", encoding="utf-8")
    return 0


def _next_step(arguments: argparse.Namespace) -> str:
    if arguments.strip_weights:
        return f"bind weights with: llmc refit {arguments.output} CHECKPOINT"
    return f"try it with: llmc chat {arguments.output}"


def _lines(known: dict[str, str]) -> str:
    return "\n".join(f"{name:11} {summary}" for name, summary in known.items())
