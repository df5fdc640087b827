"""What the tasks' Python is: asked of it, with what it answered before it crashed or hung."""

import sys
from pathlib import Path
from typing import Dict

import pytest

from cluster.protocol.settings import Container
from launch.agent.containers.task_containers import OneShot
from launch.agent.facts import PythonVersions
from tests.support.containers.fake import FakeRuntime
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.not_fast  # starts programs, by what it tests
HERE = OneShot("check", None, Path())  # runs on this machine itself


def module(folder: Path, name: str, text: str) -> Dict[str, str]:
    """The variables with which Python finds a module of ours."""
    (folder / f"{name}.py").write_text(text)
    return {"PYTHONPATH": str(folder)}


def test_python_and_modules_tell_their_versions_whatever_they_print(tmp_path: Path) -> None:
    env = module(tmp_path, "chatty", "print('hello')\n__version__ = '1.2'")
    found = PythonVersions(HERE, sys.executable, env, ["chatty"]).answers(PATIENCE_S)
    assert found["python"] == {"version": sys.version.split()[0], "path": sys.executable}
    assert found["chatty"] == {"version": "1.2"}


def test_a_module_that_is_not_there_or_broken_is_told_with_its_error(tmp_path: Path) -> None:
    env = module(tmp_path, "broken", "import ctypes; ctypes.CDLL('libnothing.so')")
    found = PythonVersions(HERE, sys.executable, env, ["broken", "missing"]).answers(PATIENCE_S)
    assert found["broken"]["error"].startswith("OSError: libnothing.so: cannot open shared object file")
    assert found["missing"] == {"error": "ModuleNotFoundError: No module named 'missing'"}


def test_an_import_that_crashes_python_is_told_with_its_signal(tmp_path: Path) -> None:
    env = module(tmp_path, "crashing", "import os; os.kill(os.getpid(), 4)")
    found = PythonVersions(HERE, sys.executable, env, ["crashing"]).answers(PATIENCE_S)
    assert "version" in found["python"]
    assert found["crashing"] == {"error": "killed by SIGILL"}


def test_an_import_that_hangs_is_ended(tmp_path: Path) -> None:
    env = module(tmp_path, "hanging", "import time; time.sleep(1000)")
    found = PythonVersions(HERE, sys.executable, env, ["hanging"]).answers(2.0)
    assert found["hanging"] == {"error": "not done within 2 s"}


def test_a_python_that_is_not_there_is_told() -> None:
    found = PythonVersions(HERE, "/nowhere/python", {}).answers(PATIENCE_S)
    assert found == {"python": {"error": "cannot start /nowhere/python: No such file or directory"}}


def test_no_proxy_and_no_gpu_reaches_the_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    text = "import os; __version__ = repr((os.environ.get('HTTPS_PROXY'), os.environ['CUDA_VISIBLE_DEVICES']))"
    found = PythonVersions(HERE, sys.executable, module(tmp_path, "asking", text), ["asking"]).answers(PATIENCE_S)
    assert found["asking"] == {"version": "(None, '')"}


def test_the_python_of_a_container_answers_from_inside_and_one_that_hangs_leaves_no_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = FakeRuntime(tmp_path / "bin", "docker", monkeypatch)
    program = OneShot("check", Container("there", runtime="docker"), tmp_path)
    env = module(tmp_path, "slow", "import os, time; os.environ['LAUNCH_CONTAINER']; time.sleep(600)")
    found = PythonVersions(program, sys.executable, env, ["slow"]).answers(2.0)
    assert found["python"]["path"] == sys.executable
    assert found["slow"] == {"error": "not done within 2 s"}
    assert docker.names == []
