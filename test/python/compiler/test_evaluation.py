"""`llmc eval`: windows and metrics against brute force, an engine against transformers, and wrong input."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from support import tiny_llama

from llmc.compiler.cli import main
from llmc.compiler.evaluation import (
    Agreement,
    EngineScorer,
    Question,
    TransformersScorer,
    Window,
    agreement,
    choice,
    perplexity,
    read_questions,
    windows,
)
from llmc.compiler.evaluation.choice import continuation
from llmc.errors import CompileError, OptionError
from llmc.runtime import load_engine

VOCAB = 11


class Bigram:
    """Logits of a token depend on the token before it."""

    name = "bigram"
    max_length = 64
    vocab_size = VOCAB

    def __init__(self, seed: int = 0):
        self.table = np.random.default_rng(seed).standard_normal((VOCAB, VOCAB)).astype(np.float32)

    def logits(self, windows: Sequence[Window]) -> Iterator[np.ndarray]:
        for window in windows:
            yield self.table[[window.tokens[row] for row in window.rows]]

    def logp(self, before: int, after: int) -> float:
        row = self.table[before].astype(np.float64)
        return float(row[after] - np.log(np.exp(row).sum()))


@pytest.mark.parametrize("length", [2, 3, 5, 8])
@pytest.mark.parametrize("bos", [None, 7])
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 23])
def test_windows_predict_each_token_once(length: int, bos: int | None, count: int) -> None:
    ids = list(range(100, 100 + count))
    body = length - (bos is not None)
    for stride in range(1, body + 1):
        parts = list(windows(ids, length, stride, bos))
        predicted = [token for w in parts for token in w.targets]
        assert predicted == sorted(set(predicted)), "none twice, in order"
        missing = [token for token in ids if token not in predicted]
        if bos is not None:
            assert missing == []
        elif stride < body:
            assert missing == ids[:1]
        else:
            assert missing == ids[::body], "the first of each window has no context"
        for w in parts:
            assert len(w.tokens) <= length
            assert bos is None or w.tokens[0] == bos
            assert len(w.rows) == len(w.targets) > 0


def test_windows_refuse_what_makes_no_sense() -> None:
    for length, stride, bos in [(1, None, None), (8, 9, None), (8, 0, None), (8, 8, 3), (1, None, 3)]:
        with pytest.raises(OptionError, match="expected 2 or more"):
            list(windows([1, 2, 3], length, stride, bos))


def test_perplexity_is_the_mean_over_tokens() -> None:
    model = Bigram()
    ids = np.random.default_rng(1).integers(0, VOCAB, 50).tolist()
    logps = [model.logp(a, b) for a, b in itertools.pairwise(ids)]
    result = perplexity(model, list(windows(ids, 16, 7)))
    assert result.tokens == 49
    assert result.loss == pytest.approx(-sum(logps) / 49, rel=1e-12)
    assert result.perplexity == pytest.approx(math.exp(-sum(logps) / 49))
    assert result.standard_error == pytest.approx(np.std(logps, ddof=1) / 7, rel=1e-9)


def test_agreement_against_the_definitions() -> None:
    model, reference = Bigram(0), Bigram(3)
    ids = np.random.default_rng(2).integers(0, VOCAB, 40).tolist()
    result = agreement(model, reference, list(windows(ids, 40)))
    kl = same = 0.0
    for before in ids[:-1]:
        p = [math.exp(reference.logp(before, t)) for t in range(VOCAB)]
        kl += sum(x * (math.log(x) - model.logp(before, t)) for t, x in enumerate(p))
        same += model.table[before].argmax() == reference.table[before].argmax()
    assert result.kl_divergence == pytest.approx(kl / 39, rel=1e-9)
    assert result.top1_agreement == pytest.approx(same / 39)
    rows = ids[:-1]
    difference = np.abs(model.table[rows] - reference.table[rows])
    assert result.mean_abs_logit_difference == pytest.approx(difference.mean(), rel=1e-5)
    assert result.max_abs_logit_difference == pytest.approx(difference.max())
    assert result.reference_perplexity == pytest.approx(perplexity(reference, list(windows(ids, 40))).perplexity)
    own = agreement(model, model, list(windows(ids, 40)))
    assert (own.top1_agreement, own.kl_divergence) == (1.0, 0.0)


def test_logits_that_are_not_finite_are_refused() -> None:
    bad = np.zeros((2, VOCAB), np.float32)
    bad[1, 4] = np.nan
    with pytest.raises(CompileError, match="row 1 have NaN or infinity"):
        Agreement().add(bad, np.zeros_like(bad), [0, 0])


def letters(text: str) -> list[int]:
    return [ord(c) - ord("a") for c in text if c != " "]


def test_choice_takes_the_likeliest_text() -> None:
    model = Bigram(5)
    rng = np.random.default_rng(6)
    questions, right, normalized = [], 0, 0
    for _ in range(40):
        context, *choices = ("".join(rng.choice(list("abcdefghijk"), size=n)) for n in (4, 1, 3, 6))
        answer = int(rng.integers(3))
        questions.append(Question(context, tuple(choices), answer))
        sums = []
        for text in choices:
            ids = letters(context[-1] + text)
            sums.append(sum(model.logp(a, b) for a, b in itertools.pairwise(ids)))
        right += int(np.argmax(sums)) == answer
        normalized += int(np.argmax([s / len(c) for s, c in zip(sums, choices, strict=True)])) == answer
    result = choice(model, letters, questions)
    assert (result.accuracy, result.normalized_accuracy) == (right / 40, normalized / 40)
    assert 0 < right != normalized, "the two figures are told apart"


def test_a_long_context_is_cut_at_its_beginning() -> None:
    window = continuation(letters, "a" * 100, "bcd", 10)
    assert window.tokens == (*[0] * 7, 1, 2, 3)
    assert window.targets == (1, 2, 3)
    with pytest.raises(OptionError, match="cannot be scored"):
        continuation(letters, "a", "b" * 70, 64)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(checkpoint, engine) of a random Llama."""
    root = tmp_path_factory.mktemp("evaluation")
    model = tiny_llama.save_model(root / "tiny")
    assert main(["compile", str(model), "-o", str(root / "engine"), "--quiet"]) == 0
    return model, root / "engine"


def test_engine_scores_as_transformers_does(built: tuple[Path, Path]) -> None:
    model, path = built
    reference = TransformersScorer(model)
    ids = np.random.default_rng(0).integers(3, reference.vocab_size, 90).tolist()
    parts = list(windows(ids, 32, 16))
    with load_engine(path) as engine:
        scorer = EngineScorer(engine)
        close = agreement(scorer, reference, parts)
        ours, theirs = perplexity(scorer, parts), perplexity(reference, parts)
    assert close.top1_agreement > 0.98
    assert close.kl_divergence < 1e-6
    # Float32 arithmetic in another order: some 1e-5 in a logit.
    assert ours.loss == pytest.approx(theirs.loss, abs=1e-4)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["eval", *map(str, arguments)]) == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return error


def test_the_command_writes_its_figures(
    built: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, engine = built
    text = tmp_path / "text.txt"
    text.write_text("hello world, this is a text for a model. " * 20)
    out = tmp_path / "figures.json"
    same = ["--quiet", "--json", str(out)]
    on_text = ["--text", str(text), "--window", "24", *same]
    assert main(["eval", "perplexity", str(engine), *on_text]) == 0
    found = json.loads(out.read_text())
    assert found["perplexity"] == pytest.approx(math.exp(found["loss"]))
    assert found["settings"]["text"] == ["text.txt"]
    assert main(["eval", "agreement", str(engine), str(model), *on_text]) == 0
    assert json.loads(out.read_text())["top1_agreement"] > 0.98
    assert main(["eval", "agreement", str(engine), str(engine), *on_text]) == 0
    assert json.loads(out.read_text())["kl_divergence"] == 0.0
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"context": "one ", "choices": ["two", "three"], "answer": 1}\n' * 3)
    assert main(["eval", "choice", str(engine), "--questions", str(questions), "--limit", "2", *same]) == 0
    found = json.loads(out.read_text())
    assert found["questions"] == 2
    assert found["accuracy"] in (0.0, 1.0)
    assert "accuracy" in capsys.readouterr().out


def test_wrong_input_gets_one_clear_error(
    built: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, engine = built
    text = tmp_path / "text.txt"
    text.write_text("hello world " * 50)
    latin = tmp_path / "latin.txt"
    latin.write_bytes(b"caf\xe9")
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    assert "cannot read" in refused(capsys, "perplexity", engine, "--text", tmp_path / "none.txt")
    assert "no UTF-8" in refused(capsys, "perplexity", engine, "--text", latin)
    assert "fewer than two" in refused(capsys, "perplexity", engine, "--text", empty)
    assert "expected 2 or more" in refused(capsys, "perplexity", engine, "--text", text, "--window", 1)
    assert "lower --window" in refused(capsys, "perplexity", engine, "--text", text, "--window", 100000)
    assert "--tokens 0" in refused(capsys, "perplexity", engine, "--text", text, "--tokens", 0)
    assert "does not exist" in refused(capsys, "agreement", engine, tmp_path / "no", "--text", text, "--window", 16)
    questions = tmp_path / "q.jsonl"
    for line, part in [
        ("{", "expected"),
        ('{"context": "a"}', "expected"),
        ('{"context": "a", "choices": ["b"], "answer": 0}', "two or more"),
        ('{"context": "a", "choices": ["b", "c"], "answer": 2}', "no index"),
        ('{"context": "a", "choices": ["b", ""], "answer": 0}', "no choice empty"),
        ("", "no questions"),
    ]:
        questions.write_text(line)
        assert part in refused(capsys, "choice", engine, "--questions", questions)
    with pytest.raises(CompileError, match="cannot read"):
        read_questions(tmp_path / "none.jsonl")
