"""What an operator can set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServerConfig:
    """Limits are refusals with numbers: 413 for the body, 429 for the queue."""

    api_keys: tuple[str, ...] = ()  #: empty: everyone may ask
    allowed_origins: tuple[str, ...] = ()  #: CORS
    max_body_bytes: int = 32 << 20
    max_requests: int = 4096  #: completions that wait or run, over all engines; more get 429
    request_timeout: float | None = None  #: seconds; a completion ends with what it has
    default_max_tokens: int | None = None  #: of completions that do not say it; None: 16 for text, the rest for chat
    response_store_bytes: int = 64 << 20  #: of finished responses, for previous_response_id; 0: none is stored
    expose_docs: bool = False  #: /docs, which loads its page from the network
