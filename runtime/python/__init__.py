"""Run llmc engines: ``load_engine``, ``LLM``, ``SamplingParams``."""

from __future__ import annotations

from llmc.runtime.config import KvCacheConfig, SchedulerConfig
from llmc.runtime.engine import Engine, load_engine
from llmc.runtime.errors import (
    BadEngineError,
    DeviceError,
    EngineError,
    EngineNotFoundError,
    RequestRefusedError,
    StrippedEngineError,
    UnsupportedEngineError,
)
from llmc.runtime.llm import LLM
from llmc.runtime.outputs import CompletionDelta, CompletionOutput, RequestOutput
from llmc.runtime.profiler import KernelProfile, Profiler, StepProfile
from llmc.runtime.sampling_params import SamplingParams
from llmc.runtime.structured import StructuredOutputs

__all__ = [
    "LLM",
    "BadEngineError",
    "CompletionDelta",
    "CompletionOutput",
    "DeviceError",
    "Engine",
    "EngineError",
    "EngineNotFoundError",
    "KernelProfile",
    "KvCacheConfig",
    "Profiler",
    "RequestOutput",
    "RequestRefusedError",
    "SamplingParams",
    "SchedulerConfig",
    "StepProfile",
    "StrippedEngineError",
    "StructuredOutputs",
    "UnsupportedEngineError",
    "load_engine",
]
