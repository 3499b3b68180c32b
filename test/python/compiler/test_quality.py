"""The report of a quantizing compile and its gate."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from support import tiny_llama
from support.engine_files import DictSource

from llmc.compiler.cli import main
from llmc.compiler.dtypes import BY_NAME
from llmc.compiler.evaluation import AgreementResult
from llmc.compiler.quantization.codes import LIMITS, CodeFormat, quantize_rows
from llmc.compiler.quantization.gate import Limits, QualityError, check
from llmc.compiler.quantization.report import WeightReport
from llmc.compiler.weights import Weight, write_weights
from llmc.errors import OptionError


@pytest.mark.parametrize(("type", "group"), [("f8E4M3FN", 0), ("i8", 0), ("i8", 16), ("i4", 16)])
def test_report_against_float64(type: str, group: int) -> None:
    rng = np.random.default_rng(group + 1)
    rows = (rng.standard_normal((50, 48)) * np.exp2(rng.integers(-6, 6, (50, 1)))).astype(np.float32)
    rows[7] = 0
    format = CodeFormat(type, group)
    codes, scales = quantize_rows(rows, format)
    report = WeightReport()
    for begin in range(0, 50, 13):
        part = slice(begin, begin + 13)
        report.add("w", format, rows[part], codes[part], scales[part])
    [layer] = report

    exact = rows.astype(np.float64)
    values = codes.astype(np.float64)
    error = values * np.repeat(scales.astype(np.float64), 48 // scales.shape[1], axis=1) - exact
    # Squares of float32 with relative errors of a few 2^-24 each.
    assert layer.signal == pytest.approx((exact**2).sum(), rel=1e-5)
    assert layer.noise == pytest.approx((error**2).sum(), rel=1e-3)
    assert layer.signal_to_noise == pytest.approx(10 * math.log10((exact**2).sum() / (error**2).sum()), abs=0.01)
    assert layer.elements == rows.size
    assert layer.saturated == (np.abs(values) == LIMITS[type]).sum()
    assert layer.zeros == ((values == 0) & (exact != 0)).sum()
    assert layer.scales == (scales.min(), scales.max())
    expected: dict[int, int] = {}
    for scale in scales.flat:
        exponent = math.floor(math.log2(scale))
        expected[exponent] = expected.get(exponent, 0) + 1
    assert layer.histogram == expected


def test_weights_that_fit_exactly_have_no_noise_and_scales_of_one_are_named() -> None:
    report = WeightReport()
    rows = np.tile(np.array([[127.0, -5.0, 0.0]], np.float32), (4, 1))
    report.add("w", CodeFormat("i8", 0), rows, *quantize_rows(rows, CodeFormat("i8", 0)))
    [layer] = report
    assert layer.signal_to_noise == math.inf
    assert layer.to_json()["signal_to_noise_db"] is None
    assert report.warnings() == ["all scales are 1.0 in 1 of 1 layers (w, ...): were they lost?"]
    assert WeightReport().warnings() == []


@pytest.mark.parametrize("columns", [8, 6])
def test_the_writer_reports_each_weight_once_whatever_its_size(columns: int) -> None:
    """Codes of 3 * 6 bytes leave their scales unaligned, and those are written apart from them."""
    source = DictSource({"w": np.random.default_rng(0).standard_normal((3, columns)).astype(np.float32)})
    codes = Weight("w", BY_NAME["i8"], (3, columns), '#llm.codes<#llm.source<"w">, to = i8, group = 0>')
    scales = Weight("w_scale", BY_NAME["f32"], (3, 1), '#llm.scales<#llm.source<"w">, to = i8, group = 0>')
    with_report, without = bytearray(), bytearray()
    report = WeightReport()
    write_weights([codes, scales], source, with_report.extend, report=report)
    write_weights([codes, scales], source, without.extend)
    assert with_report == without
    assert [(layer.name, layer.elements) for layer in report] == [("w", 3 * columns)]


def result(kl: float, top1: float) -> AgreementResult:
    return AgreementResult(100, top1, kl, 1.0, 0.1, 1.0, 10.0, 9.0)


def test_the_gate_names_each_limit_that_is_missed() -> None:
    limits = Limits(0.1, 0.8)
    check(result(0.1, 0.8), limits, "int8_wo", [])
    with pytest.raises(QualityError, match=r"KL divergence 0\.2 nats, at most 0\.1 expected\. The noisiest .* a, b\."):
        check(result(0.2, 0.9), limits, "int8_wo", ["a", "b"])
    with pytest.raises(QualityError, match=r"top-1 agreement 70\.0%, at least 80\.0% expected"):
        check(result(0.05, 0.7), limits, "int8_wo", ["a"])
    with pytest.raises(QualityError, match="KL divergence nan nats"):
        check(result(math.nan, 0.9), limits, "int8_wo", ["a"])


@pytest.mark.parametrize(("kl", "top1", "message"), [(0, 0.5, "expected more than 0"), (1, 1.5, "expected 0 to 1")])
def test_impossible_limits_are_refused(kl: float, top1: float, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Limits(kl, top1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llama.save_model(tmp_path_factory.mktemp("quality") / "model", head_dim=64, intermediate_size=128)


def compile_model(model: Path, out: Path, *options: str) -> int:
    command = ["compile", str(model), "-o", str(out), "--no_cache", "--max_num_tokens", "64", "--max_batch_size", "2"]
    return main([*command, *options])


@pytest.mark.parametrize("target", ["host", "x86-64-v3"])
def test_a_report_lies_beside_the_engine(model: Path, tmp_path: Path, capsys, target: str) -> None:
    """An engine for another CPU is measured by one for this CPU."""
    out = tmp_path / "engine.llmc"
    assert compile_model(model, out, "--qformat", "int8_wo", "--target", target) == 0
    err = capsys.readouterr().err
    assert "model.layers.*.mlp.down_proj.weight" in err
    assert "quality gate: KL divergence" in err
    report = json.loads((tmp_path / "engine.llmc.quality.json").read_text())
    assert report["qformat"] == "int8_wo"
    assert len(report["layers"]) == 2 * 4
    # 8-bit integers of weights from a normal distribution: 127 steps are about 3.5 standard deviations.
    assert all(40 < layer["signal_to_noise_db"] < 48 for layer in report["layers"])
    assert 0 < report["gate"]["kl_divergence"] < 0.01
    assert report["gate"]["tokens"] > 400
    assert sorted(path.name for path in tmp_path.iterdir()) == ["engine.llmc", "engine.llmc.quality.json"]


def test_a_compile_beyond_the_limits_fails_and_leaves_nothing(model: Path, tmp_path: Path, capsys) -> None:
    options = ["--qformat", "int4_wo", "--max_kl_divergence", "1e-6", "--quiet"]
    assert compile_model(model, tmp_path / "engine", *options) == 2
    err = capsys.readouterr().err
    assert "--qformat int4_wo changes this model too much" in err
    assert "at most 1e-06 expected" in err
    assert list(tmp_path.iterdir()) == []


def test_the_gate_can_be_switched_off(model: Path, tmp_path: Path, capsys) -> None:
    assert compile_model(model, tmp_path / "engine", "--qformat", "int4_wo", "--no_quality_gate") == 0
    assert "quality gate: off" in capsys.readouterr().err
    report = json.loads((tmp_path / "engine.quality.json").read_text())
    assert report["gate"] is None
    assert len(report["layers"]) == 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max_kl_divergence", "1"], "they need a --qformat"),
        (["--qformat", "int8_wo", "--no_quality_gate", "--min_top1_agreement", "0.5"], "and no --no_quality_gate"),
        (["--qformat", "int8_wo", "--strip_weights", "--max_kl_divergence", "1"], "they need a --qformat, weights"),
        (["--qformat", "int8_wo", "--max_kl_divergence", "-1"], "--max_kl_divergence -1.0: expected more than 0"),
    ],
)
def test_options_that_contradict_each_other(model: Path, tmp_path: Path, capsys, options, message: str) -> None:
    assert compile_model(model, tmp_path / "engine", "--quiet", *options) == 2
    assert message in capsys.readouterr().err


def test_a_model_without_a_tokenizer_is_told_what_to_do(tmp_path: Path, capsys) -> None:
    model = tiny_llama.save_model(tmp_path / "model", head_dim=64, intermediate_size=128)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (model / name).unlink()
    assert compile_model(model, tmp_path / "engine", "--quiet", "--qformat", "int8_wo") == 2
    assert "has no tokenizer/tokenizer.json" in (err := capsys.readouterr().err)
    assert "--no_quality_gate compiles without" in err
    assert not (tmp_path / "engine").exists()
