"""A resumed run goes on from the newest checkpoint, whichever host of the file holds it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, List, Optional, Tuple

import pytest

from cluster.protocol.typed_json import to_values
from cluster.spec.model import Spec
from cluster.task import Checkpoint, Train
from launch.agent.checkpoints import resume as on_host
from launch.agent.state.run_folder import RunFolder
from launch.agent.state.runs import note_generation
from launch.agent.wire.run_request import Wanted
from launch.errors import CannotStart, UsageError
from launch.run.resume import Held, bring_newest, chosen_in_words, differences, newest, passed_over, refuse_resume
from launch.status.run import RunRecord
from tests.launch.end_to_end.test_two_hosts_here import RUN, Cluster
from tests.support.agent.saved import save, steps
from tests.support.launch.statuses import history, status

EARLIER, OLDEST = "r-20261119-120000", "r-20991231-235959"  # the oldest was named by a clock that was ahead
ORDER = {OLDEST: 1, EARLIER: 2}


def held(*each: Tuple[str, str, int]) -> List[Held]:
    return [Held(host, run or None, step, 1, ORDER.get(run, 0), "/f") for host, run, step in each]


def test_the_newest_step_of_the_newest_run_is_gone_on_from() -> None:
    found = newest(held(("h1", EARLIER, 10), ("h2", EARLIER, 20), ("h3", OLDEST, 99)), "h1")
    assert found == Held("h2", EARLIER, 20, 1, 2, "/f")


def test_of_two_hosts_with_the_same_step_the_chiefs_own_has_it() -> None:
    assert newest(held(("h2", EARLIER, 20), ("h1", EARLIER, 20)), "h1") == Held("h1", EARLIER, 20, 1, 2, "/f")


def test_a_named_folder_is_gone_on_from_where_a_copy_is_not_newer() -> None:
    assert newest(held(("h1", EARLIER, 20), ("h1", "", 20)), "h1") == Held("h1", None, 20, 1, 0, "/f")
    assert newest(held(("h1", "", 10), ("h2", EARLIER, 20)), "h1") == Held("h2", EARLIER, 20, 1, 2, "/f")


def test_where_no_host_holds_any_there_is_none() -> None:
    assert newest([], "h1") is None


def test_what_is_gone_on_from_is_told_and_what_is_further_and_is_not() -> None:
    of = held(("h2", EARLIER, 50), ("h1", OLDEST, 100), ("h1", EARLIER, 40))
    chosen = newest(of, "h1")
    assert chosen is not None
    assert chosen_in_words(chosen, passed_over(of, chosen), "h1", "{}:{}".format) == [
        f"continuing from the checkpoint of step 50 of {EARLIER} on h2: 0.0 MiB to h1",
        f"ignoring the checkpoint of step 100 of {OLDEST}, an older run: h1:/f",
    ]


def folder(cluster: Cluster, host: str, run: str = EARLIER) -> RunFolder:
    """A run's folder on one of the two hosts."""
    return RunFolder(Path(cluster.spec.workdir), run, host)


def brought(cluster: Cluster, source: Optional[str] = None) -> List[str]:
    """What is said while the newest checkpoint is found and brought."""
    said: List[str] = []
    with cluster.fleet:
        cluster.fleet.connect()
        cluster.requests = bring_newest(cluster.fleet, cluster.plan, cluster.requests, said.append, source=source)
    return said


def from_there(cluster: Cluster) -> Optional[Wanted]:
    """What the lead is told to go on from."""
    return cluster.requests["localhost"].resume_from


def test_a_checkpoint_that_only_another_host_holds_is_brought_to_the_chiefs(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, ["true"])
    save(folder(cluster, "127.0.0.1").replica, 10, 20)
    assert brought(cluster) == [
        f"continuing from the checkpoint of step 20 of {EARLIER} on 127.0.0.1: 0.0 MiB to localhost"
    ]
    assert steps(folder(cluster, "localhost").replica) == [20]
    assert from_there(cluster) == Wanted(EARLIER, 20)
    new = folder(cluster, "localhost", RUN)
    on_host.prepare(new, "r", None, resume=True, wanted=Wanted(EARLIER, 20))
    assert steps(new.checkpoint) == [20]


def test_the_curve_comes_from_the_host_that_led_the_run(tmp_path: Path) -> None:
    """Also where another host has a newer checkpoint, as a copy."""
    cluster, curve = Cluster(tmp_path, ["true"]), history([(5, 1.0), (10, 0.5)])
    chief = folder(cluster, "127.0.0.1")
    chief.create()
    save(chief.checkpoint, 20)
    save(folder(cluster, "localhost").replica, 20)
    chief.write("status.json", to_values(status(history=curve)))
    brought(cluster)
    assert from_there(cluster) == Wanted(EARLIER, 20)
    assert cluster.requests["localhost"].history == curve


def with_settings(run: RunFolder, **train: Any) -> None:
    """Write the plan of a run that was started with another rate."""
    argv = ["python", "-m", "jobs.main", "job.py", "--train", json.dumps(train), "--args", '{"rate": 0.02}']
    run.write("plan.json", {"name": "r", "tasks": [{"name": "worker:0", "chief": True, "argv": argv}]})


def test_settings_that_differ_from_those_of_the_run_are_told(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, ["true"])
    cluster.plan = replace(cluster.plan, spec=replace(cluster.spec, args={"rate": 0.0005}))
    chief = folder(cluster, "localhost")
    chief.create()
    with_settings(chief, **{**Train().to_dict(), "steps": 20})
    save(chief.checkpoint, 20)
    assert brought(cluster)[1:] == [f"differs from {EARLIER}: args.rate 0.02 → 0.0005, train.steps 20 → 1000"]


def test_in_a_named_folder_the_settings_are_compared_with_the_newest_run_that_saved_there(tmp_path: Path) -> None:
    cluster, directory = Cluster(tmp_path, ["true"]), str(tmp_path / "c")
    spec = replace(cluster.spec, args={"rate": 0.1}, train=Train(checkpoint=Checkpoint(dir=directory)))
    cluster.plan = replace(cluster.plan, spec=spec)
    chief = folder(cluster, "localhost")
    chief.create()
    with_settings(chief)
    chief.write("plan.json", {**json.loads((chief.own / "plan.json").read_text()), "checkpoint_dir": directory})
    save(tmp_path / "c", 20)
    assert brought(cluster)[1:] == [f"differs from {EARLIER}: args.rate 0.02 → 0.1"]


def test_the_line_about_settings_is_bounded_and_absent_where_nothing_differs() -> None:
    before = RunRecord(EARLIER, "r", args={f"a{n}": n for n in range(9)}, train={"of_another_version": 1})
    spec = Spec(Path("r.yaml"), "r", (), args={**before.args, "a0": ["x"] * 99, "nested": None})
    (line,) = differences(before, spec)
    assert line.startswith(f'differs from {EARLIER}: args.a0 0 → ["x", ') and len(line) < 100
    (line,) = differences(before, replace(spec, args={}))
    assert line.endswith("args.a7 7 → -, and 1 more")
    assert differences(before, replace(spec, args=before.args)) == differences(None, spec) == []


def test_a_checkpoint_that_is_on_the_chiefs_host_stays_where_it_is(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, ["true"])
    chief = folder(cluster, "localhost")
    chief.create()
    save(chief.checkpoint, 30)
    save(folder(cluster, "127.0.0.1").replica, 20)
    assert brought(cluster) == [f"continuing from the checkpoint of step 30 of {EARLIER}"]
    assert from_there(cluster) == Wanted(EARLIER, 30)


def test_what_keeps_a_checkpoint_from_being_brought_is_told(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, ["true"])
    save(folder(cluster, "127.0.0.1").replica, 20)
    folder(cluster, "localhost").own.mkdir(parents=True)
    folder(cluster, "localhost").replica.touch()  # where a folder is to be
    with pytest.raises(CannotStart, match=r"the checkpoint was not copied: .*checkpoint"):
        brought(cluster)
    assert from_there(cluster) is None


def test_the_run_that_is_named_is_gone_on_from_though_another_is_newer(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, ["true"])
    for run, step in ((OLDEST, 30), (EARLIER, 20)):
        chief = folder(cluster, "localhost", run)
        chief.create()
        note_generation(chief, ORDER[run])
        save(chief.checkpoint, step)
    assert brought(cluster, source=OLDEST) == [f"continuing from the checkpoint of step 30 of {OLDEST}"]
    assert from_there(cluster) == Wanted(OLDEST, 30)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (OLDEST, f"left a checkpoint on .*, found '{OLDEST}', which left none"),
        ("r-2", f"found 'r-2'; the nearest names: .*{EARLIER}"),
    ],
)
def test_a_named_run_without_a_checkpoint_is_refused_and_no_other_is_taken(
    source: str, message: str, tmp_path: Path
) -> None:
    cluster = Cluster(tmp_path, ["true"])
    for run in (OLDEST, EARLIER):
        folder(cluster, "localhost", run).create()
    save(folder(cluster, "localhost").checkpoint, 20)
    with pytest.raises(UsageError, match=message):
        brought(cluster, source)
    assert from_there(cluster) is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (Spec(Path("r.yaml"), "other", ()), "expected a run of other to resume from, found 'r-20261119-120000'"),
        (Spec(Path("r.yaml"), "r", (), train=Train(checkpoint=Checkpoint(dir="/c"))), "found train.checkpoint.dir /c"),
    ],
)
def test_a_named_run_is_refused_where_it_cannot_be_meant(spec: Spec, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        refuse_resume(spec, EARLIER)


def test_without_any_the_lead_is_told_nothing(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, ["true"])
    assert brought(cluster) == [] and from_there(cluster) is None
