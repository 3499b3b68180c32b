"""The kernels that the GPU tests run are compiled here too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "gpu"))
