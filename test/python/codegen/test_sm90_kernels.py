"""Every sm_90 generator: its tile IR verifies, lowers, and ptxas takes it without a fault.

The assembler gate (no spills, no stack, no serialized wgmma) is part of `compile_kernel`; what the
kernels compute is checked on a GPU by test/gpu.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mlir import ir

from llmc.native import native_path

_GPU = Path(__file__).parents[2] / "gpu" / "kernel_cases.py"
_SPEC = importlib.util.spec_from_file_location("kernel_cases", _GPU)
assert _SPEC is not None and _SPEC.loader is not None
kernel_cases = importlib.util.module_from_spec(_SPEC)
sys.modules["kernel_cases"] = kernel_cases
_SPEC.loader.exec_module(kernel_cases)

LIMITS = {"max_num_tokens": 4096}


@pytest.fixture(scope="module")
def context() -> ir.Context:
    from llmc.dialects import register

    return register(ir.Context())


def _compile(context: ir.Context, text: str):
    from llmc.codegen.sm90 import compile_kernel

    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        return compile_kernel(module.body.operations[0], LIMITS)


@pytest.mark.parametrize("case", list(kernel_cases.hopper_cases()), ids=lambda case: case["name"])
def test_assembles(context, case):
    kernel = _compile(context, case["text"])
    assert kernel.name == case["name"]
    for variant in kernel.variants:
        for launch in variant.launches:
            assert launch.entry.code.data.startswith(b"\x7fELF")
            assert launch.entry.spill_bytes == 0
            assert launch.entry.shared_bytes <= 232448
            assert launch.entry.registers * launch.entry.block[0] <= 65536


def test_variants_cover_every_token_count_once(context):
    kernel = _compile(context, kernel_cases.linear(960, 576)["text"])
    next_tokens = 1
    for variant in kernel.variants:
        assert variant.min_tokens == next_tokens
        next_tokens = None if variant.max_tokens is None else variant.max_tokens + 1
    assert next_tokens is None


def test_tensor_core_instructions_are_used(context):
    kernel = _compile(context, kernel_cases.linear(6144, 4096)["text"])
    assert "wgmma.mma_async" in kernel.ir["ptx"]
    assert "cp.async.bulk.tensor" in kernel.ir["ptx"]
    attention = _compile(context, kernel_cases.attention(32, 8, 128)["text"])
    assert attention.ir["ptx"].count("wgmma.mma_async") >= 2


def test_sums_of_8_bit_floats_are_promoted(context):
    """Of the multiplies of 32 of K, one in four starts from zero: what it starts goes into a float32 sum."""
    ptx = _compile(context, kernel_cases.linear(4096, 14336, float8=True)["text"]).ir["ptx"]
    steps = re.findall(r"setp\.ne\.b32 p, (\d), 0;\s+wgmma\.mma_async\S+\.m64n\d+k32\.f32\.e4m3\.e4m3", ptx)
    assert steps
    assert len(steps) == ptx.count("wgmma.mma_async")
    assert [steps[i : i + 4] for i in range(0, len(steps), 4)] == [["0", "1", "1", "1"]] * (len(steps) // 4)


@pytest.mark.parametrize(
    "case", [kernel_cases.quantized_norm(576), kernel_cases.quantize(770)], ids=lambda c: c["name"]
)
def test_rows_are_quantized_where_they_are_made(context, case):
    ptx = _compile(context, case["text"]).ir["ptx"]
    assert "cvt.rn.satfinite.e4m3x2.f32" in ptx


def test_same_kernel_same_bytes(context):
    text = kernel_cases.norm(576)["text"]
    first, second = _compile(context, text), _compile(context, text)
    assert first.variants[0].launches[0].entry.code == second.variants[0].launches[0].entry.code


def test_ops_carry_the_line_of_their_generator(context):
    from llmc.codegen.gpu import norm

    with context, ir.Location.unknown():
        module = ir.Module.parse(kernel_cases.norm(576)["text"])
        kernel, _, _ = norm.build(module.body.operations[0])
        text = kernel.module.operation.get_asm(enable_debug_info=True)
    assert '"codegen/gpu/norm.py":' in text


FLOAT8 = kernel_cases.linear(64, 64, float8=True)["text"]
REFUSED = {
    "head dimension": (
        """!kv = !llm.kv<heads = 2, head_dim = 80, v_head_dim = 80, block = 64, element = bf16>
llm.kernel @a(%q: tensor<?x4x80xbf16>, %kv: !kv, %batch: !llm.batch)
    -> tensor<?x4x80xbf16> attributes {anchor = "attention"} {
  %o = llm.paged_attention %q, %kv, %batch {scale = 1.0 : f64, causal} : tensor<?x4x80xbf16>, !kv -> tensor<?x4x80xbf16>
  llm.yield %o : tensor<?x4x80xbf16>
}""",
        "key and value dimensions",
    ),
    "float32 weight": (
        """llm.kernel @l(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>)
    -> tensor<?x64xf32> attributes {anchor = "linear"} {
  %y = llm.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  llm.yield %y : tensor<?x64xf32>
}""",
        "the input in bf16 or f16",
    ),
    "odd K": (
        """llm.kernel @l(%x: tensor<?x60xbf16>, %w: tensor<64x60xbf16>)
    -> tensor<?x64xf32> attributes {anchor = "linear"} {
  %y = llm.linear %x, %w : tensor<?x60xbf16>, tensor<64x60xbf16> -> tensor<?x64xf32>
  llm.yield %y : tensor<?x64xf32>
}""",
        "multiple of 8",
    ),
    "split glu": (
        """llm.kernel @l(%x: tensor<?x64xbf16>, %w: tensor<64x64xbf16>)
    -> tensor<?x32xbf16> attributes {anchor = "linear"} {
  %0 = llm.linear %x, %w : tensor<?x64xbf16>, tensor<64x64xbf16> -> tensor<?x64xf32>
  %y = llm.packed_glu silu split %0 : tensor<?x64xf32> -> tensor<?x32xbf16>
  llm.yield %y : tensor<?x32xbf16>
}""",
        "blocks of 8",
    ),
    "scale of the tensor": (
        FLOAT8.replace("tensor<?x1xf32>", "tensor<f32>"),
        "one float32 scale for each row of x",
    ),
    "no scale of the input": (
        FLOAT8.replace(" input_scale(%xs : tensor<?x1xf32>)", ""),
        "row of x, found none",
    ),
    "odd K of 8-bit floats": (
        kernel_cases.linear(64, 56, float8=True)["text"],
        "multiple of 16",
    ),
    "scales of groups": (
        kernel_cases.quantize(64)["text"].replace("group = 0", "group = 16").replace("?x1xf32", "?x4xf32"),
        "rows of one length",
    ),
    "unknown kind": (
        """llm.kernel @m(%x: tensor<?x64xbf16>)
    -> tensor<?x64xbf16> attributes {anchor = "moe"} {
  llm.yield %x : tensor<?x64xbf16>
}""",
        "no kernel of kind 'moe'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_what_it_cannot_make(context, name):
    from llmc.codegen.sm90 import UnsupportedKernel, compile_kernel

    text, message = REFUSED[name]
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        with pytest.raises(UnsupportedKernel, match=message):
            compile_kernel(module.body.operations[0], LIMITS)


def test_a_long_sum_of_few_rows_is_split_over_pairs_of_blocks(context):
    """By the cost model: what was measured for these sizes may say otherwise."""
    from llmc.codegen.sm90 import compile_kernel
    from llmc.codegen.sm90.schedule_table import ScheduleTable

    with context, ir.Location.unknown():
        module = ir.Module.parse(kernel_cases.linear(4096, 14336, "residual")["text"])
        kernel = compile_kernel(module.body.operations[0], LIMITS, table=ScheduleTable("sm_90a"))
    clusters = {v.max_tokens: v.launches[0].entry.cluster for v in kernel.variants}
    assert clusters[32] == (1, 1, 1)
    assert clusters[64] == (2, 1, 1)


def test_a_residual_on_its_result_is_added_by_memory(context):
    """Whether it lies there is known at the launch, so both ways are in the kernel."""
    ptx = _compile(context, kernel_cases.linear(4096, 4096, "residual")["text"]).ir["ptx"]
    assert "cp.reduce.async.bulk.tensor" in ptx
    assert "cp.async.bulk.tensor.2d.global.shared" in ptx
    assert "atom.global.add.f32" in ptx
    for epilogue in ("bf16", "f32", "bias", "glu"):
        assert "cp.reduce.async" not in _compile(context, kernel_cases.linear(960, 576, epilogue)["text"]).ir["ptx"]


BODY = """llm.kernel @l(%x: tensor<?x64xbf16>, %w: tensor<64x64xbf16>, %h: tensor<?x64xf32>)
    -> tensor<?x64xf32> attributes {{anchor = "linear"}} {{
  %y = llm.linear %x, %w : tensor<?x64xbf16>, tensor<64x64xbf16> -> tensor<?x64xf32>
{0}
  llm.yield %r : tensor<?x64xf32>
}}"""


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("  %r = arith.addf %h, %y : tensor<?x64xf32>", True),
        ("  %r = arith.addf %y, %h : tensor<?x64xf32>", True),
        ("  %r = arith.mulf %h, %y : tensor<?x64xf32>", False),
        # The residual is read twice: memory cannot do that.
        ("  %z = arith.mulf %h, %y : tensor<?x64xf32>\n  %r = arith.addf %z, %h : tensor<?x64xf32>", False),
    ],
)
def test_residual_sums_are_recognised(context, lines, found):
    from llmc.codegen.gpu.body import Body
    from llmc.codegen.gpu.linear_body import LinearBody

    with context, ir.Location.unknown():
        module = ir.Module.parse(BODY.format(lines))
        linear = LinearBody(Body(module.body.operations[0]))
        assert (linear.residual_sum() is not None) == found


@pytest.mark.parametrize("element_bytes", [2, 4])
@pytest.mark.parametrize("columns", [256, 224, 192, 160, 128, 112, 96, 80, 64, 48, 32])
def test_parts_of_an_epilogue_cover_its_columns(columns, element_bytes):
    from llmc.codegen.sm90.linear_store import parts

    for loads in (False, True):
        part, slab = parts(columns, element_bytes, loads)
        assert columns % part == 0
        assert part % slab == 0
        assert slab * element_bytes in (32, 64, 128)


def test_a_failing_pass_leaves_a_reproducer(context, tmp_path):
    """The whole of `tile-to-nvvm` fails by name, and llmc-opt replays the failure."""
    from llmc.codegen.chips import CHIPS
    from llmc.codegen.gpu.generator import compile_kernel
    from llmc.errors import InternalError
    from llmc.passes import PassRunner

    chip = dataclasses.replace(CHIPS["sm_80"], arch="sm_12")  # no such chip
    with context, ir.Location.unknown():
        module = ir.Module.parse(kernel_cases.embedding(1000, 100)["text"])
        with pytest.raises(InternalError) as error:
            compile_kernel(module.body.operations[0], chip, LIMITS, PassRunner(reproducer_dir=tmp_path))
    assert "replay it with: llmc-opt --run-reproducer" in str(error.value)
    command = [native_path("bin/llmc-opt"), "--run-reproducer", error.value.reproducer]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


def test_maps_have_the_type_of_their_tensors(context):
    """Weights and activations in f16, as `--dtype float16` makes them."""
    kernel = _compile(context, kernel_cases.linear(960, 576)["text"].replace("bf16", "f16"))
    maps = [
        argument["tensor_map"]
        for variant in kernel.variants
        for launch in variant.launches
        for argument in launch.arguments
        if "tensor_map" in argument
    ]
    assert maps
    assert {fields["dtype"] for fields in maps} == {"f16"}
