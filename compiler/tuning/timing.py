"""Checks candidates and times them against each other. Needs a GPU with torch, and no compiler.

Each candidate is first compared with a float32 product on random operands, at the longest and at an odd length
of a range, with poisoned results and twice (the same bits). Then those of one problem and token count are
replayed in turns as CUDA graphs, over copies of the operands that do not fit the L2 together; medians count.
A residual sum runs in place, as an engine's residual stream does.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from llmc.compiler.tuning.cuda import Kernel, graph_of, interleaved
from llmc.errors import CompileError

CANDIDATES = "candidates.json"
FORMAT = 1
COPIES_BYTES = 1.2e9
"""Weights that one graph of few tokens goes over: many times the L2."""
BF16_ERROR = 3e-3
"""Relative error of a result stored in bf16: its rounding gives 1.7e-3."""
FLOAT8_ERROR = 1e-3
"""Relative error of a sum of products of 8-bit floats, of which tensor cores keep some 14 bits."""


class Problem:
    """Operands and result of one linear, `tokens` rows in buffers of `max_tokens`."""

    def __init__(self, fields: dict[str, Any], tokens: int, max_tokens: int):
        self.tokens, self.kind = tokens, fields["epilogue"]
        n, k = fields["n"], fields["k"]
        self.k = k
        self.float8 = fields.get("element_bytes", 2) == 1
        dtype = torch.float8_e4m3fn if self.float8 else torch.bfloat16
        # Rows past the step's are garbage in an engine.
        self.x = torch.full((max_tokens, k), float("nan"), device="cuda").to(dtype)
        self.x[:tokens] = torch.randn(tokens, k, device="cuda").to(dtype)
        self.w = torch.randn(n, k, device="cuda").to(dtype)
        self.scales = [torch.rand(rows, 1, device="cuda") + 0.5 for rows in (n, max_tokens)] if self.float8 else []
        wide = self.kind in ("f32", "residual")
        columns = n // 2 if self.kind == "glu" else n
        self.out = torch.empty(max_tokens, columns, device="cuda", dtype=torch.float32 if wide else torch.bfloat16)
        self.residual = torch.randn(tokens, n, device="cuda") * 10 if self.kind == "residual" else None
        self.sizes = {"T": tokens, "R": tokens, "rows": tokens, "max_rows": max_tokens, "S": 1, "B": 1, "NB": 1}
        self.poison()

    def poison(self) -> None:
        self.out.fill_(float("nan"))
        if self.residual is not None:
            self.out[: self.tokens] = self.residual

    def bind(self, folder: Path, launch: dict[str, Any], cache: dict[str, Kernel]) -> Callable[[], None]:
        def address(argument: Mapping[str, Any]) -> int:
            if "result" in argument:
                return self.out.data_ptr()
            return [self.x, self.w, *self.scales, self.out][argument["operand"]].data_ptr()

        file = launch["cubin"]
        if file not in cache:
            cache[file] = Kernel((folder / file).read_bytes(), launch["kernel"])
        return cache[file].bind(launch["grid"], launch["args"], address, self.sizes)

    def torch_call(self, out: torch.Tensor) -> Callable[[], Any]:
        x = self.x[: self.tokens]
        if not self.float8:
            return lambda: torch.matmul(x, self.w.t(), out=out)
        of_w, of_x = self.scales[0].t(), self.scales[1][: self.tokens]
        return lambda: torch._scaled_mm(x, self.w.t(), of_x, of_w, out_dtype=out.dtype, out=out)

    def reference(self) -> torch.Tensor:
        """[tokens, columns] in float32."""
        ref = self.x[: self.tokens].float() @ self.w.float().t()
        if self.float8:
            ref *= self.scales[1][: self.tokens] * self.scales[0].t()
        if self.residual is not None:
            ref += self.residual
        if self.kind == "glu":
            pairs = ref.view(self.tokens, -1, 2, 8)
            gate, up = pairs[:, :, 0].flatten(1), pairs[:, :, 1].flatten(1)
            ref = torch.nn.functional.silu(gate) * up
        return ref

    @property
    def limit(self) -> float:
        """Float32 sums of tensor cores truncate where the reference rounds: 1.1e-9 K was measured on an H200."""
        if self.out.dtype != torch.float32:
            return BF16_ERROR
        return FLOAT8_ERROR if self.float8 else 2e-9 * self.k + 1e-6

    def error(self, reference: torch.Tensor) -> float:
        """||result - reference|| / ||reference||; infinite where an element is not finite."""
        out = self.out[: self.tokens].float()
        if not torch.isfinite(out).all():
            return float("inf")
        return ((out - reference).norm() / reference.norm()).item()


def load_candidates(folder: Path) -> dict[str, Any]:
    """candidates.json of a folder that `llmc tune compile` wrote. Raises CompileError."""
    path = folder / CANDIDATES
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        if fields["format"] != FORMAT:
            raise ValueError(f"expected format {FORMAT}, found {fields['format']}")
    except OSError:
        raise CompileError(f"no candidates at {folder}: make them with `llmc tune compile ... -o FOLDER`") from None
    except (ValueError, KeyError, TypeError) as error:
        raise CompileError(f"{path} is damaged ({error}): make it again with `llmc tune compile`") from None
    return fields


def require_gpu(arch: str, device: int) -> str:
    """Name of the GPU. Raises CompileError where there is none that runs code for `arch` ("sm_90a")."""
    if not torch.cuda.is_available() or device >= torch.cuda.device_count():
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        raise CompileError(
            f"expected GPU {device} to time on, found {count} that torch can use; candidates can be carried to "
            "another machine"
        )
    torch.cuda.set_device(device)
    found = "sm_{}{}a".format(*torch.cuda.get_device_capability())
    name = torch.cuda.get_device_name()
    if found != arch:
        raise CompileError(f"the candidates are for {arch}, but GPU {device} ({name}) is {found}")
    return name


def time_candidates(
    folder: Path,
    *,
    device: int = 0,
    tokens: Sequence[int] = (),
    rounds: int = 5,
    torch_too: bool = False,
    log: Callable[[str], None] = print,
    keep: Callable[[dict[str, Any]], None] = lambda report: None,
) -> dict[str, Any]:
    """Times every candidate of a folder.

    tokens: only these token counts; empty: all that candidates were made for. torch_too: torch's product of the
    same operands in the same rounds (its result is bf16, without epilogue). keep: called with the report so far after
    each problem. Returns the report: the run, and for each problem its checks and its times in microseconds by
    token count, candidates in the order of candidates.json. A wrong candidate is reported and not timed.
    """
    made = load_candidates(folder)
    torch.backends.cuda.matmul.allow_tf32 = False
    run = {"device": require_gpu(made["arch"], device), "torch": torch.__version__, "llmc": made["llmc"],
           "commit": made["commit"], "date": time.strftime("%Y-%m-%d", time.gmtime())}  # fmt: skip
    report: dict[str, Any] = {"format": FORMAT, "arch": made["arch"], "run": run, "problems": []}
    cache: dict[str, Kernel] = {}
    for fields in made["problems"]:
        name = fields["name"]
        candidates = fields["candidates"]
        counts = sorted({t for c in candidates for t in c["tokens"] if not tokens or t in tokens})
        checks = _check(folder, fields, counts, cache)
        for check in checks:
            if not check["passed"]:
                log(f"{name}: WRONG {candidates[check['candidate']]['schedule']} {check}")
        wrong = {check["candidate"] for check in checks if not check["passed"]}
        times = []
        for count in counts:
            chosen = {i: c for i, c in enumerate(candidates) if count in c["tokens"] and i not in wrong}
            if not chosen:
                continue
            row = _time(folder, fields, chosen, count, rounds, torch_too, cache)
            times.append({"tokens": count, **row})
            best = min(row["us"], key=row["us"].get)
            peer = f", torch {row['torch_us']:.1f}" if torch_too else ""
            log(f"{name:24s} T={count:<6d} {row['us'][best]:9.1f} us{peer}  {_short(candidates[int(best)])}")
        report["problems"].append(
            {**{key: value for key, value in fields.items() if key != "candidates"},
             "schedules": [c["schedule"] for c in candidates], "checks": checks, "times": times}
        )  # fmt: skip
        keep(report)
    return report


def _short(candidate: dict[str, Any]) -> str:
    return " ".join(f"{k}={v}" for k, v in candidate["schedule"].items())


def _check(folder: Path, fields: dict[str, Any], counts: list[int], cache: dict[str, Kernel]) -> list[dict[str, Any]]:
    """Compares each candidate at its smallest token count, and at one less a few that no tile divides."""
    by_length: dict[int, list[int]] = {}
    for i, candidate in enumerate(fields["candidates"]):
        own = [t for t in candidate["tokens"] if t in counts]
        if own:
            # Long products of one kernel differ from short ones in nothing but the number of tiles.
            length = min(min(own), 640)
            for tokens in {length, length - 3 if length > 3 else length}:
                by_length.setdefault(tokens, []).append(i)
    checks = []
    for tokens, members in sorted(by_length.items()):
        problem = Problem(fields, tokens, max(tokens + 8, 256))
        reference = problem.reference()
        for i in members:
            launch = problem.bind(folder, fields["candidates"][i]["launch"], cache)
            results = []
            for _ in range(2):
                problem.poison()
                launch()
                torch.cuda.synchronize()
                results.append(problem.out[:tokens].clone())
            same = torch.equal(*results)
            error = problem.error(reference)
            passed = same and error <= problem.limit
            checks.append({"candidate": i, "tokens": tokens, "error": error, "same_bits": same, "passed": passed})
    return checks


def _time(
    folder: Path,
    fields: dict[str, Any],
    candidates: dict[int, dict[str, Any]],
    tokens: int,
    rounds: int,
    torch_too: bool,
    cache: dict[str, Kernel],
) -> dict[str, Any]:
    weight_bytes = fields["n"] * fields["k"] * fields.get("element_bytes", 2)
    copies = max(2, min(64, int(COPIES_BYTES / weight_bytes) + 1)) if tokens <= 512 else 2 if tokens <= 4096 else 1
    # Maps of activations are as long as the engine's: boxes that reach past a tensor are slow.
    problems = [Problem(fields, tokens, max(tokens, 512)) for _ in range(copies)]
    graphs = {str(i): graph_of([p.bind(folder, c["launch"], cache) for p in problems]) for i, c in candidates.items()}
    if torch_too:
        out = torch.empty(tokens, fields["n"], device="cuda", dtype=torch.bfloat16)
        graphs["torch"] = graph_of([p.torch_call(out) for p in problems])
    seconds = interleaved(graphs, rounds, 2 if tokens <= 4096 else 1)
    us = {name: value / copies * 1e6 for name, value in seconds.items()}
    peer = {"torch_us": us.pop("torch")} if torch_too else {}
    return {"us": us, **peer}
