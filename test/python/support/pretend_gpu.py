"""A host engine as one for a GPU, on the stand-in for libcuda of the C++ tests, which computes as late as it may.

The kernels are those of the host engine; one that takes the largest logit is added, as GPU engines have one.
So a real model runs through the CUDA backend: streams, graphs, tokens that are passed on before the host knows them.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

_ARGMAX = """
void argmax(const uint64_t *args, int64_t row) {
  const float *logits = (const float *)args[0] + row * VOCAB;
  int32_t best = 0;
  for (int32_t i = 1; i < VOCAB; ++i)
    if (logits[i] > logits[best])
      best = i;
  ((int32_t *)args[1])[row] = best;
}
"""


def compile_fake_cuda(path: Path) -> Path:
    """Compiles the stand-in; the options cuda_library and $LLMC_CUDA_LIBRARY take it."""
    source = ROOT / "test/cpp/runtime/fake_cuda.cpp"
    include = f"-I{ROOT / 'runtime/src'}"
    subprocess.run(["c++", "-std=c++20", "-O1", "-shared", "-fPIC", include, source, "-o", path, "-ldl"], check=True)
    return path


def for_pretend_gpu(engine: Path, root: Path) -> Path:
    """Writes the engine folder `root` from the folder of a host engine."""
    shutil.copytree(engine, root)
    manifest = json.loads((root / "manifest.json").read_text())
    plan = json.loads((root / "plan.json").read_text())
    manifest["target"] = {"name": "sm_90", "arch": "sm_90a", "features": []}
    (code,) = plan["code"]
    code["kind"] = "cubin"
    _add_argmax(plan, manifest["limits"]["max_batch_size"])
    _wrap_kernels(plan, engine.resolve() / code["path"], root / code["path"])
    (root / "plan.json").write_text(json.dumps(plan))
    for part in manifest["parts"]:
        data = (root / part["path"]).read_bytes()
        part |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (root / "manifest.json").write_text(json.dumps(manifest))
    return root


def _add_argmax(plan: dict, rows: int) -> None:
    arena, logits = plan["arena"], plan["outputs"]["logits"]
    last = max(len(one["launches"]) for one in plan["ranges"])
    arena["buffers"].append({"name": "next_tokens", "dtype": "i32", "shape": ["R"], "offset": arena["bytes"],
                             "bytes": 4 * rows, "live": [last, last]})  # fmt: skip
    arena["buffers"][logits]["live"][1] = last
    arena["bytes"] += (4 * rows + 255) // 256 * 256
    arena["peak"] = arena["lower_bound"] = arena["bytes"]
    plan["outputs"]["next_tokens"] = len(arena["buffers"]) - 1
    plan["kernels"].append(plan["kernels"][-1] | {"name": "argmax", "entry": "argmax", "anchor": "sample"})
    for one in plan["ranges"]:
        args = [{"buffer": logits}, {"buffer": plan["outputs"]["next_tokens"]}]
        one["launches"].append({"kernel": len(plan["kernels"]) - 1, "grid": ["R", 1, 1], "args": args})


def _wrap_kernels(plan: dict, kernels: Path, path: Path) -> None:
    """A launch gives no count of its arguments: the stand-in asks the library."""
    counts = {launch["kernel"]: len(launch["args"]) for one in plan["ranges"] for launch in one["launches"]}
    vocab = plan["constants"]["vocab_size"]
    lines = ["#include <stdint.h>", f"enum {{ VOCAB = {vocab} }};", _ARGMAX]
    lines += [f"const int {plan['kernels'][kernel]['entry']}_num_params = {n};" for kernel, n in counts.items()]
    source = path.with_suffix(".c")
    source.write_text("\n".join(lines))
    path.unlink()
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-Wl,--no-as-needed", kernels, "-o", path], check=True)
    source.unlink()
