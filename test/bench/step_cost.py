"""The host's time for a decode step beside the model, on a model that computes nothing.

    python test/bench/step_cost.py BUILD/test/cpp/runtime/runtime_step_cost [--rounds 5] [--out FILE.json]

Schedule, write the inputs, append, statistics, callbacks: from the moment when a step was started to the moment
when the next one could be. Contexts grow from 128 tokens by one a step, 8,192 at most are allowed for. `wall_us`
has what others do on the same cores in it, `cpu_us` is the thread's own time. Of several rounds the one with
the smallest p99 counts, because nothing but other work makes a round slower.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from support.report import header

LIMITS_US = {256: 50, 2048: 300}  # p99


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if not options.program.is_file():
        parser.error(f"no program at {options.program}: build the target runtime_step_cost")
    report: dict[str, Any] = header() | {"load_average_before": os.getloadavg()[0], "limits_p99_us": LIMITS_US}
    rounds: dict[int, list[dict[str, Any]]] = {}
    for _ in range(options.rounds):
        lines = subprocess.run([options.program, str(options.steps)], capture_output=True, text=True, check=True).stdout
        for row in map(json.loads, lines.splitlines()):
            rounds.setdefault(row["sequences"], []).append(row)
    report["rounds"] = options.rounds
    report["runs"] = [min(rows, key=lambda row: row["wall_us"]["p99"]) for rows in rounds.values()]
    report["load_average_after"] = os.getloadavg()[0]
    for row in report["runs"]:
        limit = LIMITS_US.get(row["sequences"])
        print(json.dumps(row) + (f" limit {limit}" if limit else ""))
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
