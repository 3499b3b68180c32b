import json

import pytest
from mlir import ir

from llmc.codegen.kernel import CodeObject, CompiledKernel, Entry, Launch, UnsupportedKernel, Variant
from llmc.compiler import kernels as module
from llmc.compiler.cache import CachedKernel, KernelCache
from llmc.compiler.kernels import compile_kernels, emit_kernels, pack_kernels, unpack_kernels
from llmc.compiler.options import CompileOptions
from llmc.compiler.phases import Phase
from llmc.dialects import register
from llmc.errors import InternalError, TargetError
from llmc.passes import PassRunner

SHARED, OWN = CodeObject("host", b"shared object"), CodeObject("cubin", b"")
SMALL = Launch(Entry("linear_0", SHARED), ("T", ["ceildiv", "R", 4], 1), ({"operand": 0}, {"f32": 0.5}))
LARGE = Launch(Entry("b", OWN, (128, 1, 1), (2, 1, 1), 1024, True, 168, 0), (1, 1, 1), ())
KERNELS = [
    CompiledKernel("linear_0", "linear", (Variant((SMALL,), 1, 8), Variant((LARGE,), 9, None, 512)), {"ptx": "// ptx"}),
    CompiledKernel("norm_0", "norm", (Variant((Launch(Entry("norm_0", SHARED), ("T", 1, 1), ()),)),)),
]
LIMITS = {"max_num_tokens": 64}


def test_kernels_survive_the_cache():
    entry = pack_kernels(KERNELS)
    again = unpack_kernels(CachedKernel(json.loads(json.dumps(entry.meta)), entry.code))
    assert again == KERNELS
    assert again[0].variants[0].launches[0].entry.code is again[1].variants[0].launches[0].entry.code


class FakeGenerator:
    """Counts how often it is asked."""

    def __init__(self):
        self.calls = 0

    def compile_kernels(self, module, target, limits, runner):
        self.calls += 1
        return KERNELS


@pytest.fixture
def generator(monkeypatch):
    fake = FakeGenerator()
    monkeypatch.setattr(module, "_generator", lambda resolved: fake)
    return fake


def outlined(body="%0 = arith.addf %x, %x : tensor<?xf32>"):
    text = f"""
    llm.kernel @elementwise_0(%x: tensor<?xf32>) -> tensor<?xf32> attributes {{anchor = "elementwise"}} {{
      {body}
      llm.yield %0 : tensor<?xf32>
    }}"""
    with register(ir.Context()):
        return ir.Module.parse(text)


def run(cache, body=None, **options):
    resolved = CompileOptions(**{"target": "x86-64-v3", **options}).resolve()
    return compile_kernels(outlined(body) if body else outlined(), resolved, LIMITS, cache)


def test_the_second_compilation_comes_from_the_cache(generator, tmp_path):
    first = run(KernelCache(tmp_path))
    second = run(KernelCache(tmp_path))
    assert generator.calls == 1
    assert list(first) == ["linear_0", "norm_0"]
    assert first == second


@pytest.mark.parametrize(
    "change", [{"body": "%0 = arith.mulf %x, %x : tensor<?xf32>"}, {"target": "x86-64-v4"}], ids=["kernel", "target"]
)
def test_a_change_misses_the_cache(generator, tmp_path, change):
    run(KernelCache(tmp_path))
    run(KernelCache(tmp_path), **change)
    assert generator.calls == 2


def test_without_a_cache_every_compilation_generates(generator):
    run(KernelCache(None))
    run(KernelCache(None))
    assert generator.calls == 2


def test_a_kernel_that_the_target_lacks_is_an_error_of_the_user(generator, tmp_path):
    def refuse(module, target, limits, runner):
        raise UnsupportedKernel("@linear_0: no such kernel")
        yield

    generator.compile_kernels = refuse
    with pytest.raises(TargetError, match="x86-64-v3 cannot run this model: @linear_0: no such kernel"):
        run(KernelCache(tmp_path))
    assert not list(tmp_path.rglob("*"))


def test_emit_joins_the_levels_that_exist():
    assert emit_kernels(KERNELS, Phase.PTX) == "// ptx"
    with pytest.raises(TargetError, match="--emit=tile: the target has no such level"):
        emit_kernels(KERNELS, Phase.TILE)


def test_a_pass_that_fails_in_code_generation_leaves_a_reproducer(generator, tmp_path):
    def fail(module, target, limits, runner):
        runner.run(module, "codegen/elementwise_0", ["canonicalize", "one-shot-bufferize"])
        yield

    generator.compile_kernels = fail
    resolved = CompileOptions(target="x86-64-v3").resolve()
    kernels = outlined("%0 = llm.activation relu %x : tensor<?xf32> -> tensor<?xf32>")
    with pytest.raises(InternalError, match=r"pass one-shot-bufferize failed: op was not bufferized") as error:
        compile_kernels(kernels, resolved, LIMITS, KernelCache(None), runner=PassRunner(reproducer_dir=tmp_path))
    text = error.value.reproducer.read_text()
    assert "llm.kernel @elementwise_0" in text
    assert "builtin.module(one-shot-bufferize" in text
