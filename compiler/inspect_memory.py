"""`llmc inspect --memory`: the arena as a map of offsets over launches."""

from __future__ import annotations

from typing import Any

from llmc.compiler.engine import Engine

#: Size of the drawing in characters.
_COLUMNS, _ROWS = 72, 24
_INK = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def memory(engine: Engine) -> str:
    """Peak and lower bound, the list of buffers, and a picture: launches to the right, offsets up."""
    arena = engine.plan["arena"]
    buffers = arena["buffers"]
    size = max(arena["bytes"], 1)
    lines = [
        f"arena        {arena['bytes']:>14,} bytes",
        f"peak in use  {arena['peak']:>14,} bytes",
        f"lower bound  {arena['lower_bound']:>14,} bytes (most that is live at once); "
        f"the arena is {size / max(arena['lower_bound'], 1):.3f} of it",
        "",
        "          offset           bytes  launches     buffer",
    ]
    for number, buffer in enumerate(sorted(buffers, key=lambda b: (b["offset"], b["live"]))):
        first, last = buffer["live"]
        shape = "x".join(map(str, map(_short, buffer["shape"])))
        lines.append(
            f"{_ink(number)} {buffer['offset']:>14,}  {buffer['bytes']:>14,}  {first:>5}..{last:<5}"
            f" {buffer['name']} {buffer['dtype']}[{shape}]"
        )
    return "\n".join([*lines, "", *_picture(buffers, size)])


def _picture(buffers: list[dict[str, Any]], size: int) -> list[str]:
    launches = max((buffer["live"][1] for buffer in buffers), default=0) + 1
    columns, rows = min(_COLUMNS, launches), _ROWS
    grid = [[" "] * columns for _ in range(rows)]
    for number, buffer in enumerate(sorted(buffers, key=lambda b: (b["offset"], b["live"]))):
        first, last = buffer["live"]
        left, right = first * columns // launches, last * columns // launches
        low = buffer["offset"] * rows // size
        high = max((buffer["offset"] + buffer["bytes"]) * rows // size, low + 1)
        for row in grid[low:high]:
            row[left : right + 1] = _ink(number) * (right + 1 - left)
    frame = "+" + "-" * columns + "+"
    body = [f"|{''.join(row)}|" for row in reversed(grid)]
    return [f"{frame} {size:,} bytes", *body, f"{frame} 0", f" launch 0 .. {launches - 1}"]


def _ink(number: int) -> str:
    return _INK[number % len(_INK)]


def _short(extent: Any) -> str:
    return str(extent) if isinstance(extent, (int, str)) else "(" + " ".join(map(str, extent)) + ")"
