"""Reshapes: groups of dimensions that belong together."""

from __future__ import annotations

import pytest

from llmc.frontends import FrontendError
from llmc.frontends.convert.reshape import _match
from llmc.frontends.convert.values import Shape


@pytest.mark.parametrize(
    ("source", "target", "groups"),
    [
        ((None, 64), (None, 4, 16), [((None,), (None,)), ((64,), (4, 16))]),
        ((None, 4, 16), (None, 64), [((None,), (None,)), ((4, 16), (64,))]),
        ((None, 64), (None, 1, 64), [((None,), (None, 1)), ((64,), (64,))]),
        ((4, None, 16), (4, 1, None, 16), [((4,), (4,)), ((None,), (1, None)), ((16,), (16,))]),
        ((4, None, 16), (None, 16), [((4, None), (None,)), ((16,), (16,))]),
        ((6, 4), (3, 8), [((6, 4), (3, 8))]),
        ((2, 3), (2, 3, 1), [((2,), (2,)), ((3,), (3, 1))]),
        ((1, 8), (8,), [((1, 8), (8,))]),
        ((1, 1), (), []),
        ((), (1, 1), []),
    ],
)
def test_groups(source: Shape, target: Shape, groups: list[tuple[Shape, Shape]]) -> None:
    assert [(group.source, group.target) for group in _match(source, target)] == groups


def test_two_dynamic_dimensions_are_not_guessed() -> None:
    with pytest.raises(FrontendError, match="several dynamic dimensions"):
        _match((None, None, 4), (None, 8))
