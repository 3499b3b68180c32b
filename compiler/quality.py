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


def check_quality(
    compilation: Compilation, folder: Path, report: WeightReport, quantized: Compilation | None = None
) -> Quality:
    """Runs the gate on what `folder` holds, whose weights `report` is about.

    quantized: compiles it into a host engine; None: it is the engine that `compilation` makes, which is measured as
    it is on the host, and for another target compiled for the host.
    The quantized engine, where it has to be made, and the unquantized one are written beside `folder` and removed at
    the end, one after the other, and never in memory together. Raises QualityError.
    """
    format = compilation.resolved.quantization
    assert format is not None
    limits = compilation.options.gate_limits(format)
    if limits is None:
        return Quality(format.name, report)
    if quantized is None and compilation.options.target != "host":
        quantized = compilation.on_host(format.name)
    parts, ours = _score(compilation, "quality gate, quantized", folder, quantized)
    _, theirs = _score(compilation, "quality gate, unquantized", folder, compilation.on_host("none"))
    result = gate.compare(parts, ours, theirs)
    gate.check(result, limits, format.name, [layer.name for layer in report.worst(3)])
    return Quality(format.name, report, result, limits)


def _score(
    compilation: Compilation, label: str, folder: Path, other: Compilation | None
) -> tuple[list[Window], list[Logits]]:
    """Logits of the gate's prompts: of the host engine in `folder`, or of the one that `other` makes."""
    threads = compilation.options.threads
    if other is None:
        with compilation.progress.task(label, gate.PROMPTS) as advance:
            return gate.score(folder, threads, advance)
    with disk_errors(folder), tempfile.TemporaryDirectory(prefix=".quality.", dir=folder.parent) as beside:
        engine = Path(beside) / "engine"
        other.write_engine(engine)
        with compilation.progress.task(label, gate.PROMPTS) as advance:
            return gate.score(engine, threads, advance)
