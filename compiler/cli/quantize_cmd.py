"""Quantizes a model into a checkpoint in the layout of compressed-tensors, which other tools load too."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from llmc.compiler.cli.arguments import add_option
from llmc.compiler.cli.console import make_progress
from llmc.compiler.cli.quantization_options import add_quantization, chosen
from llmc.compiler.options import CompileOptions
from llmc.errors import OptionError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="Hugging Face folder or .gguf file")
    add_option(parser, "output", "output_dir", short="o", type=Path, required=True, metavar="CHECKPOINT",
               help="folder to write; it must not exist or be empty")  # fmt: skip
    add_quantization(parser.add_argument_group("quantization"), required=True)
    add_option(parser, "max_shard_size", type=float, default=5.0, metavar="GB", help="largest weight file")
    add_option(parser, "threads", "workers", type=int, default=0, help="worker threads; 0: one a CPU")
    add_option(parser, "quiet", short="q", action="store_true", help="no progress, no summary")


def run(arguments: argparse.Namespace) -> int:
    if not arguments.max_shard_size > 0:
        raise OptionError(f"--max_shard_size {arguments.max_shard_size}: expected more than 0 (GB)")
    options = CompileOptions(threads=arguments.threads, **chosen(arguments))
    # After the cheap checks: what follows imports MLIR and torch.
    from llmc.compiler.driver import Compilation
    from llmc.compiler.quantization.checkpoint_writer import write_checkpoint

    start = time.perf_counter()
    compilation = Compilation(arguments.model, options, progress=make_progress(arguments.quiet))
    summary = write_checkpoint(compilation, arguments.output, int(arguments.max_shard_size * 1e9))
    for warning in summary.warnings:
        print(f"llmc: warning: {warning}", file=sys.stderr)
    if not arguments.quiet:
        print(summary.quality, file=sys.stderr)
        print(f"{summary} in {time.perf_counter() - start:.1f} s", file=sys.stderr)
        print(f"compile it with: llmc compile {arguments.output} -o ENGINE", file=sys.stderr)
    return 0
