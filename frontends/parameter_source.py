"""Where the values of a parameter come from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ParameterSource:
    """Where the values of a torch parameter or buffer come from: a tensor of the checkpoint, or a literal."""

    symbol: str
    tensor: str | None = None
    value: np.ndarray | None = None
