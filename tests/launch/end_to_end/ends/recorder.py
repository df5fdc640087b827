"""A Python that notes what it signals and removes, a line each: who, what, whom.

PYTHON recorder.py FILE SHOWN [-S] (-c CODE | -m MODULE) ARGUMENTS; ``SHOWN`` is the program that runs this one.
"""

import os
import runpy
import signal
import sys
from functools import partial
from typing import Any, List

FILE = sys.argv[1] if __name__ == "__main__" else ""


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _name(pid: int) -> str:
    """Return what the process shows itself as, or the task that it is of, and its program."""
    shown = _read(f"/proc/{pid}/cmdline").split()
    if len(shown) > 1 and shown[0] == "launch":
        return shown[1]
    folders = [each for each in _read(f"/proc/{pid}/environ").split() if each.startswith("LAUNCH_TASK_DIR=")]
    task = f" of {os.path.basename(folders[0])}" if folders else ""
    return f"{os.path.basename(shown[0])}{task}" if pid != os.getpid() and shown else "verb"


def _note(what: str, whom: str) -> None:
    with open(FILE, "a") as file:
        file.write(f"{_name(os.getpid())}|{what}|{whom}\n")


def _signals(module: Any, name: str) -> None:
    known = getattr(module, name, None)
    if known is None:
        return

    def send(target: int, number: int, *rest: Any) -> Any:
        if number:
            pid = target if name != "pidfd_send_signal" else _pid_of(target)
            whom = _name(pid) + (" and its group" if name == "killpg" else "")
            if _read(f"/proc/{pid}/environ"):  # else it is dead already, perhaps since its name was read
                _note(signal.Signals(number).name, whom)
        return known(target, number, *rest)

    setattr(module, name, send)


def _pid_of(handle: int) -> int:
    return int(_read(f"/proc/self/fdinfo/{handle}").split("Pid:")[1].split()[0])


def _remove(known: Any, path: Any, **options: Any) -> None:
    known(path, **options)
    if not options:  # else a part of a tree that is removed
        _note("remove", os.fspath(path))


def main(shown: str, arguments: List[str]) -> None:
    """Run what Python would."""
    for module, name in ((os, "kill"), (os, "killpg"), (signal, "pidfd_send_signal")):
        _signals(module, name)
    for name in ("unlink", "remove", "rmdir"):
        setattr(os, name, partial(_remove, getattr(os, name)))  # no function, which pathlib of 3.7 would bind
    sys.executable = shown
    kind, what, *rest = [each for each in arguments if each != "-S"]
    sys.argv = [kind, *rest]
    if kind == "-m":
        sys.path.insert(0, os.getcwd())
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(compile(what, "<string>", "exec"), sys.modules["__main__"].__dict__)


if __name__ == "__main__":
    main(sys.argv[2], sys.argv[3:])
