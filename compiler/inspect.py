"""`llmc inspect`: the parts of an engine as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from llmc.compiler.dtypes import BY_NAME
from llmc.compiler.engine import Engine
from llmc.compiler.inspect_memory import memory


def summary(engine: Engine) -> str:
    """Who the engine is for, its limits, its sizes."""
    manifest = engine.manifest
    target, model, limits = manifest["target"], manifest["model"], manifest["limits"]
    precision = manifest.get("precision", {})
    features = ", ".join(target["features"]) or "-"
    stored = sum(_tensor_bytes(row) for row in manifest["weights"]["tensors"])
    bound = "bound" if engine.is_bound else "stripped: bind them with `llmc refit`"
    rows = [
        ("engine", f"{engine.path} (sha256 {engine.sha256()[:16]})"),
        ("format", f"{manifest['format_version']}, by {' '.join(manifest['compiler'].values())}"),
        ("target", f"{target['name']} ({target['arch']})"),
        ("features", features),
        (
            "model",
            f"{model['name']} ({model['architecture']}, {model['num_layers']} layers, "
            f"vocabulary {model['vocab_size']:,})",
        ),
        ("limits", ", ".join(f"{name} {value:,}" for name, value in limits.items())),
        ("precision", ", ".join(f"{name} {value}" for name, value in precision.items())),
        ("weights", f"{len(manifest['weights']['tensors'])} tensors, {stored:,} bytes, {bound}"),
        ("arena", f"{engine.plan['arena']['bytes']:,} bytes"),
        ("kv cache", _kv_cache(engine)),
        ("launches", _launch_counts(engine)),
    ]
    parts = [("part", "bytes", "sha256")]
    parts += [(part["path"], f"{part['bytes']:,}", part["sha256"][:16]) for part in manifest["parts"]]
    return f"{table(rows)}\n\n{table(parts)}"


def _kv_cache(engine: Engine) -> str:
    cache = engine.plan["kv_cache"]
    per_token = sum(
        layer["heads"] * (layer["head_dim"] + layer["v_head_dim"]) * BY_NAME[layer["dtype"]].bytes
        for layer in cache["layers"]
    )
    return f"{len(cache['layers'])} layers, {per_token:,} bytes a token, blocks of {cache['block_size']} tokens"


def _launch_counts(engine: Engine) -> str:
    return ", ".join(
        f"{len(entry['launches'])} for {entry['min_tokens']}..{entry['max_tokens']} tokens"
        for entry in engine.plan["ranges"]
    )


def plan(engine: Engine) -> str:
    """Every launch of every range: kernel, grid and arguments."""
    document = engine.plan
    buffers = document["arena"]["buffers"]
    lines = []
    for entry in document["ranges"]:
        lines.append(f"{entry['min_tokens']}..{entry['max_tokens']} tokens, {len(entry['launches'])} launches")
        for number, launch in enumerate(entry["launches"]):
            kernel = document["kernels"][launch["kernel"]]["name"]
            grid = " x ".join(expression(size) for size in launch["grid"])
            arguments = ", ".join(argument(arg, buffers) for arg in launch["args"])
            lines.append(f"{number:5}  {kernel}<{grid}>({arguments})")
    return "\n".join(lines)


def kernels(engine: Engine) -> str:
    """Each kernel: how often it is launched, and what it takes of the machine."""
    document = engine.plan
    uses = Counter(launch["kernel"] for entry in document["ranges"] for launch in entry["launches"])
    header = ("kernel", "anchor", "launches", "block", "cluster", "shared", "registers", "code")
    rows = [
        (
            kernel["name"],
            kernel.get("anchor") or "-",
            str(uses[number]),
            "x".join(map(str, kernel["block"])),
            "x".join(map(str, kernel["cluster"])),
            f"{kernel['shared_bytes']:,}",
            str(kernel["registers"]) if kernel.get("registers") else "-",
            document["code"][kernel["code"]]["path"],
        )
        for number, kernel in enumerate(document["kernels"])
    ]
    return table([header, *rows])


def weights(engine: Engine) -> str:
    """Each tensor: stored dtype and shape, and what it is made from."""
    recipes = {weight.name: weight for weight in engine.weights}
    rows = [("tensor", "dtype", "stored", "bytes", "layout", "from")]
    for tensor in engine.manifest["weights"]["tensors"]:
        weight = recipes[tensor["name"]]
        rows.append(
            (
                tensor["name"],
                tensor["dtype"],
                "x".join(map(str, tensor["shape"])),
                f"{_tensor_bytes(tensor):,}",
                (weight.layout or "-").removeprefix("#llm."),
                (weight.recipe or "constant").replace("#llm.", ""),
            )
        )
    return table(rows)


#: Name of the option -> text of the section.
SECTIONS: dict[str, Callable[[Engine], str]] = {
    "summary": summary,
    "plan": plan,
    "kernels": kernels,
    "memory": memory,
    "weights": weights,
}


def as_json(engine: Engine, sections: Iterable[str]) -> dict[str, Any]:
    """The engine's own documents, or those pieces of them that `sections` name."""
    document = engine.plan
    pieces = {
        "plan": lambda: document,
        "kernels": lambda: document["kernels"],
        "memory": lambda: document["arena"],
        "weights": lambda: engine.manifest["weights"]["tensors"],
    }
    chosen = {name: pieces[name]() for name in sections if name in pieces}
    return chosen or {"manifest": engine.manifest, "sha256": engine.sha256()}


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


_INFIX = {"add": "+", "sub": "-", "mul": "*"}


def expression(value: Any) -> str:
    """A size expression as one would write it: `ceildiv(T, 64)`, `T * 9`."""
    if not isinstance(value, list):
        return str(value)
    operator, left, right = value
    if operator in _INFIX:
        return f"({expression(left)} {_INFIX[operator]} {expression(right)})"
    return f"{operator}({expression(left)}, {expression(right)})"


def argument(value: dict[str, Any], buffers: Sequence[dict[str, Any]]) -> str:
    """An argument of a launch in a few characters."""
    if "buffer" in value:
        return f"%{buffers[value['buffer']]['name']}"
    if "weight" in value:
        return f"@{value['weight']}"
    if "input" in value:
        return value["input"]
    if "kv" in value:
        return f"{value['kv']}[{value['layer']}]"
    if "tensor_map" in value:
        return f"map({argument(value['tensor_map']['base'], buffers)})"
    return expression(next(iter(value.values())))


def _tensor_bytes(tensor: dict[str, Any]) -> int:
    size = BY_NAME[tensor["dtype"]].bytes
    for extent in tensor["shape"]:
        size *= extent
    return size
