"""The verbs that talk to hosts, each with a conversation of it that goes well."""

import io
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Sequence

from cluster.protocol.typed_json import from_values, to_values
from launch.agent.wire.verb_requests import ExportRequest, RestartRequest
from launch.check.findings import Evidence
from launch.check.interview import CLOCK_READINGS, interview, requests
from launch.check.report import as_values, judge, lines
from launch.diagnosis import summary
from launch.diagnosis.collect import gather
from launch.diagnosis.symptoms import Diagnosis, time_line_of
from launch.environments import builder
from launch.errors import CannotStart
from launch.fleet import Fleet
from launch.history import as_values as runs_values
from launch.history import list_runs, newest_status
from launch.hosts.bundle import JobCode
from launch.logs.task_logs import print_first_cause, print_logs
from launch.monitoring.exporter import families
from launch.monitoring.newest_state import LeadConnection, newest_steps
from launch.page.run_page import document
from launch.page.run_page import facts as page_facts
from launch.plan.plan import make_plan
from launch.run import draft, resume
from launch.run.attached import Attached
from launch.run.follower import Follower
from launch.run.start import start_agents
from launch.status.incident_status import IncidentStatus
from launch.status.run import FormationStatus
from launch.teardown import as_values as down_values
from launch.teardown import in_lines as down_lines
from launch.teardown import look_and_take_down
from launch.verbs.board import Board
from launch.verbs.export import in_lines as in_lines_of_export
from launch.verbs.export_files import fetch
from launch.verbs.prune import as_values as prune_values
from launch.verbs.prune import in_lines as prune_lines
from launch.verbs.prune import prune_hosts
from launch.verbs.runs import table_lines as runs_lines
from launch.verbs.sweep import as_values as sweep_values
from launch.verbs.sweep import in_lines as sweep_lines
from launch.verbs.sweep import look_for_leftovers
from launch.verbs.task_changes import refusals, restarted
from launch.view import live_view, run_end
from launch.view.host_progress import HostProgress
from launch.view.plain_view import View
from tests.launch.environments.test_builder import order_for
from tests.support.agent.requested import run_request
from tests.support.launch.facts import CODE, facts
from tests.support.launch.statuses import status, task

Lines = List[Dict[str, Any]]
HOST, OTHER = "h1", "h2"
READY: Dict[str, Any] = {"missing": []}

INCIDENT: Dict[str, Any] = {
    "number": 1, "kind": "exit", "open": False, "at_s": 1.0, "role": "worker", "index": 0, "host": HOST, "attempt": 0,
    "step": 3, "cause": "exit code 3", "error": "", "exit_code": 3, "signal": None, "log": "/w/attempt_0.log",
    "lines": ["boom"], "stack": None, "followed_count": 1, "did": [], "restarted_s": 1.0, "again_s": 2.0,
    "followed": [{"at_s": 1.0, "kind": "exit", "role": "ps", "index": 0, "host": HOST, "attempt": 0}],
    "resumed_from": 0, "lost_steps": 1, "lost_seconds": 1.0,
}  # fmt: skip
_TASK = task(
    f"worker:0@{HOST}", wait_ms=1.0, straggler=True, step=3, step_time_ms=2.0, doing="loads", gpus=[0],
    bytes_in_per_second=1.0, bytes_out_per_second=1.0, gpu_percent=1.0, gpu_memory_bytes=1,
)  # fmt: skip
STATUS = status(
    _TASK, steps=10, global_step=3, loss=0.1, evaluation={"step": 1, "accuracy": 0.5},
    incidents=[from_values(IncidentStatus, INCIDENT)],
    silent=[HOST], waiting_share=0.5, metrics={"loss": 0.1}, checkpoint_step=1, checkpoint="/w/c",
    formation=FormationStatus(1, 1, 1, 1, 1, [], False), cause_incident=1, cause="exit code 3", replicas={HOST: 1},
)  # fmt: skip
RUN, TASK = to_values(STATUS), to_values(_TASK)
KNOWN = {"run": "r-1", "generation": 1, "lives": True, "lead": HOST, "hosts": [HOST], "highest": 1, "taken": False}
PROCESS = {"pid": 1, "group": 1, "start": 1, "argv": "python", "waits_in": None}
LEFT = {
    "run": "r-1", "processes": [PROCESS], "ports": [1], "gpu_memory": [{"gpu": 0, "pid": 1, "mib": 1}], "locks": ["l"],
}  # fmt: skip
FOUND = {**LEFT, "folders": ["f"]}
PRUNED = {
    "runs": 2, "bytes": 9, "going": [{"what": "run", "name": "r-1", "bytes": 9, "why": "old"}],
    "spared": [{"run": "r-2", "why": "old", "needed": "lives"}], "failed": [{"name": "r-1", "why": "no right"}],
}  # fmt: skip
REMEMBERED = {
    "generation": 1, "lives": False, "record": {
        "run": "r-1", "name": "r", "lead": HOST, "hosts": [HOST], "state": "failed", "cause": f"worker:0@{HOST}: boom",
        "started": "2026-11-20T15:59:02+00:00", "ended": "2026-11-20T16:59:02+00:00", "incidents": 1,
    },
}  # fmt: skip
TIMES: Lines = [{"time": 1.0}] * CLOCK_READINGS
LOOKED = {
    **facts(ports={}, clock=None), "names": {HOST: ["10.0.0.1"]},
    "proxies": ["http_proxy"], "run": {"run": "r-0", "pid": 1, "code": {"launcher": "1"}},
    "unreached": [{"address": f"{HOST}:2222", "host": HOST, "kind": "refused", "detail": "x"}],
}  # fmt: skip
FLIGHT: Dict[str, Any] = {
    "task": "worker:0", "read_at": 9.0, "why_none": None, "attempt": [0], "phase": ["step"], "step": [3],
    "began": [1.0], "took_s": [2.0], "waited_s": [1.0], "longest_ps": [0], "longest_s": [1.0], "whole": [True],
    "exchanged": [{"pushes": 1, "bytes": 4}], "torn": 0, "earlier": 0,
    "now": {"phase": "step", "phase_s": 9.0, "owes": True, "age_s": 0.1, "asked_s": 6.0},
}  # fmt: skip
PIECES: Lines = [
    {"file": "live.json", "json": {"agent": None, "processes": [
        {"task": "worker:0", "pid": 1, "state": "D", "waits_in": "x", "swapped_bytes": 10**9}]}},
    {"file": "kernel.json", "json": [{"kind": "disk", "time": 1.0, "text": "x"}]},
    {"file": "disks.json", "json": {"/": {
        "is_there": True, "free_bytes": 1, "bytes": 100, "inodes": 10, "free_inodes": 0, "writable": False}}},
    {"file": "disks.json", "json": {"/w": {"error": "gone"}}},
    {"file": "machine.json", "json": {"memory": {"MemTotal": 100, "MemAvailable": 1}, "cores": 1, "load": [9.0]}},
    {"file": "connections.json", "json": {"hanging": 1, "count": 2, "first": [{"remote": "x", "state": "y"}]}},
    {"file": "versions.json", "json": {
        "environment_ready": True, "python": {"version": "3", "path": "p"}, "packages": {"numpy": "1"},
        "code": {"job": "1"}}},
    {"file": "status.json", "json": {**RUN, "state": "running"}},
    {"file": "report.json", "json": {"words": ["x"]}},
    {"file": "tasks/worker.0/spans.json", "json": FLIGHT},
    {"file": "agent.log", "text": "hello"},
    {"missing": "gpus", "why": "late"},
    {"done": True, "run": "r-1", "lives": True, "generation": 1},
]  # fmt: skip


# -- the verbs: each returns what it says


def _status(fleet: Fleet, folder: Path) -> str:
    said: List[str] = []
    live_view.print_status(newest_status(fleet, "r.yaml", said.append))
    return "\n".join([HOST, *said])


def _look_on(fleet: Fleet, folder: Path) -> str:
    output = io.StringIO()
    live_view.print_status(Follower(fleet, status(task(f"worker:0@{HOST}")), View(output)).follow())
    return output.getvalue()


def _attend(fleet: Fleet, folder: Path) -> str:
    output = io.StringIO()
    plan = make_plan(fleet.spec, JobCode(None, ""), "r-1", "py")
    watched = Attached(fleet, plan, {HOST: run_request(host=HOST)}, View(output))
    ended = watched.go()
    run_end.exit_code(ended, [])
    return "\n".join([output.getvalue(), *run_end.ending(ended, "r.yaml")])


def _logs(fleet: Fleet, folder: Path) -> str:
    said: List[str] = []
    problems = print_logs(fleet, fleet.spec.tasks, said.append)
    if problems:
        raise CannotStart(problems)
    return "\n".join(said or [f"{HOST} has no lines"])


def _first_cause(fleet: Fleet, folder: Path) -> str:
    said: List[str] = [HOST]  # it says nothing of what it cannot learn: the lines come anyway
    print_first_cause(fleet, fleet.spec.tasks, said.append)
    return "\n".join(said)


def _down(fleet: Fleet, folder: Path) -> str:
    left = look_and_take_down(fleet, "a test")
    json.dumps(down_values(left))
    return "\n".join(down_lines(left))


def _sweep(fleet: Fleet, folder: Path) -> str:
    swept = look_for_leftovers(fleet, kill=False)
    json.dumps(sweep_values(swept))
    return "\n".join(sweep_lines(swept))


def _runs(fleet: Fleet, folder: Path) -> str:
    found = list_runs(fleet)
    json.dumps(runs_values(found, [HOST]))
    return "\n".join([HOST, *runs_lines(found.runs), *map(str, found.problems)])


def _prune(fleet: Fleet, folder: Path) -> str:
    found = prune_hosts(fleet, remove=False)
    json.dumps(prune_values(found, remove=False))
    return "\n".join([*prune_lines(found, remove=False), *map(str, found.problems)])


def _check(fleet: Fleet, folder: Path) -> str:
    plan = make_plan(fleet.spec, JobCode(None, ""), "r-1", "py")
    heard, problems = interview(fleet, requests(plan, ("a", "b"), 9.0), 9.0)
    verdict = judge(Evidence(heard, plan, problems, CODE))
    json.dumps(as_values(verdict))
    return "\n".join(lines(verdict))


def _diagnose(fleet: Fleet, folder: Path) -> str:
    hosts = gather(fleet, 9.0)
    found = Diagnosis("r", hosts, time_line_of(hosts, fleet.spec))
    json.dumps(summary.as_values(found, "a.tar.gz", 1))
    return "\n".join([summary.text(found, "now"), *summary.spoken(found, "a.tar.gz", 1)])


def _setup(fleet: Fleet, folder: Path) -> str:
    order = order_for(folder, HOST)
    with HostProgress([HOST], io.StringIO()) as progress:
        outcome = builder.set_up(fleet, order, progress)
    json.dumps(builder.as_values(order, outcome))
    return "\n".join([*builder.in_lines(outcome), *map(str, outcome.problems)])


def _board(fleet: Fleet, folder: Path) -> str:
    with Board(fleet) as shown:
        return f"{HOST} {shown.run}"


def _metrics(fleet: Fleet, folder: Path) -> str:
    found = LeadConnection(fleet).ask()
    list(families("r", HOST, found.problem is None, found.status))
    return found.problem or HOST


def _restart(fleet: Fleet, folder: Path) -> str:
    fleet.ask_lead("restart", RestartRequest(fleet.reference(fleet.lead), ("worker:0",)))
    now = newest_status(fleet, "r.yaml")
    return "\n".join(
        [
            HOST,
            *refusals(now, ["worker:0"], "r.yaml"),
            *restarted(replace(STATUS, state="running"), now, ["worker:0"]).problems,
        ]
    )


def _steps(fleet: Fleet, folder: Path) -> str:
    steps, problems = newest_steps(fleet, [each for each in fleet.spec.tasks if each.host == HOST], STATUS)
    assert "</html>" in document(page_facts(STATUS), steps=steps)
    return "\n".join([HOST, *map(str, problems)])


def _number(fleet: Fleet, folder: Path) -> str:
    draft.with_generation(fleet, {HOST: run_request(run="r-1", host=HOST)})
    return HOST


def _resume(fleet: Fleet, folder: Path) -> str:
    plan = make_plan(fleet.spec, JobCode(None, ""), "r-1", "py")
    notes = [HOST]
    resume.bring_newest(fleet, plan, {host: run_request(host=host) for host in plan.hosts}, notes.append)
    return "\n".join(notes)


def _export(fleet: Fleet, folder: Path) -> str:
    notes = [HOST]
    found = fetch(
        fleet, ExportRequest(run_request(host=HOST)), Path(tempfile.mkdtemp(dir=str(folder))) / "served", notes.append
    )
    return "\n".join([*notes, *in_lines_of_export({"run": "r-1", "folder": "f", **found, **found["done"]})])


def _start(fleet: Fleet, folder: Path) -> str:
    return "\n".join([HOST, *start_agents(fleet, {HOST: run_request(run="r-1", host=HOST, workdir="/w")})])


class Verb(NamedTuple):
    """A verb, and what the host says to it, one list of lines for each of its conversations."""

    act: Callable[[Fleet, Path], str]
    conversations: Sequence[Lines]
    others: Sequence[Lines] = ()  # of a second host, on which nothing goes wrong


STREAM: Lines = [{"run": {key: value for key, value in RUN.items() if key != "tasks"}, "tasks": {"worker:0": TASK}}]
HELD = {"run": "r-1", "generation": 1, "step": 3, "bytes": 1, "folder": "/w"}
TENSOR = {"dtype": "float32", "shape": [None, 2]}
EXPORTED: Dict[str, Any] = {
    "done": {"inputs": {"x": TENSOR}, "outputs": {"y": TENSOR}, "tables": {"t": 1}, "version": "3-1f3a9c0d"},
    "checkpoint": "model-3",
}
VERBS = {
    "status": Verb(_status, [[{"status": RUN, **KNOWN}]]),
    "status --watch": Verb(_look_on, [[*STREAM, {"ping": True}, {"end": "failed"}]]),
    "up": Verb(_attend, [[*STREAM, {"beat": True}, {"end": "failed"}]]),
    "logs": Verb(_logs, [[{"time": 1.0, "task": "worker:0", "attempt": 0, "line": "hello"}]]),
    "logs of a failed run": Verb(_first_cause, [[{"status": {**RUN, "state": "failed"}, **KNOWN}]]),
    "report": Verb(_steps, [[{"run": "r-1", "time": 9.0, "flights": [FLIGHT]}]]),
    "down": Verb(_down, [[KNOWN], [LEFT], [LEFT]]),
    "sweep": Verb(_sweep, [[{"running": [{"run": "r-1", "pid": 1}], "found": [FOUND], "left": [FOUND]}]]),
    "runs": Verb(_runs, [[{"runs": [REMEMBERED]}]]),
    "prune": Verb(_prune, [[PRUNED]]),
    "check": Verb(_check, [[{"ports": {"2222": {"why": "taken", "pid": 1, "run": None}}}, *TIMES, LOOKED]]),
    "diagnose": Verb(_diagnose, [[TIMES[0], *TIMES, *PIECES]]),
    "setup": Verb(_setup, [[{"want": []}, {"stage": "x"}, {"done": "built"}]]),
    "board": Verb(_board, [[{"run": "r-1", "port": 1}]]),
    "metrics": Verb(_metrics, [[{"status": RUN, **KNOWN}]]),
    "restart": Verb(_restart, [[{"asked": True}], [{"status": RUN, **KNOWN}]]),
    "generation": Verb(_number, [[KNOWN]]),
    "resume": Verb(
        _resume,
        [[{"held": []}], [{"listening": True}, {"bytes": 1}, {"taken": 3}]],
        [[{"held": [HELD]}], [{"given": 3}]],
    ),
    "resume from the chief's host": Verb(_resume, [[{"held": [HELD]}]]),
    "export": Verb(_export, [[{"stage": "x"}, {"file": "a/b", "bytes": 2}, {"data": "aGk="}, EXPORTED]]),
    "start": Verb(_start, [[{"ready": True, "pid": 1, "ended": ["x"]}]]),
}
