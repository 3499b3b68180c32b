"""Streams of servers of several kinds, read into records."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from llmc.compiler.benchmark.answer import Answer
from llmc.compiler.benchmark.records import Record
from llmc.compiler.benchmark.server_watch import statistics
from llmc.compiler.benchmark.sse import EventParser


def read(*events: dict[str, Any] | bytes) -> Record:
    """One event a second, the end of the connection a second later."""
    answer = Answer(Record(5))
    for moment, event in enumerate(events, 1):
        answer.take(event if isinstance(event, bytes) else json.dumps(event).encode(), float(moment))
    answer.end(len(events) + 1.0)
    return answer.record


def text(text: str, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"text": text, "finish_reason": finish}], **more}


def usage(completion: int, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": 9, "completion_tokens": completion, **more}


def test_events_survive_any_cut() -> None:
    stream = b': a comment\r\n\r\ndata: {"a": 1}\n\nevent: x\ndata:second\ndata: line\n\r\ndata: [DONE]\n\n'
    expected = [b'{"a": 1}', b"second\nline", b"[DONE]"]
    rng = random.Random(3)
    for _ in range(200):
        parser, found, left = EventParser(), [], stream
        while left:
            size = rng.randrange(1, 9)
            found += parser.feed(left[:size])
            left = left[size:]
        assert found == expected


def test_usage_with_every_event() -> None:
    record = read(
        text("", usage=usage(0)),
        text("ab", usage=usage(1)),
        text("cd", usage=usage(4)),
        text("", "length", usage=usage(5)),
        {"choices": [], "usage": usage(5, prompt_tokens_details={"cached_tokens": 8})},
        b"[DONE]",
    )
    assert record.ok
    assert record.arrivals == [(2.0, 1), (3.0, 3), (4.0, 1)]
    assert (record.input_tokens, record.output_tokens, record.cached_tokens, record.finished) == (9, 5, 8, 4.0)


def test_usage_at_the_end_is_spread_over_the_arrivals() -> None:
    record = read(text("a"), text("b"), text("", "stop"), {"choices": [], "usage": usage(5)}, b"[DONE]")
    assert [moment for moment, _ in record.arrivals] == [1.0, 2.0]
    assert sum(tokens for _, tokens in record.arrivals) == record.output_tokens == 5
    assert record.finished == 2.0


def test_without_usage_an_event_is_a_token() -> None:
    record = read(
        {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"delta": {"reasoning_content": "hm"}}]},
        {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]},
    )
    assert record.ok and record.arrivals == [(2.0, 1), (3.0, 1)]
    assert record.input_tokens == 5


@pytest.mark.parametrize(
    ("events", "error", "detail"),
    [
        ([text("a"), {"error": {"message": "the device failed"}}], "error in the stream", "the device failed"),
        ([text("a")], "stream ended early", "neither"),
        ([text("a"), text("", "timeout"), b"[DONE]"], "ended by the server: timeout", "after 1 tokens"),
    ],
)
def test_failures_in_the_middle(events: list[Any], error: str, detail: str) -> None:
    record = read(*events)
    assert not record.ok and record.error == error and detail in record.detail
    assert record.finished == len(events) + 1.0


def test_an_answer_without_tokens_is_no_success() -> None:
    assert not read(text("", "stop"), b"[DONE]").ok


VLLM = """# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="0",model_name="other"} 5.0
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 800.0
"""


def test_statistics_from_metrics_of_vllm_and_llama_cpp() -> None:
    assert statistics(VLLM, "m") == {"kv_used": 0.25, "num_running": 3.0, "num_looked_up_tokens": 800.0}
    assert statistics("llamacpp:requests_deferred 2\nother 7\n", "any") == {"num_waiting": 2.0}
