"""What another version of the launcher has written or sent is read: a field may be missing, or one more be there.

A run is of one version: hosts run the code that its launcher has sent. Verbs of another version read the records of the
run, and what its agent answers.
"""

import io
import json
from contextlib import redirect_stdout
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Set, Tuple, get_type_hints

import pytest

from cluster.protocol.typed_json import from_values, to_values, updated
from launch.agent import leftovers
from launch.agent.containers import control
from launch.agent.linux import processes, sockets
from launch.agent.state import boot_unit, plan_file, process_records, runs
from launch.agent.state.plan_file import KeptPlan
from launch.agent.state.run_folder import RunFolder
from launch.agent.verbs import down, status
from launch.agent.wire.run_request import RunRequest
from launch.agent.wire.verb_requests import RunReference
from launch.page import run_page
from launch.status.incident_status import IncidentStatus
from launch.status.run import EffectiveTime, FormationStatus, Remaining, RunStatus
from launch.status.task import TaskStatus
from launch.view import run_end
from launch.view.live_view import print_status
from launch.view.plain_view import View
from tests.launch.agent.test_damaged_records import write_all
from tests.simulation.damage import places, without
from tests.support.agent.histories import Replay, failed
from tests.support.agent.requested import RUN, run_request, task_request

# Fields without which a record is none: version 0.1.0 has written them. A newer field has a default.
NEEDED = {
    "AgentProcesses": {"boot", "agent", "keeper"},
    "TaskProcesses": {"boot", "leaders", "others"},
    "ProcessName": {"pid", "start"},
    "RecordedContainers": {"program", "names"},
    "LeadAddress": {"host"},
    "KeptTask": {"name"},
    "Container": {"image"},
    "Wanted": {"run", "step"},
}
OF_LEFTOVERS = ("plan.json", "agent.json", "processes.json", "containers.json", "groups.json")
CROSSING = (
    RunStatus, KeptPlan, process_records.AgentProcesses, process_records.TaskProcesses,
    process_records.RecordedContainers,
)  # fmt: skip


def needed(kind: Any, found: Dict[str, Set[str]]) -> Dict[str, Set[str]]:
    """The fields without a default of a dataclass, and of all inside it."""
    if not is_dataclass(kind):
        for inside in getattr(kind, "__args__", None) or ():
            needed(inside, found)
    elif kind.__name__ not in found:
        own = {each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING}
        found[kind.__name__] = own
        for hint in get_type_hints(kind).values():
            needed(hint, found)
    return found


def test_no_newer_field_of_what_crosses_versions_is_needed() -> None:
    found: Dict[str, Set[str]] = {}
    for kind in CROSSING:
        needed(kind, found)
    assert {name: own for name, own in found.items() if own} == NEEDED


def shown_by_a_lead() -> Dict[str, Any]:
    """A status with something in every part."""
    replay = Replay()
    replay.up()
    replay.at(5.0, failed("worker:1"))
    values = to_values(replay.run.status())
    values.update(
        state="failed", cause="it broke", formation=to_values(FormationStatus(1, 2, 3, 1, 1, without=["b"])),
        effective=to_values(EffectiveTime(0.5, 1.0, 2.0)), remaining=to_values(Remaining(1.0, ["worker:0"])),
        evaluation={"step": 3.0, "loss": None}, best={"step": 3.0, "loss": 0.5}, metrics={"loss": 0.5}, steps=10,
        global_step=7, loss=0.5, steps_per_second=2.0, waiting_share=0.2, warnings=["slow"], replicas={"b": 3},
    )  # fmt: skip
    return values


def show(run: RunStatus) -> str:
    """All that launchers print of a run."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        print_status(run, wide=True)
        View().show(run)
        lines = [*run_end.ending(run, "r.yaml"), *run_end.what_happened(run), *run_end.saved(run, "r.yaml")]
        print(json.dumps(run_page.facts(run)), json.dumps(to_values(run)), run_end.exit_code(run, ()), *lines)
    return printed.getvalue()


def test_a_status_of_another_version_is_shown() -> None:
    whole = shown_by_a_lead()
    assert "it broke" in show(from_values(RunStatus, whole))
    for where in places(whole):
        assert show(from_values(RunStatus, without(whole, where))), where
    assert show(from_values(RunStatus, _with_more(RunStatus, whole))) == show(from_values(RunStatus, whole))


def _with_more(hint: Any, value: Any) -> Any:
    """A value of a type, with an unknown field in every dataclass in it."""
    inside = [each for each in getattr(hint, "__args__", None) or () if each is not type(None)]
    if is_dataclass(hint) and isinstance(value, dict):
        hints = get_type_hints(hint)
        return {**{key: _with_more(hints.get(key), each) for key, each in value.items()}, "newer": {"a": [1]}}
    if isinstance(value, list) and inside:
        return [_with_more(inside[0], each) for each in value]
    if isinstance(value, dict) and len(inside) == 2:
        return {key: _with_more(inside[1], each) for key, each in value.items()}
    return _with_more(inside[0], value) if len(inside) == 1 else value


def test_a_follower_takes_the_changes_of_another_version() -> None:
    """A change has the fields of a run that the lead of that version has."""
    known = from_values(RunStatus, shown_by_a_lead())
    for name in to_values(known):
        assert updated(known, {name: to_values(known)[name], "newer": 1}) == known
    assert from_values(TaskStatus, {"newer": 1}) == TaskStatus() and from_values(IncidentStatus, {}) == IncidentStatus()


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(status, "STARTS_S", 0.0)
    monkeypatch.setattr(sockets, "listened_by", lambda pids: [])
    for module in (processes, process_records):
        monkeypatch.setattr(module, "table", lambda: processes.ProcessTable([]))
    monkeypatch.setattr(control, "ask", _no_answer)
    folder = RunFolder(tmp_path, RUN, "h")
    write_all(folder, run_request(task_request(), workdir=str(tmp_path), run=RUN, returns=True))
    return folder


def _no_answer(program: str, *arguments: str) -> None:
    raise control.NoAnswer(f"cannot start {program}")


def _older_and_newer(name: str, record: Any) -> Iterator[Tuple[Any, Any]]:
    """Yield a record with more fields, and one without each of its fields."""
    kinds = {"plan.json": RunRequest, "status.json": RunStatus, "boot.json": boot_unit.KeptBoot}
    yield "newer", _with_more(kinds.get(name), {**record, "newer": 1})
    for where in places(record):
        yield where, without(record, where)


def test_verbs_read_the_records_of_a_run_of_another_version(folder: RunFolder) -> None:
    reference = RunReference("r", "h", str(folder.workdir))
    whole = {path.name: json.loads(path.read_text()) for path in folder.own.glob("*.json")}
    tried: List[Any] = []
    for name, record in whole.items():
        for where, other in _older_and_newer(name, record):
            folder.write(name, other)
            tried.append((name, where))
            assert runs.find(reference)["run"] == RUN, tried[-1]
            assert status.status(reference)["status"] is not None, tried[-1]
            if name in OF_LEFTOVERS:
                assert down.look(reference).run == RUN, tried[-1]
        folder.write(name, record)
    assert len(tried) > 100 and plan_file.read(folder).names == ("worker:0",)
    leftovers.end_for_good(folder)
