"""Measures tokens/s of an engine under many requests at once, in this process."""

from __future__ import annotations

import argparse

from llmc.compiler.cli.bench.offline import add_offline_options, run_offline_kind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_offline_options(parser, num_requests=100, concurrency=None)


def run(arguments: argparse.Namespace) -> int:
    return run_offline_kind("throughput", arguments)
