"""What `make test-fast` runs is told by what a test module imports."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Callable

import pytest

from tests.support import ROOT, fast
from tests.support.waiting import PATIENCE_S

TESTS = ROOT / "tests"


@pytest.mark.parametrize(
    "module",
    [
        "cluster/test_task.py",
        "launch/plan/test_plan.py",
        "launch/agent/supervision/test_supervisor.py",
        "launch/check/test_host_rules.py",
        "test_architecture.py",
    ],
)
def test_tests_of_pure_logic_are_fast(module: str) -> None:
    assert (TESTS / module).is_file() and fast.is_fast(TESTS / module)


@pytest.mark.parametrize(
    "module",
    [
        "cluster/test_towers.py",  # loads TensorFlow itself
        "cluster/test_in_graph.py",  # starts processes, by another module
        "launch/end_to_end/test_verbs.py",
        "launch/end_to_end/test_on_hosts.py",  # has hosts of its own
        "launch/end_to_end/test_two_hosts_here.py",  # starts agents
        "jobs/test_describe.py",  # loads TensorFlow by what it tests
    ],
)
def test_tests_with_real_parts_are_not(module: str) -> None:
    assert (TESTS / module).is_file() and not fast.is_fast(TESTS / module)


@pytest.mark.parametrize("slow", [lambda: subprocess.Popen(["true"]), lambda: os.fork(), lambda: os.system("true")])
def test_a_fast_test_that_starts_a_process_all_the_same_fails(slow: Callable[[], Any]) -> None:
    with fast.guarded(), pytest.raises(pytest.fail.Exception, match="expected no process and no TensorFlow"):
        slow()
    with subprocess.Popen(["true"]) as process:
        assert process.wait(PATIENCE_S) == 0


def test_a_fast_test_that_loads_tensorflow_all_the_same_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    with fast.guarded(), pytest.raises(pytest.fail.Exception):
        import_module("tensorflow")


def test_an_import_for_types_alone_loads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests").mkdir()
    file = tmp_path / "tests" / "test_a.py"
    monkeypatch.setattr(fast, "ROOT", tmp_path)
    file.write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import subprocess\n")
    assert fast.is_fast(file)
    file.write_text("try:\n    import subprocess\nexcept ImportError:\n    pass\n")
    fast._imports.cache_clear()
    assert not fast.is_fast(file)


def test_a_slow_file_that_the_command_line_names_is_left_out() -> None:
    slow = ["--fast", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/launch/test_main.py"]
    ran = subprocess.run([sys.executable, "-m", "pytest", *slow], cwd=str(ROOT), capture_output=True, text=True)
    assert ran.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, ran.stdout + ran.stderr
