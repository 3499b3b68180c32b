"""Shows what is in an engine: by default who it is for, its limits and its sizes."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from llmc.compiler.cli.arguments import add_option


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("engine", metavar="ENGINE", type=Path, help="engine folder or .llmc file")
    add_option(parser, "plan", action="store_true", help="the launches of each range of token counts")
    add_option(parser, "kernels", action="store_true", help="each kernel with registers and shared memory")
    add_option(parser, "memory", action="store_true", help="the arena: every buffer, its life, peak and lower bound")
    add_option(parser, "weights", action="store_true", help="each tensor: dtype, stored shape, recipe")
    add_option(parser, "verify", action="store_true", help="recompute every hash; exit code 2 on damage")
    add_option(parser, "json", action="store_true", help="the chosen sections as JSON")


def run(arguments: argparse.Namespace) -> int:
    from llmc.compiler import inspect
    from llmc.compiler.engine import Engine

    engine = Engine(arguments.engine)
    chosen = [name for name in inspect.SECTIONS if getattr(arguments, name, False)]
    if arguments.json:
        print(json.dumps(inspect.as_json(engine, chosen), indent=1, sort_keys=True))
    else:
        print("\n\n".join(inspect.SECTIONS[name](engine) for name in chosen or ["summary"]))
    if not arguments.verify:
        return 0
    damages = list(engine.verify())
    for damage in damages:
        print(damage, file=sys.stderr)
    if damages:
        print(f"{arguments.engine} is damaged: copy it again or recompile it", file=sys.stderr)
        return 2
    print(f"{arguments.engine}: every hash agrees", file=sys.stderr)
    return 0
