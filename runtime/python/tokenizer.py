"""The tokenizer and chat template of an engine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers

from llmc.runtime.chat_template import ChatTemplate
from llmc.runtime.detokenizer import IncrementalDetokenizer
from llmc.runtime.engine_parts import read_json_part, read_part
from llmc.runtime.errors import BadEngineError

_SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token")
_BYTE_FALLBACK = re.compile(r"<0x([0-9A-F]{2})>")


def _byte_alphabet() -> dict[str, int]:
    """The characters in which byte-level BPE writes bytes: printable ones stand for themselves, the others
    for 256, 257 and so on in order of their byte (GPT-2's table)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


_BYTE_OF_CHAR = _byte_alphabet()


class Tokenizer:
    def __init__(self, engine: Path) -> None:
        data = read_part(engine, "tokenizer/tokenizer.json")
        if data is None:
            raise BadEngineError(
                f"{engine} has no tokenizer/tokenizer.json: pass token ids instead of text, "
                "or recompile it from a checkpoint that has a tokenizer"
            )
        try:
            self.backend = tokenizers.Tokenizer.from_buffer(data)
        except Exception as error:  # the package raises plain Exception
            raise BadEngineError(f"tokenizer/tokenizer.json cannot be read: {error}") from error
        self.config = read_json_part(engine, "tokenizer/tokenizer_config.json")
        self.special_ids = frozenset(
            id for id, token in self.backend.get_added_tokens_decoder().items() if token.special
        )
        self._template_file = read_part(engine, "tokenizer/chat_template.jinja")
        self._templates: dict[str, ChatTemplate] = {}

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return list(self.backend.encode(text, add_special_tokens=add_special_tokens).ids)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        return str(self.backend.decode(list(ids), skip_special_tokens=skip_special_tokens))

    def detokenizer(self, skip_special_tokens: bool = True) -> IncrementalDetokenizer:
        return IncrementalDetokenizer(
            lambda ids: self.decode(ids, skip_special_tokens=False),
            self.special_ids if skip_special_tokens else frozenset(),
        )

    def token_bytes(self, id: int) -> bytes:
        """The bytes that a token stands for; byte-level and byte-fallback tokens may be part of a character."""
        token = self.backend.id_to_token(id)
        if token is None:
            return b""
        if id not in self._added_ids:
            if self._byte_level and all(char in _BYTE_OF_CHAR for char in token):
                return bytes(_BYTE_OF_CHAR[char] for char in token)
            if (byte := _BYTE_FALLBACK.fullmatch(token)) and not self._byte_level:
                return bytes([int(byte[1], 16)])
            return token.replace("\u2581", " ").encode()
        return token.encode()

    @cached_property
    def _byte_level(self) -> bool:
        return '"ByteLevel"' in json.dumps(json.loads(self.backend.to_str())["decoder"])

    @cached_property
    def _added_ids(self) -> frozenset[int]:
        return frozenset(self.backend.get_added_tokens_decoder())

    @property
    def special_tokens(self) -> dict[str, str]:
        """``bos_token`` and the like, as chat templates name them."""
        found = {}
        for name in _SPECIAL_TOKENS:
            token = self.config.get(name)
            if isinstance(token, Mapping):  # a serialized AddedToken
                token = token.get("content")
            if isinstance(token, str):
                found[name] = token
        return found

    def apply_chat_template(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **variables: Any,
    ) -> str:
        return self._template("tool_use" if tools else "default").render(
            messages, tools=tools, add_generation_prompt=add_generation_prompt, **variables
        )

    def encode_chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> list[int]:
        """The template writes its special tokens itself: the tokenizer must not add them again."""
        return self.encode(self.apply_chat_template(messages, **options), add_special_tokens=False)

    def _template(self, name: str) -> ChatTemplate:
        if name not in self._templates:
            self._templates[name] = ChatTemplate(self._template_source(name), self.special_tokens)
        return self._templates[name]

    def chat_template_source(self, name: str = "default") -> str | None:
        """The Jinja text of the chat template; None: the model has none."""
        try:
            return self._template_source(name)
        except ValueError:
            return None

    def _template_source(self, name: str) -> str:
        if self._template_file is not None:
            return self._template_file.decode()
        source = self.config.get("chat_template")
        if isinstance(source, list):  # several named templates
            named = {entry["name"]: entry["template"] for entry in source}
            source = named.get(name, named.get("default"))
        if not isinstance(source, str):
            raise ValueError(
                "the model has no chat template: it is not a chat model; use generate() with a plain prompt"
            )
        return source
