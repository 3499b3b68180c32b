"""Completes one prompt and prints the text as it comes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from llmc.compiler.cli.arguments import add_option
from llmc.compiler.cli.generation import add_generation_options, loaded, print_stream, sampling_params


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("engine", metavar="ENGINE", type=Path, help="engine folder or .llmc file")
    parser.add_argument("prompt", metavar="PROMPT", help="the text to complete; - reads standard input")
    add_option(parser, "chat", action="store_true", help="the prompt is a question: apply the chat template")
    add_option(parser, "system", metavar="TEXT", help="system message, with --chat")
    add_generation_options(parser, max_tokens=128)


def run(arguments: argparse.Namespace) -> int:
    prompt = _prompt(arguments)
    with loaded(arguments) as llm:
        params = sampling_params(arguments, llm)
        if arguments.chat:
            messages = [{"role": "system", "content": arguments.system}] if arguments.system else []
            deltas = llm.chat_stream([*messages, {"role": "user", "content": prompt}], params)
        else:
            deltas = llm.generate_stream(prompt, params)
        print_stream(deltas, arguments.stats)
    return 0


def _prompt(arguments: argparse.Namespace) -> str:
    return sys.stdin.read() if arguments.prompt == "-" else str(arguments.prompt)
