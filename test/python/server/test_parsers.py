"""A text cut at any place gives the parts of the whole text."""

from __future__ import annotations

import json
import random

import pytest

from llmc.server.parsers import TOOL_PARSERS, OutputParser, guess_tool_parser

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Zürich", "days": 2}}\n</tool_call>'
WEATHER = ("weather", {"city": "Zürich", "days": 2})

TEXT_CALL = '<tool_call>{"name": "a", "arguments": "{\\"x\\": 1}"}</tool_call>'
BERN = '{"name": "weather", "parameters": {"city": "Bern"}}'
TWO = ' {"name": "a", "parameters": {}}; {"name": "b", "parameters": {"x": [1]}}'
NOT_ALONE = '{"name": "a", "parameters": {}} and text'

# reasoning parser, tool parser, prompt, text, (reasoning, content, calls)
CASES = [
    (None, None, "", "plain <tool_call> text", ("", "plain <tool_call> text", [])),
    (None, "hermes", "", "no call here < tool", ("", "no call here < tool", [])),
    (None, "hermes", "", CALL, ("", "", [WEATHER])),
    (None, "hermes", "", f"I look.\n{CALL}\n{CALL}\n", ("", "I look.", [WEATHER, WEATHER])),
    (None, "hermes", "", f"{CALL} done ", ("", " done", [WEATHER])),
    (None, "hermes", "", "<tool_call>{not json}</tool_call> x", ("", "<tool_call>{not json}</tool_call> x", [])),
    (None, "hermes", "", '<tool_call>{"name": 5}</tool_call>', ("", '<tool_call>{"name": 5}</tool_call>', [])),
    (None, "hermes", "", '<tool_call>{"name": "a"}', ("", "", [("a", {})])),
    (None, "hermes", "", '<tool_call>{"name": "a", "argum', ("", '<tool_call>{"name": "a", "argum', [])),
    (None, "hermes", "", TEXT_CALL, ("", "", [("a", {"x": 1})])),
    (None, "hermes", "", "ends in a tag <tool_c", ("", "ends in a tag <tool_c", [])),
    (None, "llama3_json", "", BERN, ("", "", [("weather", {"city": "Bern"})])),
    (None, "llama3_json", "", TWO, ("", "", [("a", {}), ("b", {"x": [1]})])),
    (None, "llama3_json", "", '{"colour": "red"}', ("", '{"colour": "red"}', [])),
    (None, "llama3_json", "", NOT_ALONE, ("", NOT_ALONE, [])),
    (None, "llama3_json", "", "Text {\"name\": \"a\"}", ("", "Text {\"name\": \"a\"}", [])),
    ("qwen3", None, "", "<think>\nhm\n</think>\n\nYes. ", ("\nhm\n", "Yes. ", [])),
    ("qwen3", None, "", "Yes </think> no", ("", "Yes </think> no", [])),
    ("qwen3", "hermes", "...assistant\n<think>\n", f"hm</think>\n\nSo\n{CALL}", ("hm", "So", [WEATHER])),
    ("deepseek_r1", None, "...assistant", "hm, 1 < 2</think>Yes", ("hm, 1 < 2", "Yes", [])),
    ("deepseek_r1", None, "...<think>\n", "never ends", ("never ends", "", [])),
    ("qwen3", "hermes", "", f"<think>{CALL}</think>no", (CALL, "no", [])),
]  # fmt: skip


def parsed(reasoning, tools, prompt, pieces):
    parser = OutputParser(reasoning, tools, prompt)
    parts = [part for piece in pieces for part in parser.push(piece)] + parser.finish()
    texts = ["".join(p.text for p in parts if p.kind == kind) for kind in ("reasoning", "content")]
    calls = [(p.call.name, json.loads(p.call.arguments)) for p in parts if p.call]
    assert parser.num_calls == len(calls)
    return (*texts, calls)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[3][:24]}")
def test_parts(case):
    reasoning, tools, prompt, text, expected = case
    assert parsed(reasoning, tools, prompt, [text]) == expected
    assert parsed(reasoning, tools, prompt, list(text)) == expected
    for cut in range(len(text) + 1):
        assert parsed(reasoning, tools, prompt, [text[:cut], text[cut:]]) == expected


def test_every_prefix_streams_as_it_is_parsed():
    """On random mixtures of tags, and on each prefix of them."""
    rng = random.Random(3)
    words = [
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        '{"name": "f", "arguments": {}}',
        "x",
        " ",
        "\n",
        "<",
        "{",
    ]
    for _ in range(300):
        text = "".join(rng.choices(words, k=rng.randrange(1, 12)))
        end = rng.randrange(len(text) + 1)
        for reasoning in (None, "qwen3", "deepseek_r1"):
            for tools in (None, "hermes", "llama3_json"):
                pieces, rest = [], text[:end]
                while rest:
                    size = rng.randrange(1, 5)
                    pieces.append(rest[:size])
                    rest = rest[size:]
                assert parsed(reasoning, tools, "", pieces) == parsed(reasoning, tools, "", [text[:end]])


def test_guess():
    assert guess_tool_parser("{{ messages }}") is None
    assert (
        guess_tool_parser('{% if tools %}... <tool_call>\\n{\\"name\\": <n>, \\"arguments\\": <a>}</tool_call>')
        == "hermes"
    )
    assert guess_tool_parser('{% if tools %} {"name": function name, "parameters": dictionary}') == "llama3_json"
    assert guess_tool_parser("{% if tools %} [TOOL_CALLS]") is None


@pytest.mark.parametrize("form", TOOL_PARSERS)
def test_a_forced_call_has_no_arguments_beside_the_described_ones(form):
    def grammar(parameters):
        return TOOL_PARSERS[form].grammar([{"function": {"name": "f", "parameters": parameters}}])

    described = {"type": "object", "properties": {"a": {"type": "string"}}}
    closed = json.dumps({**described, "additionalProperties": False})
    assert closed in grammar(described)
    for said in ({**described, "additionalProperties": {"type": "string"}}, {"type": "object"}):
        assert json.dumps(said) in grammar(said)
