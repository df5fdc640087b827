"""What a member sends to the lead of the events on its host."""

import asyncio
from pathlib import Path
from typing import Any, List

from launch.agent.protocol.messages import Event, GpuFailed, Tick
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
