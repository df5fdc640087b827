"""What a hosts file of 10,000 tasks costs the launcher and the lead, stage by stage: make bench-scale

Nothing is reached and nothing is started: hosts are fakes that answer at once. So this is what
the project itself takes, in processor time, and the most memory up to the end of each stage.
"""

import json
import os
import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, List, Mapping, Union

from cluster.protocol.typed_json import from_values, to_values
from cluster.spec import Spec, load
from launch.agent.protocol.messages import Advanced, Exited, Go, Joined, Started
from launch.agent.supervision.supervisor import Supervisor
from launch.agent.wire.run_request import RunPlan, RunRequest
from launch.check.findings import Evidence
from launch.check.interview import CLOCK_READINGS, interview
from launch.check.interview import requests as check_requests
from launch.check.report import as_values, judge, lines
from launch.errors import HostProblem
from launch.fleet import Fleet
from launch.hosts.bundle import Bundle, Code, JobCode
from launch.logs.task_logs import select
from launch.plan.agent_requests import requests
from launch.plan.outlook import Outlook, shown_tasks, write_json
from launch.plan.plan import Plan, make_plan
from launch.plan.text_view import overview
from launch.signals import Interrupts
from launch.status.run import RunStatus
from launch.view.console import fold
from launch.view.live_view import Picture
from tests.support.launch.facts import facts, versions
from tests.support.launch.fakes import FakeChannel, FakeHost

TASKS = 10_000
WORKERS_PER_PS = 99
STEPS = 5  # times that every task tells of its progress
DEADLINE_S = 600.0
MOST_LINES = 10  # in which ``check`` tells of all hosts
FOUND = {"tensorflow-differs", "unreachable"}
RUN = "r-20261120-155902"
CODE = Code({"launcher": Bundle(b"", "1" * 16), "job": Bundle(b"", "2" * 16)})
Stage = Callable[[str, Callable[[], Any]], Any]


def measured(name: str, run: Callable[[], Any]) -> Any:
    """Runs a stage and prints what it took."""
    began = time.process_time()
    result = run()
    seconds = time.process_time() - began
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(f"{name:48} {seconds:7.2f} s {peak_mb:7.0f} MB", flush=True)
    return result


def number_of_ps(tasks: int) -> int:
    """Of so many tasks."""
    return max(1, tasks // (WORKERS_PER_PS + 1))


def ranges(tasks: int) -> str:
    """A hosts file in two lines."""
    ps = number_of_ps(tasks)
    return f'command: [a]\ncluster: {{ps: ["cpu[00001-{ps:05}]"], worker: ["gpu[00001-{tasks - ps:05}]"]}}\n'


def single_items(tasks: int) -> str:
    """The same cluster with an item of its own for every task."""
    number = number_of_ps(tasks)
    ps = "".join(f"    - {{host: cpu{index:05}, gpus: none}}\n" for index in range(1, number + 1))
    workers = "".join(f"    - {{host: gpu{index:05}, gpus: [0, 1]}}\n" for index in range(1, tasks - number + 1))
    return f"command: [a]\ncluster:\n  ps:\n{ps}  worker:\n{workers}"


def read(text: str) -> Spec:
    """The spec of a text."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "r.yaml").write_text(text)
        return load(Path(folder) / "r.yaml")


def ask_all(plan: Plan, asked: Mapping[str, RunRequest]) -> None:
    """Connects to every host and has each answer its request; one in ten refuses."""
    fleet = Fleet(plan.spec, {}, CODE, Interrupts())
    for index, host in enumerate(plan.hosts):
        answer = b'{"error": "no such program"}\n' if index % 10 == 0 else b'{"ready": true}\n'
        fleet.hosts[host] = FakeHost(host, FakeChannel(b'{"missing": []}\n', answer))
    with fleet:
        fleet.connect()
        answers, problems = fleet.ask("start", {host: to_values(each) for host, each in asked.items()}, timeout_s=60.0)
    if len(answers) + len(problems) != len(asked) or len(problems) != len(asked) // 10:
        raise RuntimeError(f"{len(answers)} answers and {len(problems)} problems")
    folded(problems)


def _line(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"


def _clock() -> bytes:
    """The answer to a question for the time, as of that question: on a busy machine hosts are asked one by one."""
    return _line({"time": time.time()})


def check_all(plan: Plan) -> None:
    """``launch check`` on hosts that answer at once: one in ten has another TensorFlow, one in a hundred is mute."""
    fleet = Fleet(plan.spec, {}, CODE, Interrupts())
    for index, host in enumerate(plan.hosts):
        look = facts(versions=versions(tensorflow="1.15.5" if index % 10 == 0 else "1.15.0"))
        ports = {"ports": dict.fromkeys(("2222", "2223"))}
        said: List[Union[bytes, Callable[[], bytes]]] = [
            _line({"missing": []}),
            _line(ports),
            *[_clock] * CLOCK_READINGS,
            _line({**look, **ports}),
        ]
        fleet.hosts[host] = FakeHost(host, FakeChannel(*(said if index % 100 else said[:1])))
    with fleet:
        found, problems = interview(fleet, check_requests(plan, ("a", "b"), DEADLINE_S), DEADLINE_S)
    verdict = judge(Evidence(found, plan, problems, CODE.hashes))
    if len(lines(verdict)) > MOST_LINES or {finding.kind for finding in verdict.findings} != FOUND:
        raise RuntimeError("\n".join(lines(verdict))[:1000])
    json.dumps(as_values(verdict))


def folded(problems: List[HostProblem]) -> str:
    """One line for hosts with the same problem."""
    return f"{fold(problem.host for problem in problems)}: {problems[0].reason}"


def supervise(run_plan: RunPlan) -> Supervisor:
    """A whole run: every host joins, every task starts, tells of its progress, and leaves."""
    run = Supervisor(run_plan)
    for host in run.plan.hosts:
        run.handle(Joined(host), 0.0)
    run.handle(Go(), 0.0)
    for name in run.tasks:
        run.handle(Started(name, 0, 42, [], f"/w/{name}.log"), 0.1)
    for step in range(STEPS):
        for name in run.tasks:
            run.handle(Advanced(name, 0, {"step": step, "examples": 64 * step, "step_time_ms": 3.0}), 1.0 + step)
    return run


def end(run: Supervisor) -> None:
    """Every task leaves by itself."""
    for name in run.tasks:
        run.handle(Exited(name, 0, 0), 60.0)
    if run.state.label != "succeeded":
        raise RuntimeError(run.state.label)


def json_bytes(plan: Plan) -> int:
    """``plan --json``; the bytes of it."""
    size = 0
    with open(os.devnull, "w") as nothing:

        def put(text: str) -> None:
            nonlocal size
            size += nothing.write(text)

        write_json(
            Outlook(plan.spec.name, plan.lead, plan.control), shown_tasks(plan, {task.name for task in plan.tasks}), put
        )
    return size


def show_plan(plan: Plan) -> None:
    """As ``launch plan`` does, of a program of others."""
    overview(plan, Outlook(plan.spec.name, plan.lead, plan.control), "r.yaml")


def main(tasks: int = TASKS, stage: Stage = measured) -> None:
    """Prints the table."""
    print(f"{tasks:,} tasks on as many hosts, Python {sys.version.split()[0]}\n")
    spec = stage("read the file, two ranges", lambda: read(ranges(tasks)))
    job = replace(spec, job="digits", command=None)
    plan = stage("plan", lambda: make_plan(job, JobCode(Path("/jobs"), "digits.py"), RUN, sys.executable))
    stage("choose all tasks by a pattern", lambda: select(job.tasks, ["*"]))
    stage("show the plan, folded", lambda: show_plan(plan))
    stage("check every host, show what is found, folded", lambda: check_all(plan))
    print(f"{'planned, checked and shown, with imports':48} {time.process_time():7.2f} s\n")
    asked = stage("what every host is asked for a start", lambda: requests(plan, CODE, "token", {}, resume=False))
    stage("ask every host, fold problems", lambda: ask_all(plan, asked))
    planned = asked[plan.lead].run_plan or RunPlan(RUN, "r", [], [])
    of_programs = replace(planned, judge="exit")
    run = stage(f"supervise: start, and {STEPS} times progress of each", lambda: supervise(of_programs))
    published = stage(
        "publish the status", lambda: from_values(RunStatus, json.loads(json.dumps(to_values(run.status()))))
    )
    stage("show the status, folded", lambda: Picture(published))
    stage("supervise: the end", lambda: end(run))
    stage("read a file with an item for every task", lambda: read(single_items(tasks)))
    size = stage("plan --json, every task with its TF_CONFIG", lambda: json_bytes(plan))
    print(f"{'':48} {size / 1e9:7.2f} GB")


if __name__ == "__main__":
    main()
