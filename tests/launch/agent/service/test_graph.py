"""The chief's host builds the graph as the chief would, and reports nothing but a mistake in the job."""

import json
from pathlib import Path
from typing import Any, List, Optional, Union

import pytest

from launch.agent.gpus import nvidia_smi
from launch.agent.protocol import local_socket
from launch.agent.service import chief_command
from launch.agent.wire.run_request import RunRequest
from tests.support.agent.requested import RUN, run_request, task_request

HASH = "1" * 16
REPORT = 'echo \'{"succeeded": false, "cause": "job.py:3: KeyError: hunter2"}\' > $LAUNCH_TASK_DIR/outcome.json'
pytestmark = pytest.mark.not_fast


def request(folder: Path, script: str, **chief: Any) -> RunRequest:
    """The chief whose program is a shell script, which gets ``jobs.describe`` as its first word."""
    shipped = folder / "code" / HASH
    shipped.mkdir(parents=True)
    (shipped / "data.csv").write_text("4711")
    task = task_request(argv=("sh", "-c", script, "jobs.main"), env={"OWN": "1"}, chief=True, **chief)
    return run_request(task, workdir=str(folder), code={"job": HASH}, secrets={"KEY": "hunter2"})


def test_a_mistake_is_reported_without_secrets_and_leaves_nothing(tmp_path: Path) -> None:
    found = chief_command.mistake(request(tmp_path, f"test $KEY = hunter2 && {REPORT}; exit 3"))
    assert found.cause == "job.py:3: KeyError: (secret)"
    assert list((tmp_path / "runs" / RUN).iterdir()) == []


@pytest.mark.parametrize(
    ("answer", "cause"),
    [("ready", None), ("ended", "job.py:3: KeyError: (secret)"), (None, None), (TimeoutError(), None)],
)
def test_the_graph_is_built_here_where_the_chiefs_process_ended_before_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, cause: Optional[str]
) -> None:
    """A run that is ended meanwhile has no such process. Without an answer, the tasks find the mistake."""
    asked: List[Any] = []

    def ask_agent(folder: Path, request: Any, timeout_s: float) -> Any:
        asked.append((folder, request, timeout_s))
        if isinstance(answer, TimeoutError):
            raise answer
        return {"prepared": answer}

    monkeypatch.setattr(local_socket, "ask_agent", ask_agent)
    found = chief_command.mistake(request(tmp_path, f"{REPORT}; exit 3", waits=True))
    assert found.cause == cause
    assert asked == [(tmp_path / "runs" / RUN / "hosts" / "h", {"do": "prepared"}, chief_command.GRAPH_S)]


@pytest.mark.parametrize("script", ["exit 0", f"{REPORT}; exit 0", f"{REPORT}; exit 1", "exit 3", "kill -9 $$"])
def test_any_other_end_is_left_to_the_tasks(tmp_path: Path, script: str) -> None:
    assert chief_command.mistake(request(tmp_path, script)).cause is None


def test_a_graph_that_takes_too_long_is_ended_and_left_to_the_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chief_command, "GRAPH_S", 0.1)
    assert chief_command.mistake(request(tmp_path, f"{REPORT}; exec sleep 1000")).cause is None
    assert list((tmp_path / "runs" / RUN).iterdir()) == []


def test_a_program_that_is_missing_is_left_to_the_tasks(tmp_path: Path) -> None:
    asked = request(tmp_path, "exit 3")
    missing = task_request(argv=("/nonexistent/python",), chief=True)
    assert chief_command.mistake(run_request(missing, workdir=str(tmp_path), code=asked.code)).cause is None


def test_in_a_step_of_slurm_its_gpus_are_counted_in_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia_smi, "list_gpus", lambda: ["GPU-a", "GPU-b", "GPU-c"])
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,2")
    chief_command.mistake(request(tmp_path, f"echo $CUDA_VISIBLE_DEVICES > {tmp_path}/said", gpus=(1, 2)))
    assert (tmp_path / "said").read_text() == "2\n"


@pytest.mark.parametrize(("gpus", "visible"), [((), ""), ((1,), "1"), ("all", "0,1,2"), ("share", "0,1,2")])
def test_it_has_the_chiefs_folder_environment_and_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpus: Union[str, List[int]], visible: str
) -> None:
    monkeypatch.setattr(nvidia_smi, "list_gpus", lambda: ["GPU-a", "GPU-b", "GPU-c"])
    said = 'echo "$0 $OWN $(cat data.csv) [$CUDA_VISIBLE_DEVICES] $TF_CONFIG"'
    chief_command.mistake(request(tmp_path, f"{said} > {tmp_path}/said", gpus=gpus))
    program, own, data, seen, config = (tmp_path / "said").read_text().split(maxsplit=4)
    assert (program, own, data, seen) == ("jobs.describe", "1", "4711", f"[{visible}]")
    assert json.loads(config)["task"] == {"type": "worker", "index": 0}
