"""The options of loading an engine, as the runtime takes them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from llmc.runtime import _runtime
from llmc.runtime.config import POLICIES, VERIFY, KvCacheConfig, SchedulerConfig


def load_options(
    *,
    num_threads: int | None = None,
    device: int = 0,
    kv_cache_config: KvCacheConfig | None = None,
    scheduler_config: SchedulerConfig | None = None,
    verify_weights: str = "auto",
    cuda_library: str | None = None,
    cuda_graphs: bool = True,
    overlap: bool = True,
    trace_file: str | os.PathLike[str] | None = None,
    stall_seconds: float = 0.0,
) -> _runtime.LoadOptions:
    """Raises ValueError for a choice that does not exist."""
    kv = kv_cache_config or KvCacheConfig()
    scheduler = scheduler_config or SchedulerConfig()
    options = _runtime.LoadOptions()
    options.num_threads = num_threads or 0
    options.device = device
    options.kv_cache_tokens = kv.max_tokens or 0
    options.kv_cache_bytes = kv.max_bytes or 0
    options.free_memory_fraction = kv.fraction or 0.0
    options.enable_block_reuse = kv.enable_block_reuse
    options.enable_partial_reuse = kv.enable_partial_reuse
    options.host_memory_bytes = kv.host_memory or 0
    options.max_waiting = scheduler.max_waiting or 0
    options.max_batch_size = scheduler.max_batch_size or 0
    options.max_num_tokens = scheduler.max_num_tokens or 0
    options.policy = _choice("policy", scheduler.policy, POLICIES)
    options.verify_weights = _choice("verify_weights", verify_weights, VERIFY)
    options.cuda_library = cuda_library
    options.cuda_graphs = cuda_graphs
    options.overlap = overlap
    options.stall_seconds = stall_seconds
    options.trace_file = os.fspath(trace_file) if trace_file is not None else None
    return options


def _choice(name: str, value: str, choices: Mapping[str, int]) -> int:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; found {value!r}")
    return choices[value]
