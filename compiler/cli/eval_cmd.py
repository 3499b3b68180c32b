"""Measures the quality of an engine: perplexity, agreement with a reference, multiple-choice accuracy."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmc.compiler.cli.arguments import HelpFormatter, add_option
from llmc.errors import CompileError, OptionError

if TYPE_CHECKING:
    from llmc.compiler.evaluation import Scorer, Window
    from llmc.runtime import Engine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", metavar="WHAT", required=True)

    def add(name: str, summary: str) -> argparse.ArgumentParser:
        one = kinds.add_parser(
            name, help=summary, description=summary, formatter_class=HelpFormatter, allow_abbrev=False
        )
        one.add_argument("engine", metavar="ENGINE", type=Path, help="engine folder or .llmc file")
        return one

    one = add("perplexity", "how well the engine predicts a text; lower is better")
    _add_text(one)
    _add_common(one)
    one = add("agreement", "how close the engine's distributions are to those of a reference on a text")
    one.add_argument("reference", metavar="REFERENCE", type=Path,
                     help="another engine, or what transformers runs: a Hugging Face folder or .gguf file")  # fmt: skip
    add_option(one, "reference_dtype", choices=["float32", "bfloat16"], default="float32",
               help="arithmetic of transformers")  # fmt: skip
    _add_text(one)
    _add_common(one)
    one = add("choice", "accuracy on multiple-choice questions")
    add_option(one, "questions", type=Path, required=True, metavar="FILE.jsonl",
               help='lines {"context": "...", "choices": ["...", "..."], "answer": 0}')  # fmt: skip
    add_option(one, "limit", type=int, help="only the first so many questions")
    _add_common(one)


def _add_text(parser: argparse.ArgumentParser) -> None:
    add_option(parser, "text", type=Path, nargs="+", required=True, metavar="FILE", help="UTF-8 text, one file or more")
    add_option(parser, "tokens", type=int, help="only the first so many tokens of the text")
    add_option(parser, "window", type=int, default=512, help="tokens that the model sees at once")
    add_option(parser, "stride", type=int, help="tokens from a window to the next; default: no overlap")
    add_option(parser, "bos", choices=["auto", "yes", "no"], default="auto",
               help="begin each window with the BOS token; auto: if the tokenizer adds one")  # fmt: skip


def _add_common(parser: argparse.ArgumentParser) -> None:
    add_option(parser, "json", type=Path, metavar="FILE", help="write the figures to a file")
    add_option(parser, "threads", "num_threads", type=int, help="worker threads of a host engine")
    add_option(parser, "device", type=int, default=0, help="number of the GPU")
    add_option(parser, "quiet", action="store_true", help="no progress on stderr")


def run(arguments: argparse.Namespace) -> int:
    from llmc.compiler.cli.generation import user_errors

    for name in ("tokens", "limit"):
        if (value := getattr(arguments, name, None)) is not None and value < 1:
            raise OptionError(f"--{name} {value}: expected 1 or more")
    with user_errors(), _loaded(arguments.engine, arguments) as engine:
        figures = _KINDS[arguments.kind](engine, arguments)
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):<28}{value:.6g}" if isinstance(value, float) else f"{name:<28}{value}")
    if arguments.json:
        report = {"kind": arguments.kind, "settings": _settings(arguments), **figures}
        try:
            arguments.json.write_text(json.dumps(report, indent=1) + "\n")
        except OSError as error:
            raise CompileError(f"cannot write {arguments.json}: {error.strerror}") from None
    return 0


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the figures depend on; files by name, since folders say nothing about a text."""
    chosen: dict[str, Any] = {}
    for name in ("text", "questions", "tokens", "limit", "window", "stride", "bos", "reference", "reference_dtype"):
        if (value := getattr(arguments, name, None)) is not None:
            names = [path.name for path in value] if isinstance(value, list) else None
            chosen[name] = names or (value.name if isinstance(value, Path) else value)
    return chosen


@contextlib.contextmanager
def _loaded(path: Path, arguments: argparse.Namespace) -> Iterator[Engine]:
    try:
        from llmc.runtime import load_engine
    except ImportError as error:
        raise CompileError(f"llmc was built without its runtime: {error}") from None
    with load_engine(path, num_threads=arguments.threads, device=arguments.device) as engine:
        yield engine


def _windows(engine: Engine, arguments: argparse.Namespace) -> list[Window]:
    from llmc.compiler.evaluation import read_text, windows

    tokenizer = engine.tokenizer
    ids = tokenizer.encode(read_text(arguments.text), add_special_tokens=False)[: arguments.tokens]
    return list(windows(ids, arguments.window, arguments.stride, _bos(engine, arguments.bos)))


def _bos(engine: Engine, choice: str) -> int | None:
    """The token that begins each window, or None."""
    if choice == "no":
        return None
    added = engine.tokenizer.encode("a")
    plain = engine.tokenizer.encode("a", add_special_tokens=False)
    if len(added) > len(plain) and added[-len(plain) :] == plain:
        return added[0]
    if choice == "auto":
        return None
    name = engine.tokenizer.special_tokens.get("bos_token")
    found = engine.tokenizer.backend.token_to_id(name) if name else None
    if found is None:
        raise OptionError("--bos yes: the tokenizer of the engine has no BOS token; use --bos no")
    return int(found)


def _progress(arguments: argparse.Namespace, label: str, total: int) -> contextlib.AbstractContextManager[Any]:
    from llmc.compiler.cli.console import make_progress

    return make_progress(arguments.quiet).task(label, total)


def _perplexity(engine: Engine, arguments: argparse.Namespace) -> dict[str, Any]:
    from llmc.compiler.evaluation import EngineScorer, perplexity

    parts = _windows(engine, arguments)
    with _progress(arguments, "perplexity", len(parts)) as advance:
        result = perplexity(EngineScorer(engine), parts, advance)
    return {"perplexity": result.perplexity, **dataclasses.asdict(result)}


def _agreement(engine: Engine, arguments: argparse.Namespace) -> dict[str, Any]:
    from llmc.compiler.evaluation import EngineScorer, agreement

    parts = _windows(engine, arguments)
    with _reference(arguments) as reference, _progress(arguments, "agreement", len(parts)) as advance:
        return dataclasses.asdict(agreement(EngineScorer(engine), reference, parts, advance))


@contextlib.contextmanager
def _reference(arguments: argparse.Namespace) -> Iterator[Scorer]:
    from llmc.compiler.evaluation import EngineScorer, TransformersScorer
    from llmc.compiler.evaluation.scorer import is_engine

    if is_engine(arguments.reference):
        with _loaded(arguments.reference, arguments) as engine:
            yield EngineScorer(engine)
    else:
        yield TransformersScorer(arguments.reference, arguments.reference_dtype)


def _choice(engine: Engine, arguments: argparse.Namespace) -> dict[str, Any]:
    from llmc.compiler.evaluation import EngineScorer, choice, read_questions

    questions = read_questions(arguments.questions)[: arguments.limit]
    with _progress(arguments, "choice", len(questions)) as advance:
        result = choice(EngineScorer(engine), engine.tokenizer.encode, questions, advance)
    errors = {
        f"{name}_standard_error": result.standard_error(getattr(result, name))
        for name in ("accuracy", "normalized_accuracy")
    }
    return dataclasses.asdict(result) | errors


_KINDS = {"perplexity": _perplexity, "agreement": _agreement, "choice": _choice}
