"""``launch export``: with which arguments it builds the model."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Tuple

import pytest

from launch.status.run import KnownRun, RunRecord, RunsAnswer
from launch.target import Target
from launch.verbs.export import request_of
from tests.support.launch.statuses import status

OF_FILE = {"hidden": 8, "act": "relu"}
OF_RUN = {"hidden": 32, "é": {"a": [1.5e-05, None]}}


class Scene:
    """A hosts file, and a run whose record has arguments."""

    def __init__(self, folder: Path):
        self.file = folder / "hosts.yaml"
        values = {"name": "r", "job": "digits", "cluster": {"ps": ["a"], "worker": ["b"]}, "args": OF_FILE}
        self.file.write_text(json.dumps(values))
        self.record = RunRecord("r-1", "r", args=OF_RUN, train={"steps": 1})
        self.notes: List[str] = []

    def args(self, checkpoint: Optional[str] = None, overrides: Tuple[str, ...] = ()) -> Dict[str, Any]:
        """Return the arguments with which the host is to build the model."""
        target = Target(str(self.file), overrides=overrides)
        other = RunRecord("r-0", "r", args={"hidden": 1}, train={"steps": 1})
        answer = RunsAnswer([KnownRun(number, False, each) for number, each in enumerate([other, self.record])])
        fleet: Any = SimpleNamespace(spec=target.of_file(), lead="b", ask_for=lambda *_: ({"b": answer}, []))
        (chief,) = request_of(target, fleet, status(), checkpoint, self.notes.append).run.tasks
        found: Dict[str, Any] = json.loads(chief.argv[chief.argv.index("--args") + 1])
        return found


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize("checkpoint", [None, "7", "~/.launch/runs/r-1/checkpoint/model-7"])
def test_a_run_is_exported_with_its_own_arguments(scene: Scene, checkpoint: Optional[str]) -> None:
    assert scene.args(checkpoint) == OF_RUN
    assert scene.notes == [
        "with the arguments of the run: hidden=32 (the file has 8), "
        'é={"a": [1.5e-05, null]} (the file has none), act=none (the file has relu)'
    ]


@pytest.mark.parametrize("checkpoint", ["/of/another/model-7", "~/.launch/runs/r-0/checkpoint/model-7"])
def test_any_other_checkpoint_is_exported_with_the_files_arguments(scene: Scene, checkpoint: str) -> None:
    assert scene.args(checkpoint) == OF_FILE and scene.notes == []


def test_an_override_of_this_command_changes_the_runs_arguments(scene: Scene) -> None:
    assert scene.args(overrides=("args.act=tanh", "args.hidden=16")) == {**OF_RUN, "act": "tanh", "hidden": 16}
    assert len(scene.notes) == 1 and "hidden" not in scene.notes[0] and "act" not in scene.notes[0]


def test_a_record_of_an_older_launcher_leaves_the_files_arguments(scene: Scene) -> None:
    scene.record = RunRecord("r-1", "r")
    assert scene.args() == OF_FILE and scene.notes == []


def test_a_run_without_arguments_has_none_whatever_the_file_has_now(scene: Scene) -> None:
    scene.record = RunRecord("r-1", "r", train={"steps": 1})
    assert scene.args() == {}
    assert scene.notes == ["with the arguments of the run: hidden=none (the file has 8), act=none (the file has relu)"]
