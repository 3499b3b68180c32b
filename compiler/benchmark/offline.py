"""Runs requests on an engine in this process, and notes when each token came."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from llmc.compiler.benchmark.records import Record
from llmc.compiler.benchmark.workload import WorkItem

if TYPE_CHECKING:
    from llmc.runtime import Engine
    from llmc.runtime.request_state import RequestState

# Waiting in C++ cannot be interrupted, so it comes up for Ctrl-C and for the watcher this often.
_POLL_SECONDS = 0.1


def run_offline(
    engine: Engine,
    items: Sequence[WorkItem],
    *,
    concurrency: int | None = None,
    on_finish: Callable[[Record], None] | None = None,
    observe: Callable[[], None] | None = None,
) -> tuple[list[Record], float]:
    """Records in the order of `items`, and the seconds from the first submit to the last token.

    Every answer runs to its length, greedy, past any end of sequence. A request is submitted at its
    arrival (at once where it has none), but never more than `concurrency` at a time. `observe` is called
    whenever tokens came. Raises what Engine.generate does.
    """
    from llmc.runtime import SamplingParams
    from llmc.runtime._runtime import Mailbox

    mailbox = Mailbox()
    records = [Record(len(item.prompt), item.arrival or 0.0, asked_tokens=item.output_tokens) for item in items]
    states: list[RequestState] = []
    running = 0
    start = time.perf_counter()
    try:
        while len(states) < len(items) or running:
            now = time.perf_counter() - start
            room = len(states) < len(items) and (concurrency is None or running < concurrency)
            if room and records[len(states)].due <= now:
                item, key = items[len(states)], len(states)
                params = SamplingParams(max_tokens=item.output_tokens, temperature=0.0, ignore_eos=True)
                records[key].sent = now
                states.append(engine.submit(item.prompt, params, mailbox, key))
                running += 1
                continue
            wait = min(_POLL_SECONDS, records[len(states)].due - now) if room else _POLL_SECONDS
            events = mailbox.take(wait)
            now = time.perf_counter() - start
            for key, event in events:
                state, record = states[key], records[key]
                delta = state.update(event)
                if delta.token_ids:
                    record.arrivals.append((now, len(delta.token_ids)))
                    record.output_tokens += len(delta.token_ids)
                if state.finished:
                    record.finished = now
                    record.cached_tokens = delta.num_cached_tokens
                    running -= 1
                    if on_finish:
                        on_finish(record)
            if observe:
                observe()
    finally:
        for state in states:  # after an error or Ctrl-C nothing may go on in the background
            state.request.cancel()
    return records, time.perf_counter() - start
