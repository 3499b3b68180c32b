"""The one exception that users of the frontend see."""

from collections.abc import Iterable


class FrontendError(Exception):
    """The input cannot become `llm` IR; the message says what is wrong and, where known, how to fix it.

    Command lines print the message alone: it needs no traceback.
    """


def bulleted(items: Iterable[str], limit: int = 20) -> str:
    """One indented line per item, with a count of what was left out."""
    items = list(items)
    lines = [f"  {item}" for item in items[:limit]]
    if len(items) > limit:
        lines.append(f"  ... and {len(items) - limit} more")
    return "\n".join(lines)
