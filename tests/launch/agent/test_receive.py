"""First contact with a host: code is sent once, arrives whole, and what prevents it is said."""

import array
import ast
import fcntl
import json
import subprocess
import sys
import termios
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List

from launch.agent import processes
from launch.ship import Bundle, Code, launcher_code
from tests.launch.machine import living_under
from tests.waiting import eventually

RECEIVER = Path(processes.__file__).with_name("receive.py")
WAIT_S = 30.0


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
    arrived = tmp_path / "code" / launcher.hashes["launcher"] / "launch" / "agent" / "receive.py"
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
    greeting = {"workdir": str(tmp_path), "code": launcher.hashes, "verb": "status", "stay": WAIT_S}
    with receiver(tmp_path, launcher, ask=False, stay=WAIT_S) as process:
        say(process, b"\n")
        hear(process)
        send(process, launcher.bundles["launcher"])
        for _ in range(2):
            assert ask_status(process, tmp_path) == {"status": None}
            say(process, json.dumps(greeting).encode() + b"\n")
            assert hear(process)["missing"] == []
        process.stdin.close()  # type: ignore[union-attr]
        assert process.wait(WAIT_S) == 0


def test_one_that_is_asked_nothing_more_ends_by_itself(tmp_path: Path) -> None:
    launcher = launcher_code()
    with receiver(tmp_path, launcher, stay=0.1) as process:
        hear(process)
        send(process, launcher.bundles["launcher"])
        ask_status(process, tmp_path)
        assert process.wait(WAIT_S) == 0  # its stdin is still open


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
        send(process, Bundle(data[:100] + b"?" + data[101:], ""))
        assert hear(process)["error"] == f"cannot write the code under {tmp_path}/code: the code arrived damaged"
    assert folders(tmp_path) == []


def test_a_launcher_that_goes_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    launcher = launcher_code()
    with receiver(tmp_path, launcher) as process:
        hear(process)
        say(process, b"100000\nonly this")
        process.stdin.close()  # type: ignore[union-attr]
        assert process.wait(WAIT_S) == 0
    assert folders(tmp_path) == []


def test_a_working_folder_that_cannot_be_made_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with receiver(tmp_path / "file", launcher_code()) as process:
        error = hear(process)["error"]
    assert error.startswith(f"cannot write the code under {tmp_path}/file/code: ")
    assert "Not a directory" in error


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
        assert process.communicate(timeout=WAIT_S)[1] == b""
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
        ran = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=WAIT_S)
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
