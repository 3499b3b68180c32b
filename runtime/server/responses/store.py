"""Finished responses in memory, for `previous_response_id` and GET. The oldest go when there are too many bytes."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llmc.server.errors import ApiError
from llmc.server.responses.conversation import PlainMessage


@dataclass(frozen=True)
class Stored:
    response: dict[str, Any]
    input: list[dict[str, Any]]  #: its input items
    messages: Sequence[PlainMessage]  #: the conversation up to and with its output, without instructions
    size: int  #: bytes as JSON


class ResponseStore:
    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used = 0
        self._kept: OrderedDict[str, Stored] = OrderedDict()

    def put(self, response: dict[str, Any], given: list[dict[str, Any]], messages: Sequence[PlainMessage]) -> None:
        size = sum(len(json.dumps(one)) for one in (response, given, messages))
        if size > self.max_bytes:
            return
        self._kept[response["id"]] = Stored(response, given, messages, size)
        self.used += size
        while self.used > self.max_bytes:
            _, oldest = self._kept.popitem(last=False)
            self.used -= oldest.size

    def get(self, id: str, param: str | None = None) -> Stored:
        """Raises ApiError 404."""
        if (found := self._kept.get(id)) is None:
            raise ApiError(
                404,
                f"there is no response '{id}' here: expected one of this server that was stored and not yet pushed "
                f"out of its {self.max_bytes} bytes (--response_store_bytes); send the whole conversation instead",
                param=param,
                code="response_not_found",
            )
        self._kept.move_to_end(id)
        return found

    def delete(self, id: str) -> None:
        """Raises ApiError 404."""
        self.used -= self.get(id).size
        del self._kept[id]
