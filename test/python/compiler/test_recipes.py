"""Recipes against numpy on the whole tensors, read in row ranges that cross every border."""

import numpy as np
import pytest
from support.engine_files import DictSource

from llmc.compiler.layouts import parse_layout
from llmc.compiler.recipe_error import RecipeError
from llmc.compiler.recipes import parse_recipe

RNG = np.random.default_rng(0)
A, B, C = (RNG.standard_normal(shape).astype(np.float32) for shape in [(6, 5), (4, 5), (6, 5)])
V = RNG.standard_normal(7).astype(np.float32)
SOURCE = DictSource({"a": A, "b": B, "c": C, "v": V, 'odd "name"\\é': A})

SOURCE_A, SOURCE_B, SOURCE_C = ('#llm.source<"a">', '#llm.source<"b">', '#llm.source<"c">')


def interleaved(parts, block):
    """Rows of each part in turn, `block` at a time."""
    return np.concatenate([part[i : i + block] for i in range(0, len(parts[0]), block) for part in parts])


CASES = {
    "source": (SOURCE_A, A),
    "vector": ('#llm.source<"v">', V),
    "escaped name": (r'#llm.source<"odd \22name\22\\\C3\A9">', A),
    "transpose": (f"#llm.transpose<{SOURCE_A}>", A.T),
    "concat rows": (f"#llm.concat<[{SOURCE_A}, {SOURCE_B}], dim = 0>", np.concatenate([A, B])),
    "concat columns": (f"#llm.concat<[{SOURCE_A}, {SOURCE_C}], dim = 1>", np.concatenate([A, C], axis=1)),
    "interleave 1": (f"#llm.interleave<[{SOURCE_A}, {SOURCE_C}], dim = 0, block = 1>", interleaved([A, C], 1)),
    "interleave 3": (f"#llm.interleave<[{SOURCE_A}, {SOURCE_C}], dim = 0, block = 3>", interleaved([A, C], 3)),
    "interleave columns": (
        f"#llm.interleave<[{SOURCE_A}, {SOURCE_C}], dim = 1, block = 1>",
        interleaved([A.T, C.T], 1).T,
    ),
    "slice rows": (f"#llm.slice<{SOURCE_A}, dim = 0, begin = 2, end = 5>", A[2:5]),
    "slice columns": (f"#llm.slice<{SOURCE_A}, dim = 1, begin = 1, end = 4>", A[:, 1:4]),
    "offset": ('#llm.offset<#llm.source<"v">, 1.000000e+00 : f32>', V + np.float32(1)),
    "nested": (
        f"#llm.concat<[#llm.slice<#llm.transpose<{SOURCE_A}>, dim = 1, begin = 0, end = 4>, "
        f"#llm.offset<#llm.transpose<{SOURCE_B}>, -5.000000e-01 : f32>], dim = 0>",
        np.concatenate([A.T[:, :4], B.T - np.float32(0.5)]),
    ),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_every_row_range(text, expected):
    recipe = parse_recipe(text)
    assert recipe.shape(SOURCE) == expected.shape
    rows = expected.shape[0]
    for begin in range(rows):
        for end in range(begin + 1, rows + 1):
            np.testing.assert_array_equal(recipe.read(SOURCE, begin, end), expected[begin:end])


def test_sources_are_listed_in_order():
    assert list(parse_recipe(CASES["concat rows"][0]).sources()) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"#llm.concat<[{SOURCE_A}, {SOURCE_B}], dim = 1>", r"shapes \[6, 5\] and \[4, 5\]"),
        (f"#llm.interleave<[{SOURCE_A}, {SOURCE_B}], dim = 0, block = 1>", "different shapes"),
        (f"#llm.interleave<[{SOURCE_A}, {SOURCE_C}], dim = 0, block = 4>", "in blocks of 4"),
        (f"#llm.slice<{SOURCE_A}, dim = 0, begin = 2, end = 9>", "of shape"),
        ('#llm.transpose<#llm.source<"v">>', "needs a matrix"),
    ],
)
def test_parts_that_do_not_fit(text, message):
    with pytest.raises(RecipeError, match=message):
        parse_recipe(text).shape(SOURCE)


@pytest.mark.parametrize("text", ["#llm.copy<>", '#llm.source<"a"', f"{SOURCE_A} extra", "#llm.concat<[], dim = 0>"])
def test_malformed_text(text):
    with pytest.raises(RecipeError):
        parse_recipe(text)


def test_panels_follow_the_formula_of_the_dialect():
    rows, group, (n_size, k_size) = 4, 2, A.shape
    layout = parse_layout("#llm.panels<rows = 4, group = 2>")
    assert layout.stored_shape(A.shape) == (2, 3, 4, 2)
    stored = np.ascontiguousarray(layout.store(A)).ravel()
    groups = -(-k_size // group)
    seen = set()
    for n in range(n_size):
        for k in range(k_size):
            at = ((n // rows) * groups + k // group) * rows * group + (n % rows) * group + k % group
            assert stored[at] == A[n, k]
            seen.add(at)
    assert all(stored[at] == 0 for at in range(stored.size) if at not in seen)


def test_unknown_layout():
    with pytest.raises(RecipeError, match="unknown layout"):
        parse_layout("#llm.tiles<3>")
