"""``--set KEY=VALUE`` puts values into the document before it is checked, and its mistakes are told as its own."""

from pathlib import Path
from typing import Any, Callable, List, Tuple

import pytest

from cluster.spec import Spec, SpecError, load

FILE = """\
job: digits
cluster:
  ps: [a]
  worker: [b, {host: c, gpus: 1}]
train: {steps: 5}
restart:
"""
Read = Callable[..., Spec]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Reads ``FILE`` with overrides."""
    monkeypatch.chdir(tmp_path)
    Path("hosts.yaml").write_text(FILE)
    return lambda *overrides: load("hosts.yaml", overrides)


def test_an_override_replaces_a_value_or_adds_one(read: Read) -> None:
    spec = read("train.steps=100", "train.checkpoint.keep=2", "restart.max=0", "args.hidden=64", "env.worker.A=1.10")
    assert (spec.train.steps, spec.train.checkpoint.keep, spec.restart.max) == (100, 2, 0)
    assert (spec.args, spec.tasks_of("worker")[0].env) == ({"hidden": 64}, {"A": "1.10"})


VALUES: List[Tuple[str, Any]] = [
    ("1e-3", 0.001),
    ("[1, x]", [1, "x"]),
    ("{a: {b: null}}", {"a": {"b": None}}),
    ("'5'", "5"),
    ("", None),
    ("a=b", "a=b"),
    ("true", True),
]


@pytest.mark.parametrize(("written", "value"), VALUES)
def test_the_value_is_yaml(read: Read, written: str, value: Any) -> None:
    assert read(f"args.x={written}").args == {"x": value}


def test_the_last_of_two_overrides_of_one_key_wins(read: Read) -> None:
    assert read("train.steps=1", "train.steps=2").train.steps == 2


def test_an_item_of_a_list_is_named_by_its_index(read: Read) -> None:
    spec = read("cluster.worker[1].port=2400", "cluster.worker[0]=d", "cluster.ps=['e[1-2]']")
    assert [task.address for task in spec.tasks] == ["e1:2222", "e2:2222", "d:2222", "c:2400"]
    assert [task.line for task in spec.tasks] == [None, None, None, 4]


def test_a_null_takes_a_key_away(read: Read) -> None:
    spec = read("job=", "command=[x]", "train=")
    assert (spec.job, spec.command) == (None, ("x",))


def test_an_override_of_an_aliased_value_leaves_its_other_places_alone(read: Read) -> None:
    Path("hosts.yaml").write_text("job: d\ncluster: {ps: [&box {host: a}], worker: [*box]}")
    assert [task.address for task in read("cluster.worker[0].port=9").tasks] == ["a:2222", "a:9"]


SHAPE = "KEY=VALUE such as train.steps=100"
BAD: List[Tuple[str, str]] = [
    ("train.stesp=1", "train.stesp: expected a key of train, found the unknown key 'stesp' — did you mean 'steps'?"),
    ("trian.steps=1", "trian.steps: trian: expected a key of a hosts file, found the unknown key 'trian' — "
                      "did you mean 'train'?"),
    ("train.steps=abc", "train.steps: expected a whole number of at least 1, found 'abc'"),
    ("train.steps=", "train.steps: expected a whole number of at least 1, found null"),
    ("train.checkpoint={keep: 0}",
     "train.checkpoint: train.checkpoint.keep: expected a whole number of at least 1, found 0"),
    ("train.steps=[1", "train.steps: expected ',' or ']', found the end of the file — close the bracket"),
    ("train.steps=# 1", "train.steps: expected a value, found '# 1'"),
    ("args={a: 1, a: 2}", "args: expected each key once, found a second 'a'; the first is on line 1"),
    ("train.steps.x=1", "train.steps.x: train.steps: expected a mapping, found 5"),
    ("cluster.worker.x=1", "cluster.worker.x: cluster.worker: expected a mapping, found a list"),
    ("cluster.worker[2]=d", "cluster.worker[2]: expected an index below 2, found 2"),
    ("cluster.worker[0].port=1", "cluster.worker[0].port: cluster.worker[0]: expected a mapping, found 'b'"),
    ("cluster.chief[0]=d", "cluster.chief[0]: cluster.chief: expected a list, found nothing"),
    ("train[0]=d", "train[0]: train: expected a list, found a mapping"),
    ("train", f"train: expected {SHAPE}, found 'train'"),
    ("=1", f": expected {SHAPE}, found '=1'"),
    ("train..steps=1", f"train..steps: expected {SHAPE}, found 'train..steps=1'"),
    ("cluster.worker[x]=1", f"cluster.worker[x]: expected {SHAPE}, found 'cluster.worker[x]=1'"),
    ("cluster.worker=['a:9', 'a:9']",
     "cluster.worker: cluster.worker[1]: expected an address that no other task has, found a:9 for worker:1, "
     "which --set cluster.worker gives to worker:0 — leave the port out, or give another one"),
    ("cluster.worker[1].gpus=[0, 0]", "cluster.worker[1].gpus: expected each GPU once, found GPU 0 twice"),
]  # fmt: skip


@pytest.mark.parametrize(("override", "expected"), BAD, ids=[override for override, _ in BAD])
def test_a_mistake_in_an_override_names_the_override(read: Read, override: str, expected: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(override)
    assert str(caught.value) == f"--set {expected}"
    assert [(problem.line, problem.column) for problem in caught.value.problems] == [(None, None)]


def test_mistakes_of_the_file_and_of_all_overrides_are_listed_together(read: Read) -> None:
    Path("hosts.yaml").write_text(FILE + "nmae: x")
    with pytest.raises(SpecError) as caught:
        read("train.steps=0", "train", "train.mode=x")
    places = [problem.where for problem in caught.value.problems]
    assert places == ["hosts.yaml", "--set train", "--set train.mode", "--set train.steps"]
