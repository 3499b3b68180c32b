"""A session with litellm: python litellm_session.py BASE_URL MODEL"""

from __future__ import annotations

import asyncio
import json
import sys

import litellm

url, name = sys.argv[1:]
question = [{"role": "user", "content": "What is the capital of France?"}]
server = {"model": f"openai/{name}", "api_base": url, "api_key": "none", "num_retries": 0}
greedy = {**server, "temperature": 0, "max_tokens": 40}
schema = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}},
    "required": ["city"],
    "additionalProperties": False,
}

whole = litellm.completion(messages=question, **greedy)
assert "Paris" in whole.choices[0].message.content and whole.usage.completion_tokens > 0

pieces = [
    chunk.choices[0].delta.content or "" for chunk in litellm.completion(messages=question, stream=True, **greedy)
]
assert "".join(pieces) == whole.choices[0].message.content


async def both() -> tuple[str, str]:
    one = await litellm.acompletion(messages=question, **greedy)
    text = ""
    async for chunk in await litellm.acompletion(messages=question, stream=True, **greedy):
        text += chunk.choices[0].delta.content or ""
    return one.choices[0].message.content, text


assert asyncio.run(both()) == (whole.choices[0].message.content,) * 2

tool = {"type": "function", "function": {"name": "weather", "description": "The weather", "parameters": schema}}
called = litellm.completion(
    messages=question, tools=[tool], tool_choice="required", **{**greedy, "max_tokens": 100}
).choices[0]
assert called.finish_reason == "tool_calls"
assert "city" in json.loads(called.message.tool_calls[0].function.arguments)

form = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema, "strict": True}}
assert "city" in json.loads(
    litellm.completion(messages=question, response_format=form, **greedy).choices[0].message.content
)

text = litellm.text_completion(prompt="Once upon a time", **{**greedy, "model": f"text-completion-openai/{name}"})
assert len(text.choices[0].text) > 10

response = litellm.responses(input=question[0]["content"], model=f"openai/{name}", api_base=url, api_key="none",
                             temperature=0, max_output_tokens=40)  # fmt: skip
assert response.output[0].content[0].text == whole.choices[0].message.content

try:
    litellm.completion(messages=question, **{**greedy, "model": "openai/gpt-4o"})
    raise SystemExit("a model that is not served was answered")
except litellm.NotFoundError:
    pass
print("ok")
