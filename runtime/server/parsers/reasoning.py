"""Models that think aloud first: which tags, and whether the prompt has opened the first one."""

from __future__ import annotations

from llmc.server.parsers.tags import TagSplitter

#: Name -> (start, end). Names are vLLM's.
REASONING_PARSERS = {"deepseek_r1": ("<think>", "</think>"), "qwen3": ("<think>", "</think>")}


def reasoning_splitter(name: str, prompt: str) -> TagSplitter:
    """`prompt` is the rendered conversation: some templates end with the start tag, so that answers begin inside."""
    start, end = REASONING_PARSERS[name]
    last = prompt.rstrip()
    # DeepSeek-R1 leaves the start tag out where its template does not write it.
    inside = last.endswith(start) or (name == "deepseek_r1" and not last.endswith(end))
    return TagSplitter(start, end, inside)


def guess_reasoning_parser(chat_template: str) -> str | None:
    """A template that speaks of the end tag belongs to a model that writes it."""
    return "qwen3" if "</think>" in chat_template else None
