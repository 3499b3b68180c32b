"""Reshapes as tensor.collapse_shape and tensor.expand_shape.

Dimensions are matched from both ends into groups of equal size; whatever holds dynamic dimensions stays one group in
the middle. A group of several dimensions on both sides is collapsed, then expanded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import tensor

from llmc.frontends.convert.values import Shape, static_elements
from llmc.frontends.errors import FrontendError


@dataclass(frozen=True)
class _Group:
    source: Shape
    target: Shape

    @property
    def merged(self) -> int | None:
        """The size of the group as one dimension."""
        if None in self.source or None in self.target:
            return self.source[0] if len(self.source) == 1 else None
        return static_elements(self.source)


def emit(
    value: ir.Value,
    source: Shape,
    target: Shape,
    type_of: Callable[[Shape, ir.Type], ir.Type],
    size_of: Callable[[ir.Value, int, int], ir.Value],
) -> ir.Value:
    """`value`, of shape `source`, reshaped to `target`.

    `size_of(value, axis, factor)` is the size of a dynamic dimension divided by `factor`.
    """
    if source == target:
        return value
    groups = _match(source, target)
    element = ir.RankedTensorType(value.type).element_type
    if not groups:  # one side is a scalar: all dimensions of the other are 1
        indices = ir.ArrayAttr.get([])
        if source:
            return tensor.CollapseShapeOp(type_of((), element), value, indices).result
        return tensor.ExpandShapeOp(type_of(target, element), value, indices, [], [1] * len(target)).result
    merged = tuple(group.merged for group in groups)
    if any(len(group.source) != 1 for group in groups):
        indices = _reassociation(len(group.source) for group in groups)
        value = tensor.CollapseShapeOp(type_of(merged, element), value, indices).result
    if any(len(group.target) != 1 for group in groups):
        indices = _reassociation(len(group.target) for group in groups)
        sizes = [
            size_of(value, axis, static_elements(group.target))
            for axis, group in enumerate(groups)
            if None in group.target
        ]
        static = [ir.ShapedType.get_dynamic_size() if size is None else size for size in target]
        value = tensor.ExpandShapeOp(type_of(target, element), value, indices, sizes, static).result
    return value


def _match(source: Shape, target: Shape) -> list[_Group]:
    left, source, target = _match_static(source, target)
    right, source, target = _match_static(source[::-1], target[::-1])
    right = [_Group(group.source[::-1], group.target[::-1]) for group in reversed(right)]
    source, target = source[::-1], target[::-1]
    if source and target:
        if source.count(None) > 1 or target.count(None) > 1:
            raise FrontendError(f"cannot relate {source} to {target}: several dynamic dimensions")
        return [*left, _Group(source, target), *right]
    if source or target:  # ones that match nothing join a neighbour
        if left:
            left[-1] = _Group(left[-1].source + source, left[-1].target + target)
        elif right:
            right[0] = _Group(source + right[0].source, target + right[0].target)
    return left + right


def _match_static(source: Shape, target: Shape) -> tuple[list[_Group], Shape, Shape]:
    """Groups of static dimensions from the left, and what remains of both shapes."""
    groups: list[_Group] = []
    begin_source = begin_target = 0
    while begin_source < len(source) and begin_target < len(target):
        end_source, end_target = begin_source + 1, begin_target + 1
        while True:
            parts = source[begin_source:end_source], target[begin_target:end_target]
            if None in parts[0] or None in parts[1]:
                return groups, source[begin_source:], target[begin_target:]
            have, want = static_elements(parts[0]), static_elements(parts[1])
            if have == want:
                break
            if have < want:
                end_source += 1
            else:
                end_target += 1
            if end_source > len(source) or end_target > len(target):
                return groups, source[begin_source:], target[begin_target:]
        groups.append(_Group(*parts))
        begin_source, begin_target = end_source, end_target
    return groups, source[begin_source:], target[begin_target:]


def _reassociation(lengths: Iterable[int]) -> ir.ArrayAttr:
    index = ir.IntegerType.get_signless(64)
    rows, position = [], 0
    for length in lengths:
        rows.append(ir.ArrayAttr.get([ir.IntegerAttr.get(index, position + offset) for offset in range(length)]))
        position += length
    return ir.ArrayAttr.get(rows)
