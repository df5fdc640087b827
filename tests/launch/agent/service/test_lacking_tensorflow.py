"""A Python of a job's tasks that has no TensorFlow is found before a task starts."""

import sys
from pathlib import Path
from typing import Any

from launch.agent.service.preparation import lacking_tensorflow
from tests.support.agent.requested import task_request

JOB = ("-m", "jobs.main", "digits")


def python(path: Path, lines: str) -> str:
    """A program in the place of a Python."""
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return str(path)


def test_each_python_of_a_job_without_tensorflow_is_named_once(tmp_path: Path) -> None:
    bare = python(tmp_path / "bare", f'exec {sys.executable} -S "$@"')
    tasks = [task_request(name, argv=(bare, *JOB)) for name in ("ps:0", "worker:0")]
    (text,) = lacking_tensorflow(tasks)
    assert text.startswith(f"{bare}: expected a Python with TensorFlow, found none there; let `launch setup` build ")
    assert lacking_tensorflow([task_request("worker:0", argv=(bare, "-c", "1"))]) == []  # a program


def test_a_python_that_has_it_or_gives_no_answer_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").touch()
    bare = python(tmp_path / "bare", f'exec {sys.executable} -S "$@"')
    broken = python(tmp_path / "broken", "exit 1")
    env: Any = {"PYTHONPATH": str(tmp_path)}
    asked = [
        task_request(f"worker:{index}", argv=(program, *JOB), env=env)
        for index, program in enumerate((bare, broken, str(tmp_path / "none")))
    ]
    assert lacking_tensorflow(asked) == []
