import copy
import json

import pytest

from llmc.codegen.kernel import CodeObject, CompiledKernel, Entry, Launch, Variant
from llmc.compiler.plan import buffer_bytes, build_plan, evaluate, referenced_weights, token_ranges
from llmc.errors import InternalError

HOST = CodeObject("host", b"so")
ABSTRACT = {
    "constants": {"vocab_size": 8, "max_num_tokens": 256, "max_batch_size": 256},
    "arena": {
        "bytes": 4096,
        "lower_bound": 3000,
        "peak": 4096,
        "buffers": [
            {"name": "h", "dtype": "f32", "shape": ["T", 4], "offset": 0, "bytes": 2048, "live": [0, 1]},
            {"name": "logits", "dtype": "f32", "shape": ["R", 8], "offset": 2048, "bytes": 1024, "live": [1, 2]},
        ],
    },
    "kv_cache": {"block_size": 64, "layers": []},
    "inputs": [{"name": "tokens", "dtype": "i32", "shape": ["T"]}],
    "outputs": {"logits": 1},
    "launches": [
        {"kernel": "embedding_0", "operands": [{"input": "tokens"}, {"weight": "embed"}], "results": [0]},
        {"kernel": "attention_0", "operands": [{"buffer": 0}, {"kv": 3}, {"batch": True}], "results": [0]},
        {
            "kernel": "linear_0",
            "operands": [{"buffer": 0}, {"weight": "head"}],
            "results": [1],
            "workspace": {"offset": 3072, "bytes": 1024, "live": [2, 2]},
        },
    ],
}


def kernel(name, variants):
    return CompiledKernel(name, name.rpartition("_")[0], tuple(variants))


def launch(entry, *arguments, grid=("T", 1, 1), code=HOST):
    return Launch(Entry(entry, code), grid, arguments)


KERNELS = {
    "embedding_0": kernel(
        "embedding_0", [Variant((launch("embedding_0", {"operand": 0}, {"operand": 1}, {"result": 0}, {"i32": "T"}),))]
    ),
    "attention_0": kernel(
        "attention_0",
        [
            Variant(
                (
                    launch(
                        "attention_0",
                        {"operand": 1, "part": "k"},
                        {"operand": 1, "part": "v"},
                        {"operand": 2, "part": "block_table"},
                        grid=(["ceildiv", "T", 16], 3, 1),
                    ),
                )
            )
        ],
    ),
    "linear_0": kernel(
        "linear_0",
        [
            Variant((launch("linear_small", {"operand": 0}, {"result": 0}),), 1, 16),
            Variant(
                (
                    launch("linear_split", {"operand": 0}, {"workspace": 256}),
                    launch(
                        "linear_reduce",
                        {"workspace": 256},
                        {
                            "tensor_map": {
                                "base": {"operand": 1},
                                "dtype": "bf16",
                                "box": [64, 8],
                                "shape": [64, "max_rows"],
                                "strides": [128],
                            }
                        },
                    ),
                ),
                17,
            ),
        ],
    ),
}


def plan(abstract=ABSTRACT, kernels=KERNELS):
    return build_plan(copy.deepcopy(abstract), kernels, 256, 4)


def test_ranges_cut_where_a_variant_changes():
    document, code = plan()
    assert [(r["min_tokens"], r["max_tokens"], len(r["launches"])) for r in document["ranges"]] == [
        (1, 16, 3),
        (17, 256, 4),
    ]
    assert code == {"kernels/host.so": b"so"}


@pytest.mark.parametrize(
    ("borders", "expected"),
    [
        ([[(1, None)]], [(1, 100)]),
        ([[(1, 8), (9, None)], [(1, 32), (33, 64), (65, None)]], [(1, 8), (9, 32), (33, 64), (65, 100)]),
        ([[(1, 100), (101, None)]], [(1, 100)]),
        ([[(1, 4000)]], [(1, 100)]),
    ],
)
def test_token_ranges(borders, expected):
    lists = [[Variant((), low, high) for low, high in variants] for variants in borders]
    assert token_ranges(lists, 100) == expected


def test_arguments_are_bound():
    first, second, third = plan()[0]["ranges"][0]["launches"]
    assert first["args"] == [{"input": "tokens"}, {"weight": "embed"}, {"buffer": 0}, {"i32": "T"}]
    assert second["args"] == [{"kv": "k", "layer": 3}, {"kv": "v", "layer": 3}, {"input": "block_table"}]
    assert second["grid"] == [["ceildiv", "T", 16], 3, 1]
    assert third["args"] == [{"buffer": 0}, {"buffer": 1}]


def test_workspace_becomes_a_buffer_of_the_arena():
    document, _ = plan()
    split, reduce = document["ranges"][1]["launches"][2:]
    number = split["args"][1]["buffer"]
    assert reduce["args"][0] == {"buffer": number}
    assert document["arena"]["buffers"][number] == {
        "name": "workspace_0", "dtype": "u8", "shape": [768], "offset": 3328, "bytes": 768, "live": [2, 2],
    }  # fmt: skip


def test_zeroed_memory_lies_behind_the_arena_and_lives_for_the_whole_step():
    """All kernels share it; each leaves it zero, so that nothing else may lie there."""
    kernels = dict(KERNELS)
    for name, size in (("attention_0", 100), ("linear_0", 300)):
        variant = Variant((launch(name, {"zeroed": True}),), zeroed_bytes=size)
        kernels[name] = kernel(name, [variant])
    document, _ = plan(kernels=kernels)
    attention, linear = document["ranges"][0]["launches"][1:]
    assert attention["args"] == linear["args"]
    assert document["arena"]["bytes"] == 4096 + 300
    assert document["arena"]["buffers"][attention["args"][0]["buffer"]] == {
        "name": "zeroed", "dtype": "u8", "shape": [300], "offset": 4096, "bytes": 300, "live": [0, 2],
    }  # fmt: skip


def test_rows_are_those_of_the_first_result():
    """One kernel, launched for tokens and for logit rows."""
    norm = kernel("norm_0", [Variant((launch("norm_0", {"i32": "rows"}, grid=(["ceildiv", "rows", 8], 1, 1)),))])
    steps = [{"kernel": "norm_0", "operands": [{"buffer": 0}], "results": [result]} for result in (0, 1)]
    document, _ = plan({**ABSTRACT, "launches": steps}, {"norm_0": norm})
    tokens, logits = document["ranges"][0]["launches"]
    assert (tokens["grid"][0], tokens["args"]) == (["ceildiv", "T", 8], [{"i32": "T"}])
    assert (logits["grid"][0], logits["args"]) == (["ceildiv", "R", 8], [{"i32": "R"}])


def test_logit_rows_choose_their_own_variant():
    """At most 16 rows get logits here, so 256 tokens do not call for the kernel of many rows."""
    variants = [Variant((launch("few"),), 1, 16), Variant((launch("many"),), 17)]
    steps = [{"kernel": "linear_0", "operands": [], "results": [result]} for result in (0, 1)]
    constants = {**ABSTRACT["constants"], "max_batch_size": 16}
    abstract = {**ABSTRACT, "constants": constants, "launches": steps}
    document, _ = plan(abstract, {"linear_0": kernel("linear_0", variants)})
    names = [[document["kernels"][one["kernel"]]["name"] for one in r["launches"]] for r in document["ranges"]]
    assert names == [["few", "few"], ["many", "few"]]


def test_tensor_maps_bind_their_base():
    document, _ = plan()
    assert document["ranges"][1]["launches"][3]["args"][1]["tensor_map"]["base"] == {"weight": "head"}
    assert referenced_weights(document) == {"embed", "head"}


def test_only_sizes_are_replaced_in_a_tensor_map():
    """A weight may be called `rows`."""
    abstract = copy.deepcopy(ABSTRACT)
    text = json.dumps(abstract).replace('"head"', '"rows"')
    document, _ = plan(json.loads(text))
    fields = document["ranges"][1]["launches"][3]["args"][1]["tensor_map"]
    assert fields["base"] == {"weight": "rows"}
    assert fields["shape"][0] == 64
    assert isinstance(fields["shape"][1], int)
    assert "rows" in referenced_weights(document)


def test_a_size_divided_by_zero_is_an_error():
    with pytest.raises(InternalError, match="divides by 0"):
        evaluate(["ceildiv", "T", 0], {"T": 4})


def test_equal_cubins_are_one_part():
    cubin = [CodeObject("cubin", b"same"), CodeObject("cubin", b"same"), CodeObject("cubin", b"other")]
    names = ["embedding_0", "attention_0", "linear_0"]
    kernels = {
        name: kernel(name, [Variant((launch(name, code=code),))]) for name, code in zip(names, cubin, strict=True)
    }
    document, code = plan(kernels=kernels)
    assert len(code) == 2
    assert [row["code"] for row in document["kernels"]] == [0, 0, 1]
    assert {row["path"] for row in document["code"]} == code.keys()


def test_a_gap_between_variants_is_a_bug():
    kernels = {**KERNELS, "linear_0": kernel("linear_0", [Variant((launch("x"),), 1, 16)])}
    with pytest.raises(InternalError, match="linear_0 has no variant for 256 to 256 tokens"):
        plan(kernels=kernels)


def test_a_missing_kernel_is_a_bug():
    with pytest.raises(InternalError, match="no kernel linear_0"):
        plan(kernels={name: value for name, value in KERNELS.items() if name != "linear_0"})


def test_expressions():
    sizes = {"T": 100, "S": 3}
    assert evaluate(["ceildiv", ["add", "T", 1], 64], sizes) == 2
    assert evaluate(["max", ["mul", "S", 50], ["min", "T", 7]], sizes) == 150
    assert buffer_bytes({"dtype": "bf16", "shape": ["T", ["sub", 8, "S"]]}, sizes) == 1000
