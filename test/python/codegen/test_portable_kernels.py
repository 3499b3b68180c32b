"""The kernels of codegen/sm80 and codegen/gpu for every GPU: ptxas takes each without a fault.

The assembler gate (no spills, no stack, no C75xx) is part of `compile_kernel`. What the kernels
compute is checked on a GPU of any kind by test/gpu, from the same generators.
"""

from __future__ import annotations

import dataclasses
import re

import kernel_cases
import pytest
from mlir import ir

from llmc.codegen.chips import CHIPS
from llmc.codegen.gpu.generator import compile_kernel
from llmc.codegen.kernel import UnsupportedKernel

#: With the kernels of every GPU also where there are faster ones.
PORTABLE = {name: dataclasses.replace(chip, hopper=False) for name, chip in CHIPS.items()}
LIMITS = {"max_num_tokens": 4096}
CASES = {case["name"]: case for case in kernel_cases.portable_cases()}
#: Every kind, epilogue and head dimension once; sm_80 compiles all cases.
FEW = [
    "embedding_1000x100", "rms_norm_4096", "layer_norm_770", "rope_table_64", "sample_1001",
    "rope_append_32x8x128", "linear_residual_in_place_4096x4096", "linear_glu_28672x4096", "linear_f32_49152x576",
    "linear_bias_1001x520", "attention_9x3x64", "attention_6x2x96", "attention_32x8x128", "attention_8x4x256",
    "attention_16x4x128_w100_cap", "attention_16x2x64_w1000_sinks",
]  # fmt: skip


@pytest.fixture(scope="module")
def context() -> ir.Context:
    from llmc.dialects import register

    return register(ir.Context())


def compile_text(context, text, chip, limits=LIMITS):
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        return compile_kernel(module.body.operations[0], chip, limits)


@pytest.mark.parametrize(
    ("arch", "name"), [(arch, name) for arch in PORTABLE for name in (CASES if arch == "sm_80" else FEW)]
)
def test_assembles(context, arch, name):
    chip = PORTABLE[arch]
    kernel = compile_text(context, CASES[name]["text"], chip)
    assert kernel.name == name
    for variant in kernel.variants:
        for launch in variant.launches:
            entry = launch.entry
            assert entry.code.data.startswith(b"\x7fELF")
            assert entry.spill_bytes == 0
            assert entry.shared_bytes <= chip.shared_bytes
            assert entry.registers * entry.block[0] <= 65536
            assert not any("tensor_map" in argument for argument in launch.arguments)
    ptx = kernel.ir["ptx"]
    assert f".target {chip.arch}" in ptx
    assert not re.search(r"wgmma|mbarrier|cp\.async\.bulk|setmaxnreg", ptx)
    if arch in ("sm_80", "sm_86", "sm_89"):
        assert not re.search(r"griddepcontrol|elect\.sync|fence\.proxy", ptx)
        assert not any(launch.entry.pdl for variant in kernel.variants for launch in variant.launches)
    else:
        assert all(launch.entry.pdl for variant in kernel.variants for launch in variant.launches)


@pytest.mark.parametrize("name", ["linear_bf16_960x576", "attention_32x8x128"])
def test_tensor_cores_are_fed_by_asynchronous_copies(context, name):
    ptx = compile_text(context, CASES[name]["text"], PORTABLE["sm_80"]).ir["ptx"]
    for instruction in ("mma.sync", "ldmatrix", "cp.async.cg.shared.global", "cp.async.wait_group"):
        assert instruction in ptx


@pytest.mark.parametrize("name", ["linear_bf16_960x576", "attention_32x8x128"])
@pytest.mark.parametrize("max_tokens", [1, 16, 17, 64, 65, 4096])
def test_variants_cover_every_token_count_once(context, name, max_tokens):
    kernel = compile_text(context, CASES[name]["text"], PORTABLE["sm_80"], {"max_num_tokens": max_tokens})
    next_tokens = 1
    for variant in kernel.variants:
        assert variant.min_tokens == next_tokens <= max_tokens
        next_tokens = None if variant.max_tokens is None else variant.max_tokens + 1
    assert next_tokens is None


def test_f16(context):
    for name in ("linear_bias_1001x520_f16", "attention_6x2x96_f16"):
        ptx = compile_text(context, CASES[name]["text"], PORTABLE["sm_80"]).ir["ptx"]
        assert "f32.f16.f16.f32" in ptx
        assert "f32.bf16.bf16.f32" not in ptx


def test_hopper_keeps_its_own_kernels(context):
    assert "wgmma" in compile_text(context, CASES["linear_bf16_960x576"]["text"], CHIPS["sm_90"]).ir["ptx"]


def test_hopper_takes_the_attention_of_every_gpu_where_its_own_has_no_tile(context):
    for name in ("attention_6x2x96", "attention_4x2x80_w70"):
        kernel = compile_text(context, CASES[name]["text"], CHIPS["sm_90"])
        assert "mma.sync" in kernel.ir["ptx"]
        assert "wgmma" not in kernel.ir["ptx"]


@pytest.mark.parametrize("arch", PORTABLE)
@pytest.mark.parametrize("n", [64, 576, 6144, 128256])
@pytest.mark.parametrize("tokens", [1, 64, 65, 8192])
def test_rings_fit_the_chip(arch, n, tokens):
    from llmc.codegen.sm80 import linear

    chip = PORTABLE[arch]
    for config in linear.CONFIGS:
        stages = config.stages(n, tokens, chip)
        used = stages * config.stage_bytes + config.staging_bytes
        assert stages >= 3
        assert used <= chip.shared_bytes
        many = -(-n // config.rows) * -(-tokens // config.tokens) > chip.multiprocessors
        if many and chip.shared_bytes > 160 * 1024:
            assert 2 * (used + linear.RESERVED) <= chip.shared_bytes + linear.RESERVED


REFUSED = {
    "head dimension": (
        """!kv = !llm.kv<heads = 2, head_dim = 72, v_head_dim = 72, block = 64, element = bf16>
llm.kernel @a(%q: tensor<?x4x72xbf16>, %kv: !kv, %batch: !llm.batch)
    -> tensor<?x4x72xbf16> attributes {anchor = "attention"} {
  %o = llm.paged_attention %q, %kv, %batch {scale = 1.0 : f64, causal} : tensor<?x4x72xbf16>, !kv -> tensor<?x4x72xbf16>
  llm.yield %o : tensor<?x4x72xbf16>
}""",
        "in steps of 16 up to 256",
    ),
    "odd K": (
        """llm.kernel @l(%x: tensor<?x60xbf16>, %w: tensor<64x60xbf16>)
    -> tensor<?x64xf32> attributes {anchor = "linear"} {
  %y = llm.linear %x, %w : tensor<?x60xbf16>, tensor<64x60xbf16> -> tensor<?x64xf32>
  llm.yield %y : tensor<?x64xf32>
}""",
        "multiple of 8",
    ),
    "8-bit floats": (
        kernel_cases.linear(64, 64, float8=True)["text"],
        "the input in bf16 or f16",
    ),
    "unknown kind": (
        """llm.kernel @m(%x: tensor<?x64xbf16>)
    -> tensor<?x64xbf16> attributes {anchor = "moe"} {
  llm.yield %x : tensor<?x64xbf16>
}""",
        "sm_80 has no kernel of kind 'moe'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_what_it_cannot_make(context, name):
    text, message = REFUSED[name]
    with pytest.raises(UnsupportedKernel, match=message):
        compile_text(context, text, PORTABLE["sm_80"])
