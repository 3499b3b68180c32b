"""The engines behind one server, by the names that requests use."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from llmc.runtime import LLM
from llmc.runtime.async_engine import AsyncEngine
from llmc.runtime.tokenizer import Tokenizer
from llmc.server.errors import ApiError
from llmc.server.parsers import guess_reasoning_parser, guess_tool_parser


@dataclass
class ServedModel:
    """An engine under a name."""

    name: str
    llm: LLM
    tool_call_parser: str | None = None  #: of llmc.server.parsers
    reasoning_parser: str | None = None
    created: int = field(default_factory=lambda: int(time.time()))

    @cached_property
    def engine(self) -> AsyncEngine:
        return AsyncEngine(self.llm)

    @property
    def max_length(self) -> int:
        """Tokens of one sequence, prompt and answer."""
        return int(self.llm.info["max_seq_len"])

    @property
    def tokenizer(self) -> Tokenizer:
        try:
            return self.llm.tokenizer
        except RuntimeError as error:
            raise ApiError(400, f"model '{self.name}' has no tokenizer: send token ids ({error})") from None

    @cached_property
    def longest_token(self) -> int:
        """Characters of the longest token."""
        return max(len(token) for token in self.tokenizer.backend.get_vocab())

    @property
    def health(self) -> str:
        """Empty while it serves requests, else why not."""
        return self.llm.health


def served(name: str, llm: LLM, tool_call_parser: str = "auto", reasoning_parser: str = "auto") -> ServedModel:
    """`auto` takes the parsers that the model's chat templates suggest, `none` none."""
    templates = ""
    with contextlib.suppress(RuntimeError):  # an engine without a tokenizer
        templates = "".join(llm.tokenizer.chat_template_source(kind) or "" for kind in ("default", "tool_use"))
    suggested = {"auto": guess_tool_parser(templates), "none": None}
    thinking = {"auto": guess_reasoning_parser(templates), "none": None}
    return ServedModel(
        name,
        llm,
        suggested.get(tool_call_parser, tool_call_parser),
        thinking.get(reasoning_parser, reasoning_parser),
    )


class Models:
    """At least one; the first answers requests that name no model."""

    def __init__(self, served: list[ServedModel]) -> None:
        if not served:
            raise ValueError("a server needs an engine")
        self._by_name: dict[str, ServedModel] = {}
        for one in served:
            if one.name in self._by_name:
                raise ValueError(f"two engines are called '{one.name}': name them NAME=ENGINE")
            self._by_name[one.name] = one

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._by_name.values())

    def get(self, name: str | None) -> ServedModel:
        if name is None:
            return next(iter(self._by_name.values()))
        if name not in self._by_name:
            known = ", ".join(f"'{one}'" for one in self._by_name)
            raise ApiError(404, f"model '{name}' is not served here; there is {known}", param="model",
                           code="model_not_found")  # fmt: skip
        return self._by_name[name]

    @property
    def num_requests(self) -> int:
        return sum(one.engine.num_requests for one in self)

    def close_streams(self) -> None:
        """Cancels what runs; the engines stay loaded."""
        for one in self:
            one.engine.close()
