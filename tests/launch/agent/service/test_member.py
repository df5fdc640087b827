"""What a member sends to the lead of the events on its host, and when it looks at its tasks."""

import asyncio
from pathlib import Path
from typing import Any, List

import pytest

from launch.agent.protocol.messages import Event, GpuFailed, Stop, Tick
from launch.agent.service import agent
from launch.agent.service.member import Member
from launch.agent.state.run_folder import RunFolder
from tests.support.agent.requested import RUN, run_request


class Link:
    """A link that keeps what is sent."""

    def __init__(self) -> None:
        self.sent: List[Event] = []

    def send(self, event: Event) -> None:
        self.sent.append(event)


def test_a_gpu_that_failed_is_sent_and_a_tick_is_not(tmp_path: Path) -> None:
    link, failed = Link(), GpuFailed(["worker:1"], "GPU 1 failed")

    async def scene() -> None:
        tasks: Any = None
        member = Member(run_request(), RunFolder(tmp_path, RUN, "h"), tasks, asyncio.Queue())
        member._link = link  # type: ignore[assignment]
        events: List[Event] = [Tick(), failed]
        for event in events:
            member._send(event)

    asyncio.run(scene())
    assert link.sent == [failed]


def test_other_events_neither_delay_a_tick_nor_are_ticks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lead of 200 hosts receives hundreds of events in a second, and looks at its own tasks four times."""
    monkeypatch.setattr(agent, "POLL_S", 0.02)

    async def scene() -> List[bool]:
        tasks: Any = None
        member = Member(run_request(), RunFolder(tmp_path, RUN, "h"), tasks, asyncio.Queue())
        member._events.put_nowait(GpuFailed([], ""))
        found: List[bool] = []
        while found.count(True) < 2:
            found.append(isinstance(await member._next(), Tick))
            member._events.put_nowait(GpuFailed([], ""))  # so the queue is never empty
        return found

    found = asyncio.run(asyncio.wait_for(scene(), 10.0))
    assert found.count(True) == 2 and not any(found[:2])


def test_an_order_is_carried_out_without_waiting_for_a_tick(tmp_path: Path) -> None:
    class Tasks:
        def obey(self, order: Any, now: float) -> None:
            self.order = order

    tasks: Any = Tasks()

    async def scene() -> Event:
        member = Member(run_request(), RunFolder(tmp_path, RUN, "h"), tasks, asyncio.Queue())
        member._take(Stop("ps:0", 1.0, 0))
        return member._events.get_nowait()  # type: ignore[no-any-return]

    assert isinstance(asyncio.run(scene()), Tick) and tasks.order == Stop("ps:0", 1.0, 0)


def test_only_one_tick_waits_however_many_children_end(tmp_path: Path) -> None:
    async def scene() -> List[int]:
        tasks: Any = None
        member = Member(run_request(), RunFolder(tmp_path, RUN, "h"), tasks, asyncio.Queue())
        sizes = []
        for _ in range(2):
            for _ in range(3):
                member.wake()
            sizes.append(member._events.qsize())
            await member._next()
        return sizes

    assert asyncio.run(scene()) == [1, 1]
