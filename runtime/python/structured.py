"""Outputs that follow a grammar: JSON schemas, regular expressions, choices, context-free grammars.

llguidance decides which tokens may come next. It refuses what it does not implement by name, and its parsers
have limits, so that a bad schema costs an error and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import llguidance
import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class StructuredOutputs:
    """Exactly one of these; the names are vLLM's."""

    json: str | Mapping[str, Any] | bool | None = None  #: a JSON schema
    json_object: bool | None = None  #: any JSON object
    regex: str | None = None
    choice: Sequence[str] | None = None
    grammar: str | None = None  #: Lark, or GBNF

    def __post_init__(self) -> None:
        given = [one.name for one in fields(self) if getattr(self, one.name) is not None]
        if self.json_object is False:
            given.remove("json_object")
        if len(given) != 1:
            known = ", ".join(one.name for one in fields(self))
            raise ValueError(f"structured_outputs: expected one of {known}, found {' and '.join(given) or 'none'}")
        if self.choice is not None and not (self.choice and all(isinstance(one, str) and one for one in self.choice)):
            raise ValueError("structured_outputs.choice: expected at least one text, none of them empty")

    def source(self) -> str:
        """In llguidance's own language. Raises ValueError."""
        if self.json_object:
            return llguidance.grammar_from("json_schema", '{"type": "object"}')
        if self.json is not None:
            text = self.json if isinstance(self.json, str) else json.dumps(self.json)
            return llguidance.grammar_from("json_schema", text)
        if self.regex is not None:
            return llguidance.grammar_from("regex", self.regex)
        if self.choice is not None:
            return llguidance.grammar_from("choice", json.dumps(list(self.choice)))
        return llguidance.grammar_from("grammar", self.grammar or "")


class GrammarCompiler:
    """Of one engine: knows its tokenizer, its logits and its end tokens."""

    def __init__(self, tokenizer_json: str, vocab_size: int, eos_token_ids: Sequence[int]) -> None:
        self._arguments = (tokenizer_json, vocab_size, list(eos_token_ids))

    @cached_property
    def _tokenizer(self) -> llguidance.LLTokenizer:
        text, vocab_size, eos = self._arguments
        if not eos:
            raise ValueError("structured outputs need an end-of-sequence token, and the model has none")
        return llguidance.LLTokenizer(text, n_vocab=vocab_size, eos_token=eos)

    def compile(self, outputs: StructuredOutputs) -> GrammarMask:
        """Raises ValueError with what is wrong in the grammar. Takes milliseconds, without the GIL."""
        source = outputs.source()
        is_error, messages = llguidance.LLMatcher.validate_grammar_with_warnings(source, self._tokenizer)
        if is_error:
            raise _refused(messages[0])
        matcher = llguidance.LLMatcher(self._tokenizer, source, log_level=0)
        if matcher.is_error():
            raise _refused(matcher.get_error())
        return GrammarMask(matcher)


class GrammarMask:
    """The token_mask of one request."""

    def __init__(self, matcher: llguidance.LLMatcher) -> None:
        self._matcher = matcher
        self._seen = 0

    def __call__(self, tokens: npt.NDArray[np.int32], num_prompt_tokens: int, mask: npt.NDArray[np.uint32]) -> None:
        output = tokens[num_prompt_tokens:]
        self._matcher.consume_tokens([int(id) for id in output[self._seen :]])
        self._seen = len(output)
        if not self._matcher.is_error():
            self._matcher.unsafe_compute_mask_ptr(mask.ctypes.data, mask.nbytes)
        if self._matcher.is_error():
            raise _refused(self._matcher.get_error())


def _refused(error: str) -> ValueError:
    """Without llguidance's dump of its state and of the grammar."""
    text = error.partition("<state>")[0].strip()
    if text.startswith(("Resource ", "Anchor ")):
        text = f"$ref: {text}"
    return ValueError(f"structured_outputs: {text}")
