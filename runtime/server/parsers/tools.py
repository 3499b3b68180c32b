"""Tool calls in the forms that model families write them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llmc.server.parsers.tags import TagSplitter


@dataclass(frozen=True)
class ToolCall:
    name: str
    arguments: str  #: JSON text


class ToolParser(ABC):
    """Takes content apart into text and calls. A call comes as a whole, once its end is known."""

    @abstractmethod
    def push(self, text: str) -> list[str | ToolCall]: ...

    @abstractmethod
    def finish(self) -> list[str | ToolCall]: ...

    @staticmethod
    @abstractmethod
    def grammar(tools: Sequence[Mapping[str, Any]]) -> str:
        """A Lark grammar of exactly one call of one of `tools`."""


class HermesToolParser(ToolParser):
    """<tool_call>{"name": ..., "arguments": {...}}</tool_call>: Hermes, Qwen 2.5 and 3, SmolLM 3."""

    def __init__(self) -> None:
        self._tags = TagSplitter("<tool_call>", "</tool_call>")
        self._call = ""

    def push(self, text: str) -> list[str | ToolCall]:
        found: list[str | ToolCall] = []
        for inside, piece, closed in self._tags.push(text):
            if not inside:
                found.append(piece)
                continue
            self._call += piece
            if closed:
                found.append(_call(self._call, ("arguments", "parameters")) or f"<tool_call>{self._call}</tool_call>")
                self._call = ""
        return found

    def finish(self) -> list[str | ToolCall]:
        found: list[str | ToolCall] = []
        for inside, piece, _ in self._tags.finish():
            if inside:
                self._call += piece
            else:
                found.append(piece)
        if self._tags.inside:  # cut off, by a limit or by the model: a whole call is a call
            found.append(_call(self._call, ("arguments", "parameters")) or f"<tool_call>{self._call}")
        return found

    @staticmethod
    def grammar(tools: Sequence[Mapping[str, Any]]) -> str:
        return f'start: "<tool_call>\\n" call "\\n</tool_call>"\ncall: %json {_schema(tools, "arguments")}\n'


class Llama3ToolParser(ToolParser):
    """An answer that is {"name": ..., "parameters": {...}} and no more, several apart by semicolons: Llama 3."""

    def __init__(self) -> None:
        self._held: str | None = ""  # None: this is text

    def push(self, text: str) -> list[str | ToolCall]:
        if self._held is None:
            return [text]
        self._held += text
        begun = self._held.lstrip()
        if begun and not begun.startswith("{"):
            text, self._held = self._held, None
            return [text]
        return []

    def finish(self) -> list[str | ToolCall]:
        text = self._held
        if not text:
            return []
        calls: list[str | ToolCall] = []
        rest = text.strip()
        decoder = json.JSONDecoder()
        while rest:
            try:
                _, end = decoder.raw_decode(rest)
            except ValueError:
                return [text]
            call = _call(rest[:end], ("parameters", "arguments"))
            if call is None:
                return [text]
            calls.append(call)
            rest = rest[end:].lstrip("; \t\r\n")
        return calls

    @staticmethod
    def grammar(tools: Sequence[Mapping[str, Any]]) -> str:
        return f"start: call\ncall: %json {_schema(tools, 'parameters')}\n"


#: Names are vLLM's.
TOOL_PARSERS: dict[str, type[ToolParser]] = {"hermes": HermesToolParser, "llama3_json": Llama3ToolParser}


def guess_tool_parser(chat_template: str) -> str | None:
    """The form that a chat template asks for; None: it knows no tools, or a form that llmc does not read."""
    if "tools" not in chat_template:
        return None
    if "<tool_call>" in chat_template and '"arguments"' in chat_template.replace("\\", ""):
        return "hermes"
    return "llama3_json" if '"parameters"' in chat_template.replace("\\", "") else None


def _call(text: str, fields: Sequence[str]) -> ToolCall | None:
    """The call that a JSON object describes, or None where it is not one."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments: Any = next((value[field] for field in fields if field in value), {})
    if isinstance(arguments, str):  # some models write the object as a text
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return None
    if not isinstance(arguments, dict):
        return None
    return ToolCall(value["name"], json.dumps(arguments, ensure_ascii=False))


def _schema(tools: Sequence[Mapping[str, Any]], field: str) -> str:
    calls = [
        {
            "type": "object",
            "properties": {
                "name": {"const": tool["function"]["name"]},
                field: _closed(tool["function"].get("parameters") or {"type": "object"}),
            },
            "required": ["name", field],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return json.dumps(calls[0] if len(calls) == 1 else {"anyOf": calls})


def _closed(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """No arguments beside those that are described: a function does not take them, and small models invent many."""
    if "properties" in parameters and "additionalProperties" not in parameters:
        return {**parameters, "additionalProperties": False}
    return parameters
