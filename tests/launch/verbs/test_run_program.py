"""``launch run`` writes the file that ``launch up`` would need, and does with it what ``launch up`` does."""

import os
from pathlib import Path
from typing import Any, Dict, List
from unittest.mock import patch

import pytest

from cluster.spec import load
from launch.cli import load as load_verb
from launch.errors import FAILED, SUCCEEDED, USAGE
from launch.target import Target
from tests.support.launch.launcher import run_here

FILE = "launch-run.yaml"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


class Started:
    """What a run was started with, in place of the run."""

    def __init__(self, code: int = SUCCEEDED) -> None:
        self._code, self.calls = code, []  # type: ignore[var-annotated]

    def __call__(self, target: Target, detach: bool) -> int:
        self.calls.append((target, detach))
        return self._code


def run(*arguments: str, code: int = SUCCEEDED) -> Dict[str, Any]:
    started = Started(code)
    load_verb("run")
    with patch("launch.verbs.run_program.train", started):
        ran = run_here("run", *arguments)
    return {"code": ran.returncode, "errors": ran.stderr, "calls": started.calls}


def test_the_file_is_printed_written_and_started() -> None:
    ran = run("-H", "a,me@b:2", "--ps", "1", "--", "python", "m.py", "-d", "--rank={index}")
    assert ran["code"] == USAGE and "expected one user for all hosts, or none" in ran["errors"]
    ran = run("-H", "a,b:2", "--ps", "1", "--", "python", "m.py", "-d", "--rank={index}")
    assert (ran["code"], ran["calls"]) == (SUCCEEDED, [(Target(FILE), False)])
    assert Path(FILE).read_text() == "\n".join(ran["errors"].splitlines()[1:]) + "\n"
    spec = load(Path(FILE))
    assert [f"{task.name}@{task.host}" for task in spec.tasks] == ["ps:0@a", "worker:0@a", "worker:1@b", "worker:2@b"]
    assert '\ncommand: ["python", "m.py", "-d", "--rank={index}"]\n' in Path(FILE).read_text()


def test_the_options_of_up_are_passed_on_and_the_exit_code_is_the_runs() -> None:
    ran = run("-H", "me@a", "-d", "--local", "--set", "restart.max=0", "--save", "b.yaml", "sleep", "-d", code=FAILED)
    assert ran["code"] == FAILED
    assert ran["calls"] == [(Target("b.yaml", local=True, overrides=("restart.max=0",)), True)]
    assert load(Path("b.yaml")).ssh.user == "me" and not Path(FILE).exists()


def test_its_own_file_is_replaced_and_hosts_that_it_no_longer_names_are_named() -> None:
    for hosts, note in [("a", ""), ("a,b", ""), ("a,b", ""), ("b,c:2", f"{FILE} no longer names a: verbs about")]:
        ran = run("-H", hosts, "true")
        assert ran["code"] == SUCCEEDED and len(ran["calls"]) == 1
        assert ran["errors"].startswith(note or f"wrote {FILE}, which `launch status {FILE}` and the other verbs take:")
    Path(FILE).write_text(Path(FILE).read_text() + "edited: {")
    assert run("-H", "a", "true")["code"] == SUCCEEDED and load(Path(FILE)).hosts == ("a",)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine.yaml", "mine.yaml: expected no file, or a file that `launch run` wrote, found another file; see --save"),
        ("latin.yaml", "latin.yaml:1:1: expected text in UTF-8, found the byte 0xe9"),
        ("no/b.yaml", "no/b.yaml: expected a file that can be written, found no such file or directory; see --save"),
        (".", ".: expected a hosts file, found a folder"),
        ("fifo", "fifo: expected a hosts file, found a "),
    ],
)
def test_another_file_is_never_replaced(name: str, message: str) -> None:
    Path("mine.yaml").write_text("job: digits\n")
    Path("latin.yaml").write_bytes(b"# \xe9\n")
    os.mkfifo("fifo")
    ran = run("-H", "a", "--save", name, "true")
    assert (ran["code"], ran["calls"]) == (USAGE, []) and ran["errors"].startswith(message), ran["errors"]
    assert Path("mine.yaml").read_text() == "job: digits\n" and Path("latin.yaml").read_bytes() == b"# \xe9\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-H", "a", "--save", "my run.yaml", "true"], "--save: expected a name of at most 100 letters, digits"),
        (["-H", "a"], "Missing argument 'PROGRAM...'"),
        (["true"], "Missing option '-H'"),
        (["-H", "a", "--sav", "b.yaml", "true"], "No such option"),
        (["-H", "a:0", "true"], "--hosts: expected a number of slots from 1 to 1024, found '0'"),
        (["-H", "localhost,a", "true"], "expected an address that the other hosts can reach, found localhost"),
        (["-H", "a", "x{indx}"], "expected a known placeholder, found {indx}"),
        (["-H", "a,b", "--ps", "3", "true"], "--ps: expected at most one ps on each of the 2 hosts, found 3"),
    ],
)
def test_what_cannot_run_writes_no_file(arguments: List[str], message: str) -> None:
    ran = run(*arguments)
    assert (ran["code"], ran["calls"]) == (USAGE, []) and message in ran["errors"]
    assert not list(Path().iterdir())


@pytest.mark.not_fast
def test_a_program_runs_twice_on_this_machine_and_other_verbs_find_the_run(tmp_path: Path) -> None:
    Path("m.py").write_text("import sys; print('rank', *sys.argv[1:]); sys.exit(int(sys.argv[2]))\n")
    workdir = ["--set", f"workdir={tmp_path}/w", "--set", "restart.max=0"]
    program = ["python3", "m.py", "{index}"]
    ran = run_here("run", "-H", "localhost:2", *workdir, "--", *program, "0")
    assert ran.returncode == SUCCEEDED, ran.stderr
    logs = run_here("logs", FILE, *workdir).stdout.splitlines()
    assert sorted(logs) == ["worker:0@localhost rank 0 0", "worker:1@localhost rank 1 0"]
    assert "succeeded" in run_here("status", FILE, *workdir).stdout
    assert run_here("run", "-H", "localhost:2", *workdir, "--", *program, "3").returncode == FAILED
    assert run_here("down", FILE, *workdir).returncode == SUCCEEDED
