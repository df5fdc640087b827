"""A build ends complete, or leaves nothing of itself: no process, no half environment, no lock."""

import errno
import io
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import pytest

from launch.agent.environments import pip_build
from launch.agent.environments.environment import VERSION, Environment
from launch.agent.environments.pip_build import Build
from launch.agent.environments.wheel_store import WheelStore
from launch.agent.linux import processes
from launch.agent.wire.verb_requests import BuildRequest, LockText, WheelFile
from tests.support.launch.machine import living_under
from tests.support.launch.tiny_wheels import tiny_wheel


class Asked:
    """A request for an environment of one tiny package, and what its build says."""

    def __init__(self, folder: Path, **values: Any):
        self.folder = folder
        self.said: List[Dict[str, Any]] = []
        requirement = tiny_wheel(folder / "wheels", "tiny")
        (self.wheel,) = (folder / "wheels").iterdir()
        file = WheelFile(self.wheel.name, requirement.split(":")[-1].strip(), self.wheel.stat().st_size)
        locks = {"*": LockText(requirement, tools="")}
        self.request = replace(BuildRequest(str(folder / "w"), "e", locks, (file,), offline=True), **values)
        self.environment = Environment(folder / "w", "e")

    def build(self, gone: Callable[[float], bool] = lambda seconds: False, sent: Optional[bytes] = None) -> None:
        """Runs the build; the launcher sends the wheel, or what ``sent`` has."""
        stream = io.BytesIO(self.wheel.read_bytes() if sent is None else sent)
        Build(self.request, self.said.append, stream.read, gone).run()


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


class Steps:
    """Stands for the programs of a build: what each ran as, and what it does."""

    def __init__(self, script: str = "exit 0"):
        self.argvs: List[List[str]] = []
        self.environs: List[Dict[str, str]] = []
        self._script = script

    def __call__(self, argv: List[str], env: Dict[str, str], folder: Path, log: Path) -> "subprocess.Popen[bytes]":
        self.argvs.append(argv)
        self.environs.append(env)
        return _START(["sh", "-c", self._script], env, folder, log)


_START = processes.start


def test_a_build_makes_an_environment_with_the_packages_of_the_lock_and_is_not_done_again(asked: Asked) -> None:
    asked.build()
    assert asked.said[0] == {"want": [asked.request.files[0].sha256]}
    assert asked.said[-1] == {"done": "built", "removed": []}
    program = [str(asked.environment.python), "-c", "import tiny; print(tiny.VERSION)"]
    assert subprocess.run(program, stdout=subprocess.PIPE, check=True).stdout == b"1.0\n"
    assert not (asked.environment.path / "tmp").exists()
    asked.said.clear()
    asked.build(sent=b"")
    assert asked.said == [{"done": "up to date", "removed": []}]


def test_what_an_interrupted_build_has_left_is_not_built_upon(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    half = asked.environment.path / "lib" / "half.py"
    half.parent.mkdir(parents=True)
    half.write_text("half")
    monkeypatch.setattr(processes, "start", Steps())
    asked.build()
    assert asked.said[-1]["done"] == "built"
    assert not half.exists()


def test_when_the_launcher_goes_the_build_ends_and_leaves_nothing(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "start", Steps("sleep 1000 & sleep 1000"))
    asked.build(gone=lambda seconds: bool(living_under(asked.folder)))
    assert not any("done" in said or "error" in said for said in asked.said)
    assert living_under(asked.folder) == []
    assert not asked.environment.path.exists()
    with asked.environment.held(alone=True):  # nobody holds it any more
        pass


def test_when_the_launcher_goes_in_the_middle_of_a_file_nothing_is_left(asked: Asked) -> None:
    asked.build(sent=b"PK")
    assert not asked.environment.path.exists()
    assert WheelStore(asked.folder / "w").missing(asked.request.files) == list(asked.request.files)


def test_a_damaged_file_is_told_and_a_second_try_asks_for_it_again(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked.build(sent=asked.wheel.read_bytes()[::-1])
    assert asked.said[-1] == {"error": f"{asked.wheel.name} arrived damaged; retry"}
    monkeypatch.setattr(processes, "start", Steps())
    asked.build()
    assert asked.said[-1]["done"] == "built"


def test_a_second_setup_waits_for_the_first_and_finds_it_done(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "start", Steps())
    first = asked.environment.held(alone=True)
    first.__enter__()

    def end_of_the_first(seconds: float) -> bool:
        asked.environment.python.parent.mkdir(parents=True)
        asked.environment.python.symlink_to("/bin/sh")
        asked.environment.seal()
        first.__exit__(None, None, None)
        return False

    asked.build(gone=end_of_the_first)
    assert asked.said == [
        {"stage": "waiting until no other build or task uses this environment"},
        {"done": "up to date", "removed": []},
    ]


def test_a_build_that_fails_tells_why_gives_its_space_back_and_keeps_what_was_printed(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "start", Steps("echo 'ERROR: tiny is broken'; exit 1"))
    asked.build()
    assert asked.said[-1]["error"].startswith("ERROR: tiny is broken; correct that and retry")
    assert not asked.environment.path.exists()
    assert "tiny is broken" in asked.environment.log.read_text()
    assert asked.environment.log.stat().st_mode & 0o777 == 0o600


def test_a_disk_that_fills_up_while_files_arrive_is_named(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(store: WheelStore, file: Dict[str, Any], read: Callable[[int], bytes]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(WheelStore, "receive", full)
    asked.build()
    assert asked.said[-1]["error"].startswith("the disk is full (")


def test_a_build_that_hangs_ends_in_time(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pip_build, "BUILD_S", 0.0)
    monkeypatch.setattr(processes, "start", Steps("sleep 1000"))
    asked.build()
    assert asked.said[-1] == {"error": "not ready within 0 min, while making an environment of Python " + VERSION}
    assert living_under(asked.folder) == []


def test_an_index_with_a_password_is_in_no_argv_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://me:pa55word@pypi.example.org/simple"
    asked, steps = Asked(tmp_path, index_url=url, files=[], offline=False), Steps()
    monkeypatch.setattr(processes, "start", steps)
    monkeypatch.setenv("PIP_TARGET", "/elsewhere")
    asked.build()
    assert asked.said[-1]["done"] == "built"
    assert steps.environs[-1]["PIP_INDEX_URL"] == url
    assert steps.environs[-1]["PIP_TRUSTED_HOST"] == "pypi.example.org" and "PIP_TARGET" not in steps.environs[-1]
    assert "pa55word" not in str(steps.argvs)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files and not [path for path in files if b"pa55word" in path.read_bytes()]


def test_pip_takes_only_what_the_lock_has_hashes_of_and_with_wheels_alone_asks_no_index(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps()
    monkeypatch.setattr(processes, "start", steps)
    asked.build()
    pip = steps.argvs[-1]
    assert {"--require-hashes", "--no-deps", "--no-index", "--find-links"} <= set(pip)


def test_the_packages_that_pip_needs_itself_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, steps = Asked(tmp_path, locks={"*": LockText("no", "no"), VERSION: LockText("yes", "pip")}), Steps()
    monkeypatch.setattr(processes, "start", steps)
    asked.build()
    assert [Path(argv[-1]).name for argv in steps.argvs[2:]] == ["tools.txt", "all.txt"]
    assert (asked.environment.path / "all.txt").read_text() == "yes"
