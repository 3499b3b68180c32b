import pytest

from llmc.codegen import assemble
from llmc.codegen.assemble import Usage, find_faults, parse_usage
from llmc.errors import InternalError, ToolError

CLEAN = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'gemm' for 'sm_90a'
ptxas info    : Function properties for gemm
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 2 barriers, 1040 bytes smem
ptxas info    : Compiling entry function 'norm' for 'sm_90a'
ptxas info    : Function properties for norm
    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers
"""
SERIALIZED = (
    "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
    "insufficient register resources for the wgmma pipeline in function 'gemm'\n"
)
KERNEL = """\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry double_it(.param .u64 p) {
  .reg .b64 %r<2>; .reg .f32 %f<3>;
  ld.param.u64 %r1, [p];
  ld.global.f32 %f1, [%r1];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%r1], %f2;
  ret;
}
"""


@pytest.fixture(autouse=True)
def forget_ptxas():
    assemble.find_ptxas.cache_clear()
    yield
    assemble.find_ptxas.cache_clear()


def test_usage_by_entry():
    assert parse_usage(CLEAN) == {
        "gemm": Usage(registers=168, shared_bytes=1040, barriers=2),
        "norm": Usage(registers=32, stack_bytes=16, spill_bytes=12),
    }


def test_faults_are_spills_stack_frames_and_performance_messages():
    usage = parse_usage(CLEAN)
    assert find_faults(CLEAN, {"gemm": usage["gemm"]}) == []
    assert find_faults(SERIALIZED + CLEAN, usage) == [
        SERIALIZED.strip(),
        "norm: 12 bytes of spills at 32 registers",
        "norm: a stack frame of 16 bytes",
    ]
    assert len(find_faults(CLEAN, usage, allow_stack=True)) == 1


def test_without_ptxas_one_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(assemble, "_candidates", lambda: iter(()))
    with pytest.raises(ToolError, match=r"ptxas not found .*`pip install nvidia-cuda-nvcc"):
        assemble.find_ptxas()


def fake_ptxas(folder, version):
    path = folder / "ptxas"
    path.write_text(f'#!/bin/sh\necho "Cuda compilation tools, release {version}, V{version}.1"\n')
    path.chmod(0o755)
    return path


def test_an_old_ptxas_is_passed_over(monkeypatch, tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    paths = [fake_ptxas(old, "11.8"), fake_ptxas(new, "13.0")]
    monkeypatch.setattr(assemble, "_candidates", lambda: iter(paths))
    assert assemble.find_ptxas() == assemble.Ptxas(paths[1], (13, 0))
    assemble.find_ptxas.cache_clear()
    monkeypatch.setattr(assemble, "_candidates", lambda: iter(paths[:1]))
    with pytest.raises(ToolError, match=r"12\.3 or newer is needed, found .*old/ptxas \(11\.8\)"):
        assemble.find_ptxas()


def test_a_kernel_is_assembled():
    result = assemble.assemble(KERNEL, "sm_90a")
    assert result.cubin.startswith(b"\x7fELF")
    assert result.usage["double_it"].registers > 0
    assert assemble.assemble(KERNEL, "sm_90a") == result


def test_rejected_ptx_is_kept_for_replay():
    with pytest.raises(InternalError, match="replay it with: ptxas -arch=sm_90a") as error:
        assemble.assemble(KERNEL.replace("add.f32", "wrong.f32"), "sm_90a")
    assert "wrong.f32" in error.value.reproducer.read_text()
    error.value.reproducer.unlink()
