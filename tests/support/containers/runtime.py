"""A stand-in for ``docker`` or ``apptainer``, by the name that it is called by.

As ``docker`` it keeps a container as a file with its pid beside itself. The container's process is no child of the
client, has a session of its own, and only the variables that the client was given names of. The client passes SIGTERM
on, and reports signal n as 128 + n. As ``apptainer`` it stays the parent, and ends by the signal of its child.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Dict, List, NoReturn, Optional

PLACE = Path(__file__).parent / "state"
WITH_VALUE = {"--name", "--workdir", "--entrypoint", "--pwd", "--bind"}


def main(words: List[str]) -> int:
    """Return the exit code of a command."""
    if words[:1] == ["exec"]:
        return apptainer(words[1:])
    return {"image": image, "images": lambda _: 0, "run": run, "ps": ps, "rm": rm}[words[0]](words[1:])


def image(words: List[str]) -> int:
    return 0 if words[1] == "there" else 1


def ps(_: List[str]) -> int:
    print("\n".join(path.name for path in PLACE.iterdir()))
    return 0


def rm(words: List[str]) -> int:
    for name in words[1:]:
        if (PLACE / name).exists():
            pid = int((PLACE / name).read_text())
            if alive(pid):
                os.killpg(pid, signal.SIGKILL)
            while alive(pid):
                time.sleep(0.01)
            (PLACE / name).unlink()
    return 0


def run(words: List[str]) -> int:
    options, env, rest = {}, {}, list(words)
    while rest[0].startswith("-"):
        option, _, value = rest.pop(0).partition("=")
        value = rest.pop(0) if option in WITH_VALUE else value
        if option == "--env":
            name, _, given = value.partition("=")
            env[name] = given if "=" in value else os.environ[name]
        options[option] = value
    pid = detached([options["--entrypoint"], *rest[1:]], env, options["--workdir"])
    (PLACE / options["--name"]).write_text(str(pid))
    signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
    ended = PLACE.parent / f"ended.{pid}"
    while not ended.exists():
        time.sleep(0.01)
    return int(ended.read_text())


def detached(argv: List[str], env: Dict[str, str], folder: str) -> int:
    """Start the container's process below a shim that nobody waits for; return its pid."""
    source, sink = os.pipe()
    first = os.fork()
    if first == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.environ.clear()
        pid = os.fork()
        if pid == 0:
            become(argv, env, folder)
        os.write(sink, str(pid).encode())
        _, status = os.waitpid(pid, 0)
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        (PLACE.parent / f"partial.{pid}").write_text(str(code))
        (PLACE.parent / f"partial.{pid}").rename(PLACE.parent / f"ended.{pid}")
        os._exit(0)
    os.waitpid(first, 0)
    return int(os.read(source, 20))


def become(argv: List[str], env: Dict[str, str], folder: str) -> NoReturn:
    os.setsid()
    os.chdir(folder)
    os.execvpe(argv[0], argv, {"PATH": os.defpath, **env})


def apptainer(words: List[str]) -> int:
    folder, rest = "/", list(words)
    while rest[0].startswith("-"):
        option = rest.pop(0)
        value: Optional[str] = rest.pop(0) if option in WITH_VALUE else None
        folder = value or "/" if option == "--pwd" else folder
    mark = "APPTAINERENV_"
    env = {name[len(mark) :]: value for name, value in os.environ.items() if name.startswith(mark)}
    pid = os.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(rest[1], rest[1:], {"PATH": os.defpath, **env})
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it serves its child until that has ended
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL) if os.WTERMSIG(status) != signal.SIGKILL else None
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.WEXITSTATUS(status)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
