"""An argument that no function has read is named with the near name; whoever takes all of them has read each."""

import copy
import json
import pickle
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from cluster.job import Job
from cluster.optimizers import from_args
from cluster.runtime.tf_compat import tf
from cluster.training.job_warnings import ReadArgs, UnreadArgs
from tests.support.training.alone import train_alone
from tests.support.training.jobs import table

GIVEN = {"width": 3, "rate": 0.1, "deep": {"a": 1}}


def keywords(**given: Any) -> Dict[str, Any]:
    return given


ALL_AT_ONCE: Dict[str, Callable[[Any], Any]] = {
    "dict": dict,
    "braces": lambda args: {**args},
    "keywords": lambda args: keywords(**args),
    "copy": lambda args: args.copy(),
    "copied": copy.copy,
    "deep": copy.deepcopy,
    "pickled": lambda args: pickle.loads(pickle.dumps(args)),
    "json": lambda args: json.loads(json.dumps(args)),
    "loop": lambda args: {name: GIVEN[name] for name in args},
    "items": lambda args: dict(args.items()),
    "zip": lambda args: dict(zip(args.keys(), args.values())),
}


@pytest.mark.parametrize("way", ALL_AT_ONCE)
def test_who_takes_the_whole_mapping_gets_it_and_has_read_every_key(way: str) -> None:
    args = ReadArgs(GIVEN)
    assert ALL_AT_ONCE[way](args) == GIVEN and args == GIVEN and isinstance(args, dict)
    assert args.unread() == []


@pytest.mark.parametrize(
    "read",
    [
        lambda args: args["width"],
        lambda args: args.get("width"),
        lambda args: args.get("width", default=2),
        lambda args: "width" in args,
        lambda args: args.pop("width"),
        lambda args: args.setdefault("width", 4),
        lambda args: args.setdefault("width", default=4),
    ],
)
def test_who_asks_for_one_key_has_read_that_one(read: Callable[[Any], Any]) -> None:
    args = ReadArgs(GIVEN)
    assert read(args) in (3, True)
    assert args.unread() == ["rate", "deep"]


def test_a_key_that_is_not_there_has_its_default_or_is_an_error() -> None:
    args = ReadArgs({})
    assert (args.get("x"), args.get("x", 1), args.pop("x", 2), args.setdefault("x", 3)) == (None, 1, 2, 3)
    with pytest.raises(KeyError):
        args["y"]
    assert args.unread() == []


def warnings(folder: Path, args: Dict[str, Any], text: str = "") -> List[str]:
    """What is to be said about ``args`` when ``from_args`` has read its own."""
    (folder / "job.py").write_text(text)
    read = ReadArgs(args)
    with tf.Graph().as_default():
        from_args(read)
    return UnreadArgs(read, Job(str(folder / "job.py"), print, print, print)).warnings()


def test_a_misspelt_key_is_named_with_the_near_one_that_was_looked_for(tmp_path: Path) -> None:
    head = "expected a key that the job reads, found one that no function has read"
    assert warnings(tmp_path, {"learnig_rate": 0.1, "optimizer": "sgd"}) == [
        f"args.learnig_rate: {head}; did you mean args.learning_rate?"
    ]
    assert warnings(tmp_path, {"xyz": 0.1}) == [f"args.xyz: {head}; correct the name, or remove the key"]


def test_a_key_that_the_file_names_may_be_read_later(tmp_path: Path) -> None:
    text = "def predict(x, args):\n    return {'big': x > args['least']}\n"
    assert warnings(tmp_path, {"least": 0.5}, text) == []
    assert len(warnings(tmp_path, {"lest": 0.5}, text)) == 1


def test_the_worker_prints_the_warning_once_and_its_progress_has_it_and_none_about_the_seed(
    tmp_path: Path, capsys: Any
) -> None:
    outcome = train_alone(table, tmp_path, {"examples": 320, "optimiser": "adam", "seed": 1}, steps=5, towers=1)
    text = "args.optimiser: expected a key that the job reads, found one that no function has read; did you mean args."
    assert outcome.succeeded and capsys.readouterr().out.count(f"warning: {text}optimizer?\n") == 1
    progress = json.loads((tmp_path / "worker.0" / "progress.json").read_text())
    assert progress["warnings"] == [f"{text}optimizer?"]
