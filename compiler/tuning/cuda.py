"""A thin ctypes layer over the CUDA driver, for `llmc tune` and the GPU tests.

It launches the cubins that `codegen` makes exactly as the C++ runtime does: the
argument list of a launch is the JSON of docs/engine-format.md, so a kernel that
passes here runs unchanged in an engine. Needs torch for memory and streams.
"""

from __future__ import annotations

import ctypes as C
import functools
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch


@functools.cache
def _cuda() -> C.CDLL:
    """The driver's library. Raises OSError where there is none."""
    return C.CDLL("libcuda.so.1")


class CudaError(RuntimeError):
    """A driver call failed; the message names the call and the CUDA error."""


def check(result: int, what: str) -> None:
    if result:
        name = C.c_char_p()
        _cuda().cuGetErrorName(result, C.byref(name))
        raise CudaError(f"{what}: {(name.value or b'unknown').decode()} ({result})")


class _Attribute(C.Structure):
    _fields_ = [("id", C.c_int), ("pad", C.c_int), ("value", C.c_uint * 16)]


class _LaunchConfig(C.Structure):
    _fields_ = [
        ("grid", C.c_uint * 3),
        ("block", C.c_uint * 3),
        ("shared_bytes", C.c_uint),
        ("stream", C.c_void_p),
        ("attributes", C.POINTER(_Attribute)),
        ("count", C.c_uint),
    ]


_CLUSTER_DIMENSION = 4
_PROGRAMMATIC_STREAM_SERIALIZATION = 6
_MAX_DYNAMIC_SHARED_BYTES = 8

_MAP_TYPES = {"u8": 0, "i8": 0, "f8e4m3": 0, "f8e5m2": 0, "i32": 3, "f16": 6, "f32": 7, "bf16": 9}
_MAP_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_MAP_PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}


def evaluate(expression: Any, sizes: Mapping[str, int]) -> int:
    """Value of a size expression: an integer, a size name or [op, a, b]."""
    if isinstance(expression, int):
        return expression
    if isinstance(expression, str):
        return sizes[expression]
    op, a, b = expression
    x, y = evaluate(a, sizes), evaluate(b, sizes)
    return {
        "add": lambda: x + y,
        "sub": lambda: x - y,
        "mul": lambda: x * y,
        "ceildiv": lambda: -(-x // y),
        "min": lambda: min(x, y),
        "max": lambda: max(x, y),
    }[op]()


def tensor_map(address: int, spec: Mapping[str, Any], sizes: Mapping[str, int]) -> C.Array[C.c_ubyte]:
    """Encodes a CUtensorMap (128 bytes, 64-byte aligned) from the plan's description."""
    rank = len(spec["shape"])
    shape = (C.c_uint64 * rank)(*(evaluate(e, sizes) for e in spec["shape"]))
    strides = (C.c_uint64 * max(rank - 1, 1))(*(evaluate(e, sizes) for e in spec["strides"]))
    box = (C.c_uint32 * rank)(*spec["box"])
    ones = (C.c_uint32 * rank)(*([1] * rank))
    raw = (C.c_ubyte * 192)()
    encoded = (C.c_ubyte * 128).from_buffer(raw, -C.addressof(raw) % 64)
    check(
        _cuda().cuTensorMapEncodeTiled(
            encoded,
            _MAP_TYPES[spec["dtype"]],
            rank,
            C.c_void_p(address),
            shape,
            strides,
            box,
            ones,
            0,
            _MAP_SWIZZLES[spec["swizzle"]],
            _MAP_PROMOTIONS[spec.get("l2_promotion", 256)],
            0,
        ),
        f"cuTensorMapEncodeTiled of shape {list(shape)}, box {list(box)}",
    )
    return encoded


class Kernel:
    """A kernel of a cubin.

    `description` is the plan's kernel entry: entry, block, cluster, shared_bytes, pdl.
    """

    def __init__(self, cubin: bytes, description: Mapping[str, Any]):
        torch.zeros(1, device="cuda")  # makes torch's context current
        self.description = description
        self._image = C.create_string_buffer(cubin, len(cubin))
        module, self._function = C.c_void_p(), C.c_void_p()
        entry = description["entry"]
        check(_cuda().cuModuleLoadData(C.byref(module), self._image), f"loading {entry}")
        check(
            _cuda().cuModuleGetFunction(C.byref(self._function), module, entry.encode()),
            f"finding {entry}",
        )
        check(
            _cuda().cuFuncSetAttribute(self._function, _MAX_DYNAMIC_SHARED_BYTES, description["shared_bytes"]),
            f"{entry}: {description['shared_bytes']} bytes of shared memory",
        )

    def bind(
        self,
        grid: list[Any],
        arguments: list[Mapping[str, Any]],
        address: Callable[[Mapping[str, Any]], int],
        sizes: Mapping[str, int],
    ) -> Callable[[], None]:
        """A function that launches the kernel on torch's current stream.

        `address` maps an address argument ({"operand": 0}, {"buffer": 3}, ...) to a
        device address; `sizes` gives T, S, R, NB, B.
        """
        storage = [self._argument(a, address, sizes) for a in arguments]
        pointers = (C.c_void_p * max(len(storage), 1))(*(C.addressof(s) for s in storage))
        attributes = (_Attribute * 2)()
        count = 0
        cluster = self.description.get("cluster", [1, 1, 1])
        if cluster != [1, 1, 1]:
            attributes[count].id = _CLUSTER_DIMENSION
            attributes[count].value[:3] = cluster
            count += 1
        if self.description.get("pdl"):
            attributes[count].id = _PROGRAMMATIC_STREAM_SERIALIZATION
            attributes[count].value[0] = 1
            count += 1
        config = _LaunchConfig(shared_bytes=self.description["shared_bytes"], count=count)
        config.grid[:] = [evaluate(e, sizes) for e in grid]
        config.block[:] = self.description["block"]
        config.attributes = attributes
        entry = self.description["entry"]

        def launch(keep: Any = (storage, pointers, attributes)) -> None:
            config.stream = torch.cuda.current_stream().cuda_stream
            check(
                _cuda().cuLaunchKernelEx(C.byref(config), self._function, pointers, None),
                f"launching {entry}",
            )

        return launch

    @staticmethod
    def _argument(
        argument: Mapping[str, Any],
        address: Callable[[Mapping[str, Any]], int],
        sizes: Mapping[str, int],
    ) -> Any:
        if "i32" in argument:
            return C.c_int32(evaluate(argument["i32"], sizes))
        if "i64" in argument:
            return C.c_int64(evaluate(argument["i64"], sizes))
        if "f32" in argument:
            return C.c_float(argument["f32"])
        if "tensor_map" in argument:
            spec = argument["tensor_map"]
            return tensor_map(address(spec["base"]), spec, sizes)
        return C.c_uint64(address(argument))


def graph_of(calls: Sequence[Callable[[], Any]]) -> torch.cuda.CUDAGraph:
    """The calls as one CUDA graph, warmed up."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for call in calls:
            call()
    return graph


def interleaved(graphs: dict[str, torch.cuda.CUDAGraph], rounds: int = 9, replays: int = 2) -> dict[str, float]:
    """Median seconds of one replay of each graph, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for graph in graphs.values():
        graph.replay()
    torch.cuda.synchronize()
    for _ in range(rounds):
        for name, graph in graphs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(replays):
                graph.replay()
            end.record()
            end.synchronize()
            times[name].append(start.elapsed_time(end) / replays / 1e3)
    return {name: statistics.median(values) for name, values in times.items()}
