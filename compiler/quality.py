"""The end of a quantizing compile: report of the weights, gate on what the model says."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmc.compiler.disk import disk_errors
from llmc.compiler.output import canonical_json
from llmc.compiler.quantization import gate
from llmc.compiler.quantization.report import WeightReport

if TYPE_CHECKING:
    from llmc.compiler.driver import Compilation
    from llmc.compiler.evaluation import AgreementResult
    from llmc.compiler.evaluation.scorer import Logits
    from llmc.compiler.evaluation.text import Window


@dataclasses.dataclass(frozen=True)
class Quality:
    """What quantizing cost. `agreement` and `limits` are None when the gate was off."""

    format: str
    weights: WeightReport
    agreement: AgreementResult | None = None
    limits: gate.Limits | None = None

    def __str__(self) -> str:
        lines = [f"quantized to {self.format}:", self.weights.table()]
        lines += [f"warning: {warning}" for warning in self.weights.warnings()]
        if self.agreement and self.limits:
            found, limits = self.agreement, self.limits
            lines.append(
                f"quality gate: KL divergence {found.kl_divergence:.4g} nats (at most {limits.kl_divergence:g}), "
                f"top-1 agreement {found.top1_agreement:.1%} (at least {limits.top1_agreement:.1%}), "
                f"perplexity {found.perplexity:.4g} beside {found.reference_perplexity:.4g} over {found.tokens} tokens"
            )
        else:
            lines.append("quality gate: off")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        measured = gate.to_json(self.agreement, self.limits) if self.agreement and self.limits else None
        return {
            "qformat": self.format,
            "layers": self.weights.to_json(),
            "warnings": self.weights.warnings(),
            "gate": measured,
        }

    def write(self, engine: Path) -> Path:
        """Writes the report beside the engine; returns where. It is no part of the engine, whose bytes do not
        depend on the machine that measures."""
        path = engine.with_name(f"{engine.name}.quality.json")
        with disk_errors(path):
            path.write_bytes(canonical_json(self.to_json()))
        return path


def check_quality(compilation: Compilation, engine: Path, report: WeightReport) -> Quality:
    """Runs the gate on the engine in the folder `engine`, whose weights `report` is about.

    What is compared are host engines: for another target both are compiled, for the host the unquantized one.
    Those are written beside `engine` and removed at the end, one after the other, and never in memory together.
    Raises QualityError.
    """
    format = compilation.resolved.quantization
    assert format is not None
    limits = compilation.options.gate_limits(format)
    if limits is None:
        return Quality(format.name, report)
    native = compilation.options.target == "host"
    parts, ours = _score(compilation, None if native else format.name, engine)
    _, theirs = _score(compilation, "none", engine)
    result = gate.compare(parts, ours, theirs)
    gate.check(result, limits, format.name, [layer.name for layer in report.worst(3)])
    return Quality(format.name, report, result, limits)


def _score(compilation: Compilation, qformat: str | None, engine: Path) -> tuple[list[Window], list[Logits]]:
    """Logits of the gate's prompts: of `engine`, or of a host engine of another format (None: of `engine`)."""
    threads = compilation.options.threads
    label = f"quality gate, {'unquantized' if qformat == 'none' else 'quantized'}"
    if qformat is None:
        with compilation.progress.task(label, gate.PROMPTS) as advance:
            return gate.score(engine, threads, advance)
    with disk_errors(engine), tempfile.TemporaryDirectory(prefix=".quality.", dir=engine.parent) as folder:
        other = Path(folder) / "engine"
        compilation.on_host(qformat).write_engine(other)
        with compilation.progress.task(label, gate.PROMPTS) as advance:
            return gate.score(other, threads, advance)
