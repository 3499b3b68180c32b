"""Outputs follow their grammar, whatever the model would like to say."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from llmc.runtime import SamplingParams, StructuredOutputs, load_engine


@pytest.fixture
def engine(toy):
    with load_engine(toy) as engine:
        yield engine


def texts(engine, outputs, count=24, max_tokens=60):
    shared = SamplingParams(temperature=2, max_tokens=max_tokens, structured_outputs=outputs)
    params = [dataclasses.replace(shared, seed=i) for i in range(count)]
    found = engine.generate(["a"] * count, params)
    assert engine.stats["blocks_used"] == 0
    return [(output.outputs[0].text, output.outputs[0].finish_reason) for output in found]


def test_choice(engine):
    choices = ["abc", "abd", "Q"]
    found = texts(engine, StructuredOutputs(choice=choices))
    assert {text for text, _ in found} <= set(choices) and all(reason == "stop" for _, reason in found)


def test_regex(engine):
    pattern = r"[a-c]{2,5}: [A-D]+"
    for text, reason in texts(engine, StructuredOutputs(regex=pattern)):
        assert reason == "length" or re.fullmatch(pattern, text), text


@pytest.mark.parametrize("grammar", ['start: "a" b+ "Z"?\nb: "bc" | "d"', 'root ::= "a" b+ "T"?\nb ::= "bc" | "d"'])
def test_grammars(engine, grammar):
    for text, reason in texts(engine, StructuredOutputs(grammar=grammar.replace("Z", "T"))):
        assert reason == "length" or re.fullmatch("a(bc|d)+T?", text), text


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({}, "expected one of json, .* found none"),
        ({"regex": "a", "choice": ["a"]}, "found regex and choice"),
        ({"choice": []}, "choice"),
        ({"choice": ["a", ""]}, "none of them empty"),
        ({"regex": "(a"}, "unclosed group"),
        ({"json": "{"}, "structured_outputs|JSON|EOF"),
        ({"json": {"type": "objekt"}}, "Invalid type: objekt"),
        ({"json": {"type": "array", "uniqueItems": True}}, "uniqueItems"),
        ({"json": {"$ref": "http://example.org/x"}}, "example.org"),
        ({"grammar": "start: a"}, "structured_outputs"),
    ],
)
def test_bad_grammars(engine, outputs, message):
    with pytest.raises(ValueError, match=message):
        texts(engine, StructuredOutputs(**outputs), 1)
    assert engine.stats["num_steps"] == 0


def test_what_excludes_each_other():
    for other in ({"ignore_eos": True}, {"token_mask": print}):
        with pytest.raises(ValueError, match="exclude each other"):
            SamplingParams(structured_outputs=StructuredOutputs(regex="a"), **other)


def test_others_in_the_batch_are_free(engine):
    plain = SamplingParams(seed=3, max_tokens=20)
    alone = engine.generate("hello", plain)[0].outputs
    strict = SamplingParams(seed=4, max_tokens=20, structured_outputs=StructuredOutputs(choice=["abc"]))
    both = engine.generate(["hello", "hello"], [plain, strict])
    assert both[0].outputs == alone and both[1].outputs[0].text == "abc"


@pytest.mark.slow
def test_json_of_a_real_model(smollm2_host_engine):
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 20},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
        },
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    with load_engine(smollm2_host_engine) as engine:
        for text, reason in texts(engine, StructuredOutputs(json=schema), 8, 120):
            if reason == "stop":
                value = json.loads(text)
                assert set(value) == {"name", "age"} and 0 <= value["age"] <= 120
            else:
                assert reason == "length"
