"""Binds random weights to a stripped engine, to measure speed where there is no checkpoint.

    python test/bench/random_engine.py ENGINE [--seed 0]

Matrices are normal with deviation 0.02, vectors (norms) are one; parameters that carry values keep
them. The file and the manifest are written as `llmc refit` writes them. The text such an engine
produces means nothing; its steps cost what real weights cost.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from llmc.compiler.engine import Engine
from llmc.compiler.manifest import weight_section
from llmc.compiler.output import OutputFolder, canonical_json
from llmc.compiler.weights import Weight, write_weights

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


class RandomWeight(Weight):
    """A weight whose stored elements are drawn instead of read."""

    def chunks(self, source: object) -> Iterator[np.ndarray]:
        if self.value is not None:
            yield from super().chunks(None)
            return
        device = "cuda" if torch.cuda.is_available() else "cpu"
        left = self.stored_bytes // self.dtype.bytes
        while left:
            count = min(left, 1 << 28)
            if len(self.shape) < 2:
                drawn = torch.ones(count, dtype=DTYPES[self.dtype.name])
            else:
                drawn = (torch.randn(count, device=device) * 0.02).to(DTYPES[self.dtype.name]).cpu()
            yield drawn.view(torch.uint8).numpy()
            left -= count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    engine = Engine(options.engine)
    weights = [RandomWeight(**{f: getattr(w, f) for f in Weight.__dataclass_fields__}) for w in engine.weights]
    with OutputFolder(options.engine, force=True) as out:
        for part in engine.manifest["parts"]:
            if part["path"] != "weights.safetensors":
                with engine.open(part["path"]) as source, out.open(part["path"]) as target:
                    target.write(source.read())
        with out.open("weights.safetensors") as target:
            hashes = write_weights(weights, None, target.write)  # type: ignore[arg-type]
        manifest = dict(engine.manifest)
        manifest["weights"] = weight_section(weights, hashes)
        manifest["parts"] = out.part_list()
        out.write("manifest.json", canonical_json(manifest))
        out.commit()
    return 0


if __name__ == "__main__":
    sys.exit(main())
