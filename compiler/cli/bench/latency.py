"""Measures time to the first token and between tokens of an engine, by default one request after the other."""

from __future__ import annotations

import argparse

from llmc.compiler.cli.bench.offline import add_offline_options, run_offline_kind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_offline_options(parser, num_requests=10, concurrency=1)


def run(arguments: argparse.Namespace) -> int:
    return run_offline_kind("latency", arguments)
