"""Requests of the Responses API. What a field means is OpenAI's definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from llmc.server.protocol import Body, Common, Structure


class Item(BaseModel):
    # Clients send items back as they got them, from this server or another, with fields that say nothing
    # to a model: ids, states, annotations.
    model_config = ConfigDict(extra="ignore", strict=True)


class TextContent(Item):
    type: Literal["input_text", "output_text", "text"]
    text: str


class Refusal(Item):
    type: Literal["refusal"]
    refusal: str


def _by_type(kinds: Mapping[str | None, str]) -> Discriminator:
    """Chooses by `type`. Members are tagged with the names of their classes, which errors.py leaves out of places."""

    def kind(value: Any) -> str:
        given = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
        return kinds.get(given if isinstance(given, str) else None, "")

    *most, last = (name for name in kinds if name)
    message = f"expected something of type {', '.join(most)} or {last}"
    return Discriminator(kind, custom_error_type="unknown_type", custom_error_message=message)


_TEXTS = dict.fromkeys(("input_text", "output_text", "text"), "TextContent")
Content = Annotated[
    Annotated[TextContent, Tag("TextContent")] | Annotated[Refusal, Tag("Refusal")],
    _by_type({**_TEXTS, "refusal": "Refusal"}),
]


class InputMessage(Item):
    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[Content]


class InputCall(Item):
    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str


class CallOutput(Item):
    type: Literal["function_call_output"]
    call_id: str
    output: str | list[TextContent]


class ReasoningText(Item):
    type: Literal["reasoning_text"] = "reasoning_text"
    text: str


class InputReasoning(Item):
    type: Literal["reasoning"]
    content: list[ReasoningText] | None = None


_ITEMS = {
    "message": "InputMessage",
    None: "InputMessage",
    "function_call": "InputCall",
    "function_call_output": "CallOutput",
    "reasoning": "InputReasoning",
}
InputItem = Annotated[
    Annotated[InputMessage, Tag("InputMessage")]
    | Annotated[InputCall, Tag("InputCall")]
    | Annotated[CallOutput, Tag("CallOutput")]
    | Annotated[InputReasoning, Tag("InputReasoning")],
    _by_type(_ITEMS),
]


class FunctionTool(Body):
    type: Literal["function"]
    name: Annotated[str, Field(min_length=1, max_length=128)]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class NamedFunction(Body):
    type: Literal["function"]
    name: str


class TextFormat(Body):
    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    description: str | None = None
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    strict: bool | None = None


class TextConfig(Body):
    format: TextFormat | None = None
    verbosity: str | None = None


class Reasoning(Body):
    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None


class ResponsesRequest(Common):
    input: str | Annotated[list[InputItem], Field(min_length=1)]
    instructions: str | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    tools: list[FunctionTool] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedFunction | None = None
    parallel_tool_calls: bool | None = None
    max_tool_calls: int | None = None  # of tools that the server runs: there are none
    text: TextConfig | None = None
    structured_outputs: Structure | None = None
    reasoning: Reasoning | None = None
    include: list[str] | None = None
    previous_response_id: str | None = None
    truncation: Literal["auto", "disabled"] | None = None
    background: bool | None = None
    prompt_cache_retention: str | None = None
    chat_template_kwargs: Annotated[dict[str, Any], Field(default_factory=dict)]
