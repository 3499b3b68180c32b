"""Options of an engine at load time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class KvCacheConfig:
    """Size of the KV pool, fixed at load. The first of the three that is set counts."""

    max_tokens: int | None = None
    max_bytes: int | None = None
    #: Share of the memory that is free after weights and activations;
    #: by default 0.9 on a GPU and 0.5 on the host.
    free_memory_fraction: float | None = None


@dataclass(frozen=True)
class SchedulerConfig:
    """What one step may hold. ``None`` is the limit that the engine was compiled with."""

    max_batch_size: int | None = None
    max_num_tokens: int | None = None
    #: guaranteed_no_evict starts a request only when its worst case fits beside the others;
    #: max_utilization starts it when its prompt fits, and recomputes the youngest when the pool is full.
    policy: Literal["guaranteed_no_evict", "max_utilization"] = "guaranteed_no_evict"


POLICIES = {"guaranteed_no_evict": 0, "max_utilization": 1}
VERIFY = {"auto": 0, "always": 1, "never": 2}
