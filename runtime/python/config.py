"""Options of an engine at load time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class KvCacheConfig:
    """The KV pool, fixed at load. Of max_tokens, max_bytes and the fraction the first that is set counts."""

    max_tokens: int | None = None
    max_bytes: int | None = None
    #: Share of the memory that is free after weights and activations;
    #: by default 0.9 on a GPU and 0.5 on the host.
    free_memory_fraction: float | None = None
    #: Share KV blocks of equal beginnings and keep them until others need the room.
    enable_block_reuse: bool = True
    #: Copy a block of which only the beginning is the same; needs enable_block_reuse.
    enable_partial_reuse: bool = True
    #: Bytes of host memory where preempted requests keep their KV blocks instead of computing them again; needs the
    #: policy max_utilization. When it is full they are computed again.
    host_memory: int | None = None
    #: TensorRT-LLM's name of free_memory_fraction; set one of the two.
    free_gpu_memory_fraction: float | None = None

    def __post_init__(self) -> None:
        if self.free_memory_fraction is not None and self.free_gpu_memory_fraction is not None:
            raise ValueError(
                "free_memory_fraction and free_gpu_memory_fraction mean the same, expected one, "
                f"found {self.free_memory_fraction} and {self.free_gpu_memory_fraction}"
            )

    @property
    def fraction(self) -> float | None:
        return self.free_memory_fraction if self.free_gpu_memory_fraction is None else self.free_gpu_memory_fraction


@dataclass(frozen=True)
class SchedulerConfig:
    """What one step may hold. ``None`` is the limit that the engine was compiled with."""

    max_batch_size: int | None = None
    max_num_tokens: int | None = None
    #: guaranteed_no_evict starts a request only when its worst case fits beside the others;
    #: max_utilization starts it when its prompt fits, and preempts the last one when the pool is full;
    #: static_batch starts requests together and lets nobody join (for comparisons).
    policy: Literal["guaranteed_no_evict", "max_utilization", "static_batch"] = "guaranteed_no_evict"
    #: Requests that may wait before further ones are refused; None: no limit.
    max_waiting: int | None = None


POLICIES = {"guaranteed_no_evict": 0, "max_utilization": 1, "static_batch": 2}
VERIFY = {"auto": 0, "always": 1, "never": 2}
