"""--qformat from the command line to logits."""

import numpy as np
import pytest
from support import tiny_llama

from llmc.compiler.cli import main

PROMPT = [256, 72, 101, 108, 108, 111, 44, 32, 119, 111, 114, 108, 100]


@pytest.fixture(scope="module", params=[False, True], ids=["untied", "tied"])
def model(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("quantized") / "model"
    return tiny_llama.save_model(path, head_dim=64, intermediate_size=128, tie_word_embeddings=request.param)


def compile_model(model, out, *options):
    command = ["compile", str(model), "-o", str(out), "--quiet", "--no_cache", "--max_num_tokens", "64"]
    assert main([*command, "--max_batch_size", "4", *options]) == 0
    return out


def logits(engine):
    from llmc.runtime import load_engine

    with load_engine(engine) as loaded:
        return loaded.forward([PROMPT])[0].astype(np.float64)


OPTIONS = ["--quantize_lm_head", "--no_quality_gate"]  # random weights predict nothing


# Error of one product over its value: of a code with 3 bits behind the leading one 2^-4 / sqrt(3) / sqrt(2)
# at worst, of weights and inputs; of integers 1 / sqrt(12) steps, 127 or 7 of which are about three standard
# deviations. Nine linears in a row (two layers and the head) add up to three times that in quadrature.
@pytest.mark.parametrize(("format", "error"), [("fp8_rowwise", 0.037), ("int8_wo", 0.007), ("int4_wo", 0.124)])
def test_logits_stay_near_those_of_the_plain_engine(model, tmp_path, format, error):
    plain = logits(compile_model(model, tmp_path / "plain"))
    quantized = logits(compile_model(model, tmp_path / "quantized", "--qformat", format, *OPTIONS))
    found = np.linalg.norm(quantized - plain) / np.linalg.norm(plain)
    assert 0 < found < 2 * 3 * error


def test_inspect_and_refit_know_the_format(model, tmp_path, capsys):
    whole = compile_model(model, tmp_path / "whole", "--qformat", "fp8_rowwise", "--exclude", "*.layers.0.*")
    stripped = compile_model(
        model, tmp_path / "stripped", "--qformat", "fp8_rowwise", "--exclude", "*.layers.0.*", "--strip_weights"
    )
    assert main(["refit", str(stripped), str(model)]) == 0
    assert (whole / "weights.safetensors").read_bytes() == (stripped / "weights.safetensors").read_bytes()
    capsys.readouterr()
    assert main(["inspect", str(whole), "--weights"]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    assert " bf16 " in rows["model.layers.0.self_attn.qkv_proj.weight"]
    assert " f8e4m3 " in rows["model.layers.1.self_attn.qkv_proj.weight"]
    assert " f32 " in rows["model.layers.1.self_attn.qkv_proj.weight_scale"]
    assert main(["inspect", str(whole)]) == 0
    assert "quantization fp8_rowwise" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--qformat", "int8_wo", "--exclude", "*.nothing"],
            "exclude pattern '*.nothing' names no linear; linears are",
        ),
        (["--qformat", "int8_wo", "--exclude", "*"], "nothing is left to quantize"),
        (["--qformat", "fp8_rowwise", "--target", "sm_80"], "target sm_80 takes none; targets that run it: host"),
        (["--exclude", "*"], "name a format"),
        (["--qformat", "int8_wo", "--exclude", "a{b}"], "expected a glob over names of layers"),
    ],
)
def test_refusals(model, tmp_path, capsys, options, message):
    assert main(["compile", str(model), "-o", str(tmp_path / "e"), "--quiet", *options]) == 2
    assert message in capsys.readouterr().err


def test_groups_that_do_not_divide_a_layer_are_refused_by_its_name(tmp_path, capsys):
    odd = tiny_llama.save_model(tmp_path / "odd", intermediate_size=96)
    command = ["compile", str(odd), "-o", str(tmp_path / "e"), "--quiet", "--qformat", "int4_wo"]
    assert main(command) == 2
    message = "'model.layers.1.mlp.down_proj.weight' has 96 in features, which groups of 64 do not divide"
    assert message in capsys.readouterr().err
    assert main([*command, "--exclude", "*.down_proj"]) == 0
