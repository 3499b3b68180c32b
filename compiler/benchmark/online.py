"""Sends requests to a server at their times, and notes when each token came."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from llmc.compiler.benchmark.records import Record
from llmc.compiler.benchmark.workload import WorkItem

#: Sends one request and fills its record by the clock; failures are noted in the record.
Ask = Callable[[WorkItem, Record, Callable[[], float]], Awaitable[None]]


async def run_online(
    ask: Ask,
    items: Sequence[WorkItem],
    *,
    concurrency: int | None = None,
    on_finish: Callable[[Record], None] | None = None,
) -> tuple[list[Record], float]:
    """Records in the order of `items`, and the seconds from the start to the end of the last answer.

    A request is sent at its arrival (at once where it has none), later where `concurrency` others run.
    """
    start = time.perf_counter()

    def clock() -> float:
        return time.perf_counter() - start

    room = asyncio.Semaphore(concurrency or len(items))
    records = [
        Record(len(item.prompt) if isinstance(item.prompt, list) else 0, item.arrival or 0.0,
               asked_tokens=item.output_tokens)
        for item in items
    ]  # fmt: skip

    async def one(item: WorkItem, record: Record) -> None:
        try:
            await ask(item, record, clock)
        finally:
            room.release()
        if on_finish:
            on_finish(record)

    tasks: list[asyncio.Task[None]] = []
    try:
        for item, record in zip(items, records, strict=True):
            await asyncio.sleep(max(0.0, record.due - clock()))
            await room.acquire()
            tasks.append(asyncio.create_task(one(item, record)))
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:  # after an error or Ctrl-C nothing may go on in the background
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return records, max(record.finished for record in records)
