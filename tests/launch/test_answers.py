"""What ``--json`` prints is what the reference says, field by field: nothing more, nothing less."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Mapping, Set

import pytest

from cluster.protocol.typed_json import to_values
from launch.agent.protocol.messages import Exited, Lost
from launch.agent.supervision.quietness import REMAIN_S
from launch.check.report import as_values as verdict_values
from launch.check.report import judge
from launch.cli import verbs
from launch.curve.comparison import ComparedRun, RunsComparison
from launch.diagnosis.collect import HostReport
from launch.diagnosis.summary import as_values as diagnose_values
from launch.diagnosis.symptoms import Diagnosis
from launch.environments.builder import SetupOutcome
from launch.environments.builder import as_values as setup_values
from launch.errors import HostProblem, ProblemKind
from launch.grid.points import GridPoint, GridReport
from launch.history import Listing
from launch.history import as_values as runs_values
from launch.status.removals import NotRemoved, PruneAnswer, Removable, Spared
from launch.status.run import RunRecord
from launch.teardown import as_values
from launch.verbs.export import ExportAnswer
from launch.verbs.prune import Pruned
from launch.verbs.prune import as_values as prune_values
from launch.verbs.sweep import as_values as sweep_values
from tests.launch.agent.supervision.test_quietness import Program
from tests.launch.environments.test_builder import order_for
from tests.launch.hosts.good_conversations import EXPORTED
from tests.launch.teardown.test_down import SOMETHING, left_of
from tests.launch.teardown.test_sweep import swept as swept_of
from tests.reference import ANSWERS
from tests.support.agent.histories import Replay, failed, started
from tests.support.launch.facts import evidence, plan_of
from tests.support.launch.launcher import Launcher

Answer = Dict[str, Any]


def fields(value: Any, known: Mapping[str, str], path: str = "") -> Iterator[str]:
    """The fields of an answer; below one that is ``known`` they are looked at only where some of them are."""
    below = any(each.startswith((f"{path}.", f"{path}[")) for each in known) or not path
    if path in known:
        yield path
    if isinstance(value, dict) and (below or path not in known):
        for key, each in value.items():
            yield from fields(each, known, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and (below or path not in known):
        for each in value:
            yield from fields(each, known, f"{path}[]")
    elif path not in known and not (value is None and below):
        yield path


def of_plan(launch: Launcher, folder: Path) -> Iterator[Answer]:
    """Of a job, so that it has a placement, on two hosts, so that something travels, with a hook and a container."""
    keys: Dict[str, Any] = {"job": "polynomial", "cluster": {"ps": ["a"], "worker": ["b"]}, "on": {"failed": ["page"]}}
    keys["container"] = {"image": "tf"}
    launch.file.write_text(json.dumps(keys))
    yield json.loads(launch("plan", "--json").stdout)


def of_a_run(verb: str) -> Callable[[Launcher, Path], Iterator[Answer]]:
    """Of a run that is up."""

    def answers(launch: Launcher, folder: Path) -> Iterator[Answer]:
        launch.stay()
        assert launch("up", "-d").returncode == 0
        try:
            yield json.loads(launch(verb, "--json").stdout)
        finally:
            launch.end()

    return answers


def of_status(launch: Launcher, folder: Path) -> Iterator[Answer]:
    """Of a run that is up, an elastic one in which something went wrong, and a program that stands still."""
    yield from of_a_run("status")(launch, folder)
    replay = Replay(min_workers=1)
    replay.up()
    replay.at(1, failed("worker:1"))
    replay.at(2, started("worker:1", 1), failed("worker:1", 1))
    replay.at(3, Lost("b", 13.0))
    yield replay.status()
    program = Program()
    program.measure(100.0, "worker:0")
    program.at(103.0, Exited("worker:1", 0, 0))
    program.at(104.0 + REMAIN_S)
    yield program.status()


def of_down(launch: Launcher, folder: Path) -> Iterator[Answer]:
    """Of a run, and of hosts where something is left, with GPUs that this machine need not have."""
    yield from of_a_run("down")(launch, folder)
    nothing: Answer = {key: [] if isinstance(value, list) else value for key, value in SOMETHING.items()}
    problems = [HostProblem("c", ProblemKind.UNREACHABLE, "is off")]
    yield as_values(left_of({"a": nothing, "b": SOMETHING}, problems, {"a": SOMETHING}))


def of_runs(launch: Launcher, folder: Path) -> Iterator[Answer]:
    """Of a host that knows a run, and one that is off."""
    run = RunRecord("r-20261120-120000", "r", hosts=["a"])
    yield runs_values(Listing([run], [HostProblem("b", ProblemKind.UNREACHABLE, "is off")]), ["a", "b"])
    yield to_values(RunsComparison([ComparedRun("r-20261120-120000", "r")], {"rate": [0.1]}))


def of_grid(launch: Launcher, folder: Path) -> Iterator[Answer]:
    """Of a grid of one point that has not begun."""
    yield to_values(GridReport("loss", "min", None, [GridPoint("r.1", {"args.rate": 0.1})]))


def of_sweep(launch: Launcher, folder: Path) -> Iterator[Answer]:
    """Of a host where everything is left, one where it is gone, and one that is off."""
    run: Answer = {**SOMETHING, "folders": ["/w/code/.x"]}
    found: Answer = {"running": [{"run": "r-2", "pid": 42}], "found": [run]}
    swept = {"a": {**found, "left": [run]}, "b": {**found, "left": []}}
    yield sweep_values(swept_of(swept, [HostProblem("c", ProblemKind.UNREACHABLE, "is off")]))


def of_prune(launch: Launcher, folder: Path) -> Iterator[Answer]:
    """Of a host where something goes and something stays, and one that is off."""
    answer = PruneAnswer(
        3, 9, [Removable("run", "r-1", 9, "old")], [Spared("r-2", "old", "lives")], [NotRemoved("r-1", "no right")]
    )
    problems = [HostProblem("b", ProblemKind.UNREACHABLE, "is off")]
    yield prune_values(Pruned({"a": answer}, problems), remove=True)


def of_setup(launch: Launcher, folder: Path) -> Iterator[Answer]:
    """Of a host where it went well and one where it did not."""
    yield setup_values(
        order_for(folder, "a", "b"),
        SetupOutcome({"a": "built"}, [HostProblem("b", ProblemKind.UNREACHABLE, "is full")]),
    )


def of_check(launch: Launcher, folder: Path) -> Iterator[Answer]:
    """Of a host where a GPU is in use, and one that is off."""
    gpu = {"uuid": "GPU-1", "name": "V100", "booked": None, "processes": ["pid 7 (x), 9 MiB"]}
    plan = plan_of("ps:0@a", "worker:0@b")
    told = {"b": {"gpus": {"driver": "535.1", "gpus": [gpu]}}}
    yield verdict_values(judge(evidence(plan, told, [HostProblem("a", ProblemKind.UNREACHABLE, "is off")], ["a"])))


def of_diagnose(launch: Launcher, folder: Path) -> Iterator[Answer]:
    """Of a host that told all but one section, and one that is off."""
    found = [
        HostReport("a", {"agent.log": ""}, {"gpus": "not done within 9 s"}, run="r-1"),
        HostReport("b", problem="off"),
    ]
    yield diagnose_values(Diagnosis("r", found), "x.tar.gz", 9)


def of_export(launch: Launcher, folder: Path) -> Iterator[Answer]:
    """Of a model with one table."""
    yield asdict(ExportAnswer("r-1", EXPORTED["checkpoint"], str(folder), **EXPORTED["done"]))


SAMPLES: Dict[str, Callable[[Launcher, Path], Iterator[Answer]]] = {
    "plan": of_plan,
    "check": of_check,
    "status": of_status,
    "down": of_down,
    "runs": of_runs,
    "sweep": of_sweep,
    "prune": of_prune,
    "setup": of_setup,
    "diagnose": of_diagnose,
    "export": of_export,
    "grid": of_grid,
}
RUNNING = ("plan", "status", "down")  # what their samples come from starts processes


def test_every_verb_with_json_has_its_fields_told_and_no_other_has() -> None:
    speaking = {name for name, verb in verbs().items() if any("--json" in each.opts for each in verb.params)}
    assert set(ANSWERS) == speaking, "the reference has each verb that takes --json"
    assert set(SAMPLES) == speaking, "SAMPLES in this test has an answer of each"


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=pytest.mark.not_fast if verb in RUNNING else ()) for verb in SAMPLES]
)
def test_every_field_that_a_verb_prints_is_told_and_the_other_way_round(
    verb: str, launch: Launcher, tmp_path: Path
) -> None:
    printed: Set[str] = set()
    for answer in SAMPLES[verb](launch, tmp_path):
        printed.update(fields(answer, ANSWERS[verb]))
    assert sorted(printed - set(ANSWERS[verb])) == [], "printed, and not in the reference"
    assert sorted(set(ANSWERS[verb]) - printed) == [], "told of in the reference, and not printed"


def test_a_field_that_nobody_tells_of_is_found_and_a_mapping_of_the_user_s_own_is_one_field() -> None:
    answer = {"a": 1, "env": {"X": "1"}, "tasks": [{"role": "ps", "more": [{"b": None}]}], "none": None}
    known = dict.fromkeys(["a", "env", "tasks[].role", "none"], "")
    assert sorted(set(fields(answer, known)) - set(known)) == ["tasks[].more[].b"]
