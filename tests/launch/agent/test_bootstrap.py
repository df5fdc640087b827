"""First contact with a host: code is sent once, arrives whole, and what prevents it is said."""

import array
import ast
import fcntl
import json
import os
import shutil
import subprocess
import sys
import termios
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from launch import agent
from launch.hosts.bundle import Bundle, Code, launcher_code, pack
from tests.support.launch.machine import living_under
from tests.support.waiting import PATIENCE_S, eventually

RECEIVER = Path(str(agent.__file__)).with_name("bootstrap.py")


@contextmanager
def receiver(
    workdir: Path, code: Code, *options: str, ask: bool = True, **greeting: Any
) -> Iterator["subprocess.Popen[bytes]"]:
    """First contact, its request sent; without ``ask``, all but the end of it."""
    argv = [sys.executable, *options, "-c", RECEIVER.read_text()]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        say(process, json.dumps({"workdir": str(workdir), "code": code.hashes, "verb": "status", **greeting}).encode())
        if ask:
            say(process, b"\n")
        yield process
        process.kill()


def has_read_all(process: "subprocess.Popen[bytes]") -> bool:
    """Whether nothing of what was sent is still on its way."""
    unread = array.array("i", [0])
    fcntl.ioctl(process.stdin, termios.FIONREAD, unread)  # type: ignore[arg-type]
    return unread[0] == 0


def say(process: "subprocess.Popen[bytes]", data: bytes) -> None:
    process.stdin.write(data)  # type: ignore[union-attr]
    process.stdin.flush()  # type: ignore[union-attr]


def hear(process: "subprocess.Popen[bytes]") -> Dict[str, Any]:
    line: bytes = process.stdout.readline()  # type: ignore[union-attr]
    answer: Dict[str, Any] = json.loads(line.decode())
    return answer


def send(process: "subprocess.Popen[bytes]", bundle: Bundle) -> None:
    say(process, b"%d\n" % len(bundle.data) + bundle.data)


def ask_status(process: "subprocess.Popen[bytes]", workdir: Path) -> Dict[str, Any]:
    say(process, json.dumps({"workdir": str(workdir), "name": "a", "host": "h"}).encode() + b"\n")
    return hear(process)


def folders(workdir: Path) -> List[str]:
    """What lies under ``code/``, partial folders included."""
    return sorted(path.name for path in (workdir / "code").iterdir())


def test_code_that_is_missing_is_received_and_the_verb_runs_in_it(tmp_path: Path) -> None:
    launcher = launcher_code()
    with receiver(tmp_path, launcher) as process:
        assert hear(process) == {"missing": ["launcher"], "python": sys.version.split()[0]}
        send(process, launcher.bundles["launcher"])
        assert ask_status(process, tmp_path) == {"status": None}
    assert folders(tmp_path) == [launcher.hashes["launcher"]]
    arrived = tmp_path / "code" / launcher.hashes["launcher"] / "launch" / "agent" / "bootstrap.py"
    assert arrived.read_bytes() == RECEIVER.read_bytes()


def test_code_that_is_there_is_not_asked_for_again(tmp_path: Path) -> None:
    launcher = launcher_code()
    for missing in (["launcher"], []):
        with receiver(tmp_path, launcher) as process:
            assert hear(process)["missing"] == missing
            if missing:
                send(process, launcher.bundles["launcher"])
            assert ask_status(process, tmp_path) == {"status": None}


def test_one_that_is_to_stay_takes_the_next_verb_and_ends_with_the_launcher(tmp_path: Path) -> None:
    launcher = launcher_code()
    greeting = {"workdir": str(tmp_path), "code": launcher.hashes, "verb": "status", "stay": PATIENCE_S}
    with receiver(tmp_path, launcher, ask=False, stay=PATIENCE_S) as process:
        say(process, b"\n")
        hear(process)
        send(process, launcher.bundles["launcher"])
        for _ in range(2):
            assert ask_status(process, tmp_path) == {"status": None}
            say(process, json.dumps(greeting).encode() + b"\n")
            assert hear(process)["missing"] == []
        process.stdin.close()  # type: ignore[union-attr]
        assert process.wait(PATIENCE_S) == 0


def test_one_that_is_asked_nothing_more_ends_by_itself(tmp_path: Path) -> None:
    launcher = launcher_code()
    with receiver(tmp_path, launcher, stay=0.1) as process:
        hear(process)
        send(process, launcher.bundles["launcher"])
        ask_status(process, tmp_path)
        assert process.wait(PATIENCE_S) == 0  # its stdin is still open


def test_launchers_that_send_the_same_code_at_once_all_succeed(tmp_path: Path) -> None:
    launcher, workdir = launcher_code(), tmp_path / "a" / "b"
    with ExitStack() as stack:
        processes = [stack.enter_context(receiver(workdir, launcher, ask=False)) for _ in range(8)]
        eventually("all of them waiting", lambda: all(map(has_read_all, processes)))
        for process in processes:
            say(process, b"\n")
        assert [hear(process).get("missing") for process in processes] == [["launcher"]] * 8
        for process in processes:
            send(process, launcher.bundles["launcher"])
            assert ask_status(process, workdir) == {"status": None}
    assert folders(workdir) == [launcher.hashes["launcher"]]


def test_code_that_arrives_damaged_is_refused_and_nothing_of_it_is_kept(tmp_path: Path) -> None:
    launcher = launcher_code()
    data = launcher.bundles["launcher"].data
    with receiver(tmp_path, launcher) as process:
        hear(process)
        say(process, b"%d\n" % len(data) + data[:100] + b"?" + data[101:])
        assert hear(process)["error"] == f"cannot write the code under {tmp_path}/code: the code arrived damaged"
    assert folders(tmp_path) == []


def test_a_launcher_that_goes_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    launcher = launcher_code()
    with receiver(tmp_path, launcher) as process:
        hear(process)
        say(process, b"100000\nonly this")
        process.stdin.close()  # type: ignore[union-attr]
        assert process.wait(PATIENCE_S) == 0
    assert folders(tmp_path) == []


def test_a_working_folder_that_cannot_be_made_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with receiver(tmp_path / "file", launcher_code()) as process:
        answer = hear(process)
    error = answer["error"]
    assert answer["kind"] == "disk"
    assert error.startswith(f"cannot write the code under {tmp_path}/file/code: ")
    assert "Not a directory" in error


@pytest.mark.skipif(os.getuid() != 0, reason="needs root: it mounts a small disk")
def test_a_full_disk_is_named_with_what_is_left_there(tmp_path: Path) -> None:
    launcher, disk = launcher_code(), tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], check=True)
    try:
        with receiver(disk / "w", launcher) as process:
            hear(process)
            send(process, launcher.bundles["launcher"])
            error = hear(process)["error"]
        assert not folders(disk / "w")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    expected = f"cannot write the code under {disk}/w/code: No space left on device; the disk at {disk} has 0.3 MB and "
    assert error.startswith(expected) and error.endswith(" files left")


# -- code that is not as it was sent


@pytest.fixture(scope="module")
def launcher() -> Code:
    return launcher_code()


@pytest.fixture
def unpacked(tmp_path: Path, launcher: Code) -> Path:
    """The code's folder on a host to which it was sent."""
    assert ask_once(tmp_path, launcher) == ["launcher"]
    return tmp_path / "code" / launcher.hashes["launcher"]


def ask_once(workdir: Path, code: Code, **greeting: Any) -> List[str]:
    """What is missing, which is then sent."""
    with receiver(workdir, code, **greeting) as process:
        missing: List[str] = hear(process)["missing"]
        for kind in missing:
            send(process, code.bundles[kind])
        say(process, json.dumps({"workdir": str(workdir), "name": "a", "host": "h", "run": "r"}).encode() + b"\n")
        hear(process)
    return missing


def refused(workdir: Path, code: Code) -> str:
    with receiver(workdir, code) as process:
        answer = hear(process)
    assert answer["kind"] == "folder"
    return "; ".join([answer["error"], answer["advice"]])


def test_what_arrives_is_as_young_as_its_arrival_so_that_a_purge_by_age_leaves_it(unpacked: Path) -> None:
    files = list(unpacked.rglob("*.py"))
    assert files and all(time.time() - path.stat().st_mtime < 3600 for path in files)


@pytest.mark.parametrize("lost", ["launch/agent/network/resolver.py", "launch/agent", ".manifest"])
def test_code_of_which_a_part_was_purged_is_sent_again_and_put_in_place(
    tmp_path: Path, unpacked: Path, launcher: Code, lost: str
) -> None:
    other = unpacked / "cluster" / "errors.py"
    node = other.stat().st_ino
    path = unpacked / lost
    shutil.rmtree(str(path)) if path.is_dir() else path.unlink()
    assert ask_once(tmp_path, launcher) == ["launcher"]
    assert path.exists() and ask_once(tmp_path, launcher) == []
    assert folders(tmp_path) == [launcher.hashes["launcher"]]
    assert other.stat().st_ino != node  # replaced, not written into: a task may be reading it


@pytest.mark.parametrize("damage", ["cut", "link"])
def test_a_file_that_was_cut_short_or_replaced_is_sent_again(
    tmp_path: Path, unpacked: Path, launcher: Code, damage: str
) -> None:
    path = unpacked / "launch" / "agent" / "__main__.py"
    path.unlink()
    if damage == "cut":
        path.touch()
    elif damage == "link":
        path.symlink_to("bootstrap.py")
    assert ask_once(tmp_path, launcher) == ["launcher"]
    assert path.read_bytes() == RECEIVER.with_name("__main__.py").read_bytes()


@pytest.mark.parametrize("verb", ["status", "down", "start"])
def test_a_changed_byte_of_the_launchers_code_is_found_before_any_verb_runs_it_and_mended(
    tmp_path: Path, unpacked: Path, launcher: Code, verb: str
) -> None:
    for name in ("launch/agent/__main__.py", "jobs/digits.py"):
        path = unpacked / name
        whole = path.read_bytes()
        path.write_bytes(b"(" + whole[1:])
        with receiver(tmp_path, launcher, verb=verb) as process:
            assert hear(process)["missing"] == ["launcher"]
        assert ask_once(tmp_path, launcher) == ["launcher"]
        assert path.read_bytes() == whole and ask_once(tmp_path, launcher) == []
    (unpacked / ".manifest").write_text("{}")
    with receiver(tmp_path, launcher, verb=verb) as process:
        assert hear(process)["missing"] == ["launcher"]


def test_bytecode_that_a_full_disk_has_cut_short_keeps_no_verb_from_running(
    tmp_path: Path, unpacked: Path, launcher: Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    assert ask_once(tmp_path, launcher) == []
    kept = [path for path in unpacked.rglob("*.pyc") if path.name.startswith(("__main__.", "status."))]
    assert len(kept) >= 2
    for path in kept:
        os.truncate(str(path), 200)
    with receiver(tmp_path, launcher) as process:
        assert hear(process)["missing"] == []
        assert ask_status(process, tmp_path) == {"status": None}


def test_a_changed_byte_of_a_jobs_code_is_found_before_a_run_starts(tmp_path: Path, launcher: Code) -> None:
    source = tmp_path / "data.bin"
    source.write_bytes(b"one")
    code = Code({**launcher.bundles, "job": pack([(source, "data.bin")])})
    assert ask_once(tmp_path, code) == ["job", "launcher"]
    (tmp_path / "code" / code.hashes["job"] / "data.bin").write_bytes(b"two")
    assert ask_once(tmp_path, code) == []  # it may be large, and nothing of it runs
    with receiver(tmp_path, code, verb="start") as process:
        assert hear(process)["missing"] == ["job"]


RECORDED = r"""
import os
fsync, rename = os.fsync, os.rename

def synced(handle):
    os.write(2, b"sync %s\n" % os.fsencode(os.readlink("/proc/self/fd/%d" % handle)))
    fsync(handle)

def renamed(source, target):
    rename(source, target)
    os.write(2, b"rename\n")

os.fsync, os.rename = synced, renamed
"""


def test_the_disk_has_all_code_before_the_code_gets_its_name(tmp_path: Path, launcher: Code) -> None:
    sent, above = json.dumps({"workdir": str(tmp_path), "code": launcher.hashes, "verb": "status"}), tmp_path / "code"
    data = launcher.bundles["launcher"].data
    ran = subprocess.run(
        [sys.executable, "-c", RECORDED + RECEIVER.read_text()], input=b"%s\n%d\n%s" % (sent.encode(), len(data), data),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=PATIENCE_S,
    )  # fmt: skip
    before, after = ran.stderr.decode().split("rename\n")
    (folder,) = above.iterdir()
    synced = {line.split("/code/", 1)[1].partition("/")[2] for line in before.splitlines()}
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts}
    assert synced == {"", *files} and len(files) > 100
    assert after == f"sync {above}\n"


NOT_OF_FOLDERS = r"""
import errno, os, stat
fsync = os.fsync

def synced(handle):
    if stat.S_ISDIR(os.fstat(handle).st_mode):
        raise OSError(errno.EINVAL, "Invalid argument")
    fsync(handle)

os.fsync = synced
"""


def test_a_disk_that_syncs_no_folder_gets_code_all_the_same(tmp_path: Path, launcher: Code) -> None:
    sent = json.dumps({"workdir": str(tmp_path), "code": launcher.hashes, "verb": "status"})
    data = launcher.bundles["launcher"].data
    ran = subprocess.run(
        [sys.executable, "-c", NOT_OF_FOLDERS + RECEIVER.read_text()],
        input=b"%s\n%d\n%s" % (sent.encode(), len(data), data), stdout=subprocess.PIPE, timeout=PATIENCE_S,
    )  # fmt: skip
    assert b"error" not in ran.stdout and folders(tmp_path) == [launcher.hashes["launcher"]]


# -- folders of others


@pytest.mark.skipif(os.getuid() != 0, reason="needs root: it gives folders to another user")
def test_a_planted_folder_of_another_user_is_not_run_and_its_owner_is_named(tmp_path: Path, launcher: Code) -> None:
    tmp_path.chmod(0o1777)
    planted = tmp_path / "code" / launcher.hashes["launcher"] / "launch" / "agent"
    planted.mkdir(parents=True)
    (planted / "__main__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    for path in (tmp_path / "code").rglob("*"):
        os.chown(str(path), 12345, 12345)
    os.chown(str(tmp_path / "code"), 12345, 12345)
    assert refused(tmp_path, launcher) == (
        f"{tmp_path}/code: expected a folder owned by root (uid 0), found one owned by uid 12345; "
        "give the key workdir a folder of your own"
    )
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root: it gives folders to another user")
@pytest.mark.parametrize("name", ["runs", "locks", "envs", "code", "state"])
def test_no_folder_of_a_run_may_be_another_users_also_by_a_link(tmp_path: Path, launcher: Code, name: str) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "theirs").mkdir()
    (tmp_path / name).symlink_to("theirs")
    os.chown(str(tmp_path / name), 12345, 12345, follow_symlinks=False)
    assert refused(tmp_path, launcher).startswith(f"{tmp_path}/{name}: expected a folder owned by root")
    os.chown(str(tmp_path / name), 0, 0, follow_symlinks=False)
    os.chown(str(tmp_path / "theirs"), 12345, 12345)
    assert refused(tmp_path, launcher).startswith(f"{tmp_path}/{name}: expected a folder owned by root")


def test_a_folder_that_others_can_write_is_named_with_the_command_that_closes_it(
    tmp_path: Path, launcher: Code
) -> None:
    for path in (tmp_path / "w w", tmp_path / "w w" / "runs"):
        path.mkdir()
        path.chmod(0o777)
        error = refused(tmp_path / "w w", launcher)
        assert error.startswith(f"{path}: expected a folder that no other user can write, found mode 0777; ")
        subprocess.run(error.split("`")[1], shell=True, check=True)
    assert ask_once(tmp_path / "w w", launcher) == ["launcher"]


def test_in_a_folder_where_everybody_may_make_one_all_are_made_at_once_and_closed(
    tmp_path: Path, launcher: Code
) -> None:
    tmp_path.chmod(0o1777)
    assert ask_once(tmp_path, launcher) == ["launcher"]
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == dict.fromkeys(
        ("code", "envs", "locks", "runs", "state"), 0o700
    )


def test_links_of_ones_own_to_a_larger_disk_are_followed(tmp_path: Path, launcher: Code) -> None:
    (tmp_path / "large").mkdir(mode=0o755)
    (tmp_path / "w").mkdir(mode=0o755)
    (tmp_path / "w" / "runs").symlink_to(tmp_path / "large")
    (tmp_path / "link").symlink_to(tmp_path / "w")
    assert ask_once(tmp_path / "link", launcher) == ["launcher"]


def test_the_working_folder_is_made_closed_to_other_users(tmp_path: Path) -> None:
    with receiver(tmp_path / "w", launcher_code()) as process:
        hear(process)
        assert ((tmp_path / "w" / "code").stat().st_mode & 0o777) == 0o700


def test_warnings_of_a_newer_python_do_not_mix_with_its_complaints(tmp_path: Path) -> None:
    launcher = launcher_code()
    with receiver(tmp_path, launcher, "-W", "error") as process:
        hear(process)
        send(process, launcher.bundles["launcher"])
        assert ask_status(process, tmp_path) == {"status": None}
        assert process.communicate(timeout=PATIENCE_S)[1] == b""
    assert not living_under(tmp_path)


# -- a Python that is too old


def old_pythons() -> List[str]:
    """Those on this machine that the launcher does not run on; there may be none."""
    versions = Path.home() / ".pyenv" / "versions"
    found = [
        *versions.glob("2.*/bin/python"),
        *versions.glob("3.[0-6].*/bin/python"),
        *Path("/usr/bin").glob("python2.?"),
    ]
    return [str(path) for path in found]


def test_a_python_that_is_too_old_says_so() -> None:
    pretend = "import sys; sys.version_info = (3, 6, 15); sys.version = '3.6.15 (main)';"
    text = RECEIVER.read_text()
    cases = [[sys.executable, "-c", f"{pretend} exec({text!r})"], *([python, "-c", text] for python in old_pythons())]
    for argv in cases:
        ran = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=PATIENCE_S)
        assert json.loads(ran.stdout.decode())["error"].startswith("expected Python 3.7 or newer, found "), argv[0]


def test_the_receiver_is_written_in_a_syntax_that_every_python_can_read() -> None:
    newer = (
        ast.JoinedStr, ast.AnnAssign, ast.AsyncFunctionDef, ast.Await, ast.Nonlocal, ast.YieldFrom, ast.Starred,
        ast.MatMult,
    )  # fmt: skip
    for node in ast.walk(ast.parse(RECEIVER.read_text())):
        assert not isinstance(node, newer), f"line {node.lineno}: {type(node).__name__}"
        if isinstance(node, ast.FunctionDef):
            assert node.returns is None and not node.args.kwonlyargs
            assert not [argument for argument in node.args.args if argument.annotation]
        if isinstance(node, ast.Raise):
            assert node.cause is None
