"""A lead that takes the place of another waits for a launcher only where one is there."""

import asyncio
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest

from cluster.protocol.typed_json import to_values
from launch.agent.protocol.messages import Go, Tick
from launch.agent.service import lead
from launch.agent.service.lead import Lead
from launch.agent.service.recovery import DETACHED
from launch.agent.state.run_folder import RunFolder
from launch.status.run_history import RunHistory
from tests.support.agent.requested import RUN, run_plan, run_request, task_request
from tests.support.launch.statuses import history, status


class FakeTasks:
    """What a lead asks of its tasks before it runs."""

    def __init__(self, *prepared: Optional[str]):
        self._prepared, self.has_prepared = list(prepared), False

    def prepare_first(self) -> None:
        """Start processes before their turn."""
        self.has_prepared = True

    def restore_code(self) -> None:
        """Nothing was shipped."""

    def prepared(self, name: str) -> Optional[str]:
        """The state of the chief's process, when it is asked for the first time, the second time, …"""
        assert name == "worker:0"
        return self._prepared[0] if len(self._prepared) == 1 else self._prepared.pop(0)


@pytest.mark.parametrize("again, detached, lease_s", [(True, True, None), (True, False, 15.0), (False, True, 15.0)])
def test_a_lead_has_no_lease_where_the_launcher_has_left_the_one_before(
    again: bool, detached: bool, lease_s: Optional[float], tmp_path: Path
) -> None:
    folder = RunFolder(tmp_path, RUN, "h")
    folder.create()
    if detached:
        folder.write(DETACHED, {})

    async def lease() -> Optional[float]:
        request = run_request(task_request(), lease_s=15.0, again=again)
        lead = Lead(request, run_plan("h:2222"), folder, FakeTasks(), asyncio.Queue())  # type: ignore[arg-type]
        return lead._lease_s

    assert asyncio.run(lease()) == lease_s


@pytest.mark.parametrize(
    ("min_workers", "lease_s", "left_s"), [(2, 15.0, 15.0), (None, 15.0, math.inf), (2, None, math.inf)]
)
def test_a_keeper_waits_no_longer_for_a_lead_than_its_launcher_before_a_successor(
    min_workers: Optional[int], lease_s: Optional[float], left_s: float, tmp_path: Path
) -> None:
    """Found by seed 3057156: a lead that had woken was stopped, and its tasks trained beside those of the successor."""
    folder = RunFolder(tmp_path, RUN, "h")
    folder.create()

    async def left() -> List[float]:
        plan = replace(run_plan("h:2222"), min_workers=min_workers)
        tasks: Any = FakeTasks()
        lead = Lead(run_request(task_request(), lease_s=lease_s), plan, folder, tasks, asyncio.Queue())
        before = lead.left_s()
        async for _ in lead.answer({"do": "go"}):
            pass
        return [before, lead.left_s()]

    assert asyncio.run(left()) == [math.inf, pytest.approx(left_s, abs=1.0)]


_ANSWERED = {"do": "beat", "heard": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("again", "lease_s", "asked", "goes"),
    [
        (True, 15.0, {"do": "go"}, False),
        (True, 15.0, {"do": "beat", "heard": None}, False),
        (True, 15.0, _ANSWERED, True),
        (True, 15.0, {"do": "pause"}, True),  # perhaps before the next beat
        (True, None, {"do": "ping"}, True),
        (False, 15.0, _ANSWERED, False),  # while the agents of other hosts still start
        (False, 15.0, {"do": "go"}, True),
    ],
)
def test_a_lead_that_takes_over_starts_tasks_once_its_launcher_has_had_an_answer(
    again: bool, lease_s: Optional[float], asked: Dict[str, Any], goes: bool, tmp_path: Path
) -> None:
    """Found by a dense history: the request to start it arrived late, and a successor began beside it."""
    folder = RunFolder(tmp_path, RUN, "h")
    folder.create()

    async def has_go() -> bool:
        tasks: Any = FakeTasks()
        events: asyncio.Queue[Any] = asyncio.Queue()
        request = run_request(task_request(), lease_s=lease_s, again=again)
        leading = Lead(request, run_plan("h:2222"), folder, tasks, events)
        leading.go_away()
        await leading.run()
        async for _ in leading.answer(asked):
            pass
        return any(isinstance(events.get_nowait(), Go) for _ in range(events.qsize()))

    assert asyncio.run(has_go()) is goes


@pytest.mark.parametrize("sent", [[], [(5, 1.0), (10, 0.5)]])
def test_a_resumed_run_continues_the_curve_that_another_host_has_or_else_its_own(
    sent: List[Tuple[int, float]], tmp_path: Path
) -> None:
    earlier, own = RunFolder(tmp_path, "r-20251119-120000", "h"), history([(5, 2.0)])
    earlier.create()
    earlier.write("status.json", to_values(status(history=own)))
    folder = RunFolder(tmp_path, RUN, "h")
    folder.create()

    async def curve() -> RunHistory:
        request = replace(run_request(task_request()), resume=True, history=history(sent) if sent else None)
        lead = Lead(request, run_plan("h:2222"), folder, FakeTasks(), asyncio.Queue())  # type: ignore[arg-type]
        return lead._supervisor.curve.shown

    assert asyncio.run(curve()) == (history(sent) if sent else own)


@pytest.mark.parametrize(
    ("judge", "keeps_state", "flag"),
    [("outcome", False, "--resume "), ("exit", True, "--resume "), ("exit", False, "")],
)
def test_the_command_that_continues_a_run_is_one_that_the_launcher_takes(
    judge: str, keeps_state: bool, flag: str, tmp_path: Path
) -> None:
    folder = RunFolder(tmp_path, RUN, "h")
    folder.create()

    async def cause() -> Optional[str]:
        plan = replace(run_plan("h:2222"), judge=judge, keeps_state=keeps_state, deadline_s=5.0)
        lead = Lead(run_request(task_request()), plan, folder, FakeTasks(), asyncio.Queue())  # type: ignore[arg-type]
        for now in (0.0, 5.0):
            lead._supervisor.handle(Tick(), now)
        return lead._supervisor.state.cause

    assert f"continue with `launch up {flag}" in str(asyncio.run(cause()))


def test_a_lead_names_the_hosts_that_it_hears_and_that_do_not_leave(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, RUN, "h")
    folder.create()

    class Link:
        def __init__(self, silent_s: float):
            self.heard_at = asyncio.get_event_loop().time() - silent_s

    async def linked() -> List[Any]:
        lead = Lead(run_request(task_request()), run_plan("h:2222"), folder, FakeTasks(), asyncio.Queue())  # type: ignore[arg-type]
        heard: Any = {"young": Link(0.5), "old": Link(2.0), "leaves": Link(0.5)}
        lead._members._links.update(heard)
        lead._supervisor.departures.reasons["leaves"] = "its agent received SIGTERM"
        return [each async for each in lead.answer({"do": "linked"})]

    assert asyncio.run(linked()) == [{"hosts": ["h", "young"]}]


@pytest.mark.parametrize("states", [("loads", "loads", "ready"), ("loads", "ended"), ("loads", None), (None,)])
def test_it_reports_the_chiefs_process_once_that_is_ready_or_has_ended(
    states: Tuple[Optional[str], ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lead, "LOOK_S", 0.001)
    folder = RunFolder(tmp_path, RUN, "h")
    folder.create()

    async def answers() -> List[Any]:
        tasks: Any = FakeTasks(*states)
        leading = Lead(run_request(task_request()), run_plan("h:2222"), folder, tasks, asyncio.Queue())
        return [each async for each in leading.answer({"do": "prepared"})]

    assert asyncio.run(answers()) == [{"prepared": states[-1]}]


@pytest.mark.parametrize("again", [True, False])
def test_an_agent_that_takes_the_place_of_another_starts_no_process_before_its_turn(
    again: bool, tmp_path: Path
) -> None:
    """Processes of the run's first attempts may live, or have ended."""
    folder = RunFolder(tmp_path, RUN, "h")
    folder.create()
    tasks: Any = FakeTasks()

    async def run() -> None:
        leading = Lead(run_request(task_request(), again=again), run_plan("h:2222"), folder, tasks, asyncio.Queue())
        leading.go_away()
        await leading.run()

    asyncio.run(run())
    assert tasks.has_prepared is not again
