import dataclasses

import pytest

from llmc.codegen.chips import CHIPS
from llmc.compiler.options import CompileOptions, parse_dtype
from llmc.compiler.phases import EMITTABLE, Phase, emit_help
from llmc.compiler.targets import find_target, host_target, known_targets
from llmc.errors import OptionError, TargetError


@pytest.mark.parametrize("text", ["bfloat16", "bf16", "BFloat16"])
def test_dtype_spellings(text):
    assert parse_dtype(text, "dtype") == "bf16"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"exclude": ("*",)}, "say what --qformat quantizes: name a format"),
        ({"qformat": "int8_wo", "exclude": ("{a}",)}, "expected a glob over names of layers"),
        ({"max_batch_size": 0}, "--max_batch_size 0: expected at least 1"),
        ({"max_batch_size": 64, "max_num_tokens": 32}, "a decode step has one token for each sequence"),
        ({"max_seq_len": 1}, "expected at least 2"),
        ({"threads": -1}, "expected at least 0"),
    ],
)
def test_refused_values(changes, message):
    with pytest.raises(OptionError, match=message):
        CompileOptions(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"qformat": "fp8"}, "fp8 is not there yet: target host takes none, fp8_rowwise, int8_wo, int4_wo"),
        ({"qformat": "fp7"}, "fp7: no such format; target host takes none, fp8_rowwise"),
        ({"qformat": "int4_wo", "target": "sm_86"}, "target sm_86 takes none; targets that run it: host"),
        ({"dtype": "int3"}, "expected one of auto, bfloat16"),
        ({"target": "sm_90", "dtype": "float32"}, "target sm_90 takes bf16, f16 or auto"),
        ({"target": "sm_90", "block_size": 48}, "target sm_90 takes 64"),
        ({"target": "host", "kv_cache_dtype": "bfloat16"}, "target host takes f32 or auto"),
    ],
)
def test_values_that_the_target_refuses(changes, message):
    with pytest.raises(OptionError, match=message):
        CompileOptions(**changes).resolve()


def test_auto_takes_the_first_choice_of_the_target():
    host = CompileOptions(target="x86-64-v3").resolve()
    assert (host.weight_dtype, host.activation_dtype, host.kv_cache_dtype, host.block_size) == (
        "bf16",
        "f32",
        "f32",
        64,
    )
    gpu = CompileOptions(target="sm_90", dtype="half").resolve()
    assert (gpu.weight_dtype, gpu.activation_dtype, gpu.kv_cache_dtype) == ("f16", "f16", "f16")


def test_options_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CompileOptions().target = "sm_90"


def test_unknown_target_lists_the_known_ones():
    with pytest.raises(TargetError) as error:
        find_target("sm_91")
    assert "did you mean sm_90?" in str(error.value)
    assert all(name in str(error.value) for name in known_targets())


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sm_75", "kernels need what came with sm_80"),
        ("sm_87", "did you mean sm_86?"),
        ("sm_90a", "did you mean sm_90?"),
        ("sm_103", "did you mean sm_100?"),
        ("sm_121", "did you mean sm_120?"),
        ("x86-64-v2", "did you mean x86-64-v"),
    ],
)
def test_unknown_target_says_what_to_do(name, hint):
    with pytest.raises(TargetError, match=hint):
        find_target(name)


def test_no_hint_where_no_gpu_of_the_generation_is_known():
    with pytest.raises(TargetError) as error:
        find_target("sm_110")
    assert "did you mean" not in str(error.value)


@pytest.mark.parametrize("name", CHIPS)
def test_every_chip_is_a_target(name):
    target = find_target(name)
    assert target.chip == CHIPS[name]
    assert target.arch in (name, f"{name}a")


def test_portable_kernels_are_a_choice_of_gpus():
    native = CompileOptions(target="sm_90").resolve().target
    portable = CompileOptions(target="sm_90", kernels="portable").resolve().target
    assert native.chip.hopper
    assert not portable.chip.hopper
    # A cache must not mix them up.
    assert native.fingerprint != portable.fingerprint
    assert CompileOptions(target="sm_80", kernels="portable").resolve().target == find_target("sm_80")
    for changes in ({"target": "sm_90", "kernels": "fast"}, {"target": "host", "kernels": "portable"}):
        with pytest.raises(TargetError, match="--kernels"):
            CompileOptions(**changes).resolve()


def test_host_never_asks_for_amx():
    assert not [feature for feature in host_target().features if "amx" in feature]


def test_named_cpu_levels_do_not_depend_on_the_machine():
    assert "avx2" in find_target("x86-64-v3").features
    assert set(find_target("x86-64-v3").features) < set(find_target("x86-64-v4").features)


def test_phases_are_ordered_and_described():
    assert [phase.value for phase in EMITTABLE] == ["torch", "llm", "kernels", "plan", "tile", "llvm", "ptx"]
    assert all(phase.summary and phase.value in emit_help() for phase in EMITTABLE)
    assert Phase.PLAN.reaches(Phase.LLM)
    assert not Phase.LLM.reaches(Phase.PLAN)
    assert sorted(phase.stage for phase in Phase) == [phase.stage for phase in Phase]
