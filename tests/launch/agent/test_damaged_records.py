"""A record that a disk has damaged is as a missing one for every reader, or is refused with a reason.

The records are those that agents write: what the code writes and is not here fails a test.
"""

import ast
import asyncio
import contextlib
import importlib
import os
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

import pytest

from cluster.protocol.settings import Hook, Keep
from cluster.protocol.typed_json import to_values
from launch.agent import after, leftovers
from launch.agent.containers import control
from launch.agent.errors import AgentError
from launch.agent.hooks import outbox
from launch.agent.hooks.hooks import Hooks
from launch.agent.hooks.outbox import Delivery, Ledger
from launch.agent.limits import control_groups
from launch.agent.linux import processes, sockets
from launch.agent.linux.processes import Process
from launch.agent.protocol.messages import Go, Joined
from launch.agent.retention import pruning
from launch.agent.service import beginning, publication, recovery
from launch.agent.state import boot_unit, locks, newest_spans, plan_file, process_records, runs
from launch.agent.state.run_folder import RunFolder, lock_path
from launch.agent.verbs import down, logs, status, sweep
from launch.agent.verbs import runs as every
from launch.agent.wire.run_request import RunRequest
from launch.agent.wire.verb_requests import (
    FlightRequest,
    LogsRequest,
    PruneRequest,
    RunReference,
    RunsRequest,
    SweepRequest,
)
from launch.status.hook_event import HookEvent
from tests.simulation.damage import MANNERS, damaged
from tests.support.agent.histories import Replay, failed, started
from tests.support.agent.requested import RUN, run_plan, run_request

AGENT = Path(plan_file.__file__).parents[1]
TIMES = {"retyped": 2}  # of damage by other seeds; once for every other manner


def write_all(folder: RunFolder, request: RunRequest) -> None:
    """Write every record as agents do."""
    gone = Process(1 << 22, 1, 1, 1, "S", 1)
    replay = Replay()
    orders = replay.at(1.0, *map(Joined, replay.run.plan.hosts), Go())
    replay.at(5.0, started("worker:1"), failed("worker:1"))
    shown = replay.run.status()
    folder.create()
    plan_file.write(folder, request)
    boot_unit.write(folder, request)
    runs.note_generation(folder, 7)
    runs.end_for_good(RunReference("r", "h", str(folder.workdir), RUN), "launch down")
    process_records.write_agent(folder, gone, gone)
    process_records.ProcessRecord(folder, 0).note([Process(1 << 22, 0, 1, 1, "S", 1)])
    control.ContainerRecord(folder, SimpleNamespace(program="no-such-runtime")).begins("launch.r")  # type: ignore[arg-type]
    control_groups.write_place(folder, SimpleNamespace(folder=folder.own / "groups"))  # type: ignore[arg-type]
    recovery.Attempts(folder).note(orders)
    folder.note(recovery.DETACHED, {})
    folder.note("status.json", to_values(shown))
    publication.ReportFile(folder, lambda: 1.0).note(shown, final=True)
    outbox.write_ledger(folder, Ledger(("started",), [Delivery(0, HookEvent("failed", run=RUN, name="r"))]))
    asyncio.run(after.run(["false"], folder, {}, lambda pid: None))


def writes() -> Iterator[str]:
    """Yield the name of each record that some module of agents writes."""
    for path in sorted(AGENT.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr in ("write", "note")
            ):
                owner = getattr(call.func.value, "attr", getattr(call.func.value, "id", ""))
                if owner.endswith("folder") and call.args:
                    yield _value(call.args[0], _module(path))


def _module(path: Path) -> Any:
    return importlib.import_module(".".join(("launch.agent", *path.relative_to(AGENT).with_suffix("").parts)))


def _value(name: ast.AST, module: Any) -> str:
    """Return the text that a name or a constant of a module stands for."""
    if isinstance(name, ast.Name):
        return str(getattr(module, name.id))
    if isinstance(name, ast.Attribute):
        return str(getattr(_value_of(name.value, module), name.attr))
    return str(ast.literal_eval(name))


def _value_of(name: ast.AST, module: Any) -> Any:
    return getattr(module, name.id) if isinstance(name, ast.Name) else None


@pytest.fixture(name="request_")
def _request(tmp_path: Path) -> RunRequest:
    return run_request(workdir=str(tmp_path), run=RUN, returns=True, hooks=(Hook("failed", url="http://127.0.0.1:9"),))


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, request_: RunRequest, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = RunFolder(tmp_path, RUN, "h")
    write_all(folder, request_)
    return folder


def test_all_records_are_here(folder: RunFolder) -> None:
    assert {path.name for path in folder.own.glob("*.json")} == {*writes()}


async def _resumed(folder: RunFolder, request: RunRequest) -> None:
    Hooks(request, folder, lambda: None)


def readers(folder: RunFolder, request: RunRequest) -> Dict[str, Callable[[], Any]]:
    """The next agent, systemd after a boot, the next run, and the verbs."""
    reference, following = (
        RunReference("r", "h", str(folder.workdir)),
        RunFolder(folder.workdir, "r-20300101-000000", "h"),
    )
    prune = PruneRequest(("h",), str(folder.workdir), "r", Keep(), 2e9)
    return {
        "goes on": lambda: beginning.goes_on(folder, replace(request, run_plan=run_plan("h:2222"))),
        "next lead": lambda: recovery.Attempts(folder).continue_in(Replay().run, _earlier(folder)),
        "next report": lambda: publication.ReportFile(folder, lambda: 1.0).note(Replay().run.status(), final=False),
        "next hooks": lambda: asyncio.run(_resumed(folder, request)),
        "boot": lambda: beginning.start_again(folder.own, lambda asked: {"ready": True}),
        "successor": lambda: _succeeded(following, folder.run),
        "next run": lambda: leftovers.end_earlier_runs(following, "r", "r.yaml"),
        "status": lambda: status.status(reference),
        "look": lambda: down.look(reference),
        "find": lambda: runs.find(reference),
        "runs": lambda: every.runs(RunsRequest("h", str(folder.workdir))),
        "sweep": lambda: sweep.sweep(SweepRequest("h", str(folder.workdir), kill=False)),
        "prune": lambda: pruning.answer(prune),
        "flight": lambda: newest_spans.of_host(FlightRequest(reference, ("worker:0",), 3)),
        "logs": lambda: logs.logs(LogsRequest(reference, ("worker:0",)), lambda line: None, lambda seconds: True),
        "after": lambda: after.problem_of(folder),
        "down": lambda: leftovers.end_for_good(folder),  # the last: it removes what it finds
    }


def _succeeded(following: RunFolder, run: str) -> None:
    with contextlib.suppress(runs.EndedForGood):
        runs.refuse_ended(following, run)


def _no_answer(program: str, *arguments: str) -> None:
    raise control.NoAnswer(f"cannot start {program}")


def _earlier(folder: RunFolder) -> Any:
    before = recovery.read(folder)
    if before is None:
        return None
    recovery.continue_run(Replay().run, before, "h", 100.0)
    return before.status


def _noted(name: str, names: Set[str]) -> str:
    names.add(name)
    return name


def read_by_each(folder: RunFolder, request: RunRequest, monkeypatch: pytest.MonkeyPatch) -> Dict[str, Set[str]]:
    """Return the records that each reader reads."""
    read, has = RunFolder.read, RunFolder.has
    names: Set[str] = set()
    monkeypatch.setattr(RunFolder, "read", lambda self, name: read(self, _noted(name, names)))
    monkeypatch.setattr(RunFolder, "has", lambda self, name: has(self, _noted(name, names)))
    found = {}
    for reader, run in readers(folder, request).items():
        names.clear()
        run()
        found[reader] = set(names)
    monkeypatch.setattr(RunFolder, "read", read)
    monkeypatch.setattr(RunFolder, "has", has)
    return found


def _problems(folder: RunFolder, request: RunRequest, of: List[str]) -> Set[Tuple[str, str]]:
    found = set()
    for name, read in readers(folder, request).items():
        if name not in of:
            continue
        try:
            read()
        except AgentError:
            pass  # with its reason
        except Exception as error:
            found.add((name, repr(error)))
    return found


@pytest.mark.parametrize("manner", MANNERS)
def test_every_reader_takes_a_damaged_record_for_missing(
    manner: str, folder: RunFolder, request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "STARTS_S", 0.0)
    for module in (processes, process_records):
        monkeypatch.setattr(module, "table", lambda: processes.ProcessTable([]))
    monkeypatch.setattr(control, "ask", _no_answer)  # no process for each question
    monkeypatch.setattr(sockets, "listened_by", lambda pids: [])
    whole = {path: path.read_bytes() for path in folder.own.glob("*.json")}
    environment, found = dict(os.environ), {}
    read_by = read_by_each(folder, request_, monkeypatch)
    assert {name for names in read_by.values() for name in names} == {path.name for path in whole}
    for path, data in sorted(whole.items()):
        for seed in range(TIMES.get(manner, 1)):
            for each, content in whole.items():
                each.write_bytes(content)
            path.write_bytes(damaged(data, b"{}", manner, Random(seed)))
            problems = _problems(folder, request_, [reader for reader, names in read_by.items() if path.name in names])
            os.environ.update(environment)
            if problems:
                found[f"{path.name} {path.read_bytes()[:200]!r}"] = problems
    assert found == {}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"run": 7}', "\0\0\0"])
def test_a_lock_whose_text_is_damaged_is_nobodys(text: str, folder: RunFolder) -> None:
    lock = lock_path(folder.workdir, "r", "h")
    lock.parent.mkdir(exist_ok=True)
    lock.write_text(text)
    assert leftovers.agent_pid(folder) is None and str(lock) not in leftovers.look(folder).locks
    with locks.hold(folder, "r", "r.yaml"):
        assert leftovers.agent_pid(folder) == os.getpid()


def test_a_delivery_to_a_receiver_that_does_not_exist_is_left_out(folder: RunFolder, request_: RunRequest) -> None:
    outbox.write_ledger(
        folder, Ledger((), [Delivery(7, HookEvent("1", "failed")), Delivery(0, HookEvent("2", "failed"))])
    )

    async def pending() -> List[str]:
        return [delivery.event.id for delivery in Hooks(request_, folder, lambda: None).pending]

    assert asyncio.run(pending()) == ["2"]
