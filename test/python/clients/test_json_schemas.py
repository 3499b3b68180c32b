"""Schemas of a public suite: an answer is valid, or the schema is refused with the keyword that is not supported."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import httpx
import jsonschema
import pytest
import tokenizers
from support.json_schema_suite import schemas

from llmc.runtime.structured import GrammarCompiler, StructuredOutputs

pytestmark = [pytest.mark.clients, pytest.mark.slow]

# What a refusal names: keywords, values of format, references that lead out of the schema; or that nothing is valid.
NAMED = re.compile(
    r'Unimplemented keys: \["\$?\w+"|oneOf|multipleOf|patternProperty regexes|\$ref: |Unknown format: \S+'
    r"|Expected positive integer for '\w+'|Unsatisfiable schema"
)


def refusal(compiler: GrammarCompiler, schema: object) -> str | None:
    try:
        compiler.compile(StructuredOutputs(json=schema))
    except ValueError as error:
        return str(error)
    return None


@pytest.fixture(scope="module")
def compiler(smollm2_host_engine: Path) -> GrammarCompiler:
    """With the vocabulary of a real model."""
    text = (smollm2_host_engine / "tokenizer" / "tokenizer.json").read_text(encoding="utf-8")
    return GrammarCompiler(text, 49152, [2])


def test_no_grammar_takes_what_its_schema_does_not(smollm2_host_engine, compiler):
    tokenizer = tokenizers.Tokenizer.from_file(str(smollm2_host_engine / "tokenizer" / "tokenizer.json"))
    compiled = refused = instances = 0
    for name, schema, tests in schemas():
        if (why := refusal(compiler, schema)) is not None:
            assert NAMED.search(why), (name, why)
            refused += 1
            continue
        compiled += 1
        for data, valid in tests:
            matcher = compiler.compile(StructuredOutputs(json=schema))._matcher
            ids = tokenizer.encode(json.dumps(data, ensure_ascii=False), add_special_tokens=False).ids
            taken = matcher.try_consume_tokens(ids) == len(ids) and matcher.is_accepting()
            # Some valid ones are not taken (1.0 for a constant 1): less than the schema allows is still valid.
            assert valid or not taken, (name, data)
            instances += 1
    print(f"{compiled} schemas compiled, {refused} refused; {instances} instances")
    assert compiled >= 300 and instances >= 1000


def test_answers_are_valid(smollm2_server, compiler):
    """All schemas through the server, sampled at a temperature that makes nonsense likely."""
    limits = httpx.Limits(max_connections=32)

    async def answer(client: httpx.AsyncClient, number: int, name: str, schema: object) -> str:
        body = {
            "messages": [{"role": "user", "content": "Answer with a very short JSON value."}],
            "structured_outputs": {"json": schema}, "max_tokens": 200, "temperature": 1.0, "seed": number,
        }  # fmt: skip
        found = await client.post("/v1/chat/completions", json=body)
        if found.status_code == 400:
            why = found.json()["error"]["message"]
            assert NAMED.search(why), (name, why)
            return "refused"
        assert found.status_code == 200, (name, found.text)
        [choice] = found.json()["choices"]
        if choice["finish_reason"] == "length":
            return "cut off"
        validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        validator(schema).validate(json.loads(choice["message"]["content"]))
        return "valid"

    async def everything() -> list[str]:
        async with httpx.AsyncClient(base_url=smollm2_server, limits=limits, timeout=600) as client:
            asked = [answer(client, i, name, schema) for i, (name, schema, _) in enumerate(schemas())]
            return await asyncio.gather(*asked)

    outcomes = asyncio.run(everything())
    counts = {outcome: outcomes.count(outcome) for outcome in set(outcomes)}
    print(counts)
    assert counts["valid"] >= 200, counts
    assert httpx.get(f"{smollm2_server}/health").status_code == 200
