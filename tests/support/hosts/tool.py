"""Running the programs that fake hosts are made with, on this machine."""

import os
import subprocess
from typing import Mapping, Sequence

from tests.support.hosts.errors import HostError

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def environment() -> Mapping[str, str]:
    """The system's own programs only: a session's PATH may lack sbin, or hide them behind wrappers."""
    return {**os.environ, "PATH": SYSTEM_PATH, "LC_ALL": "C"}


def run(argv: Sequence[str], stdin: str = "", timeout_s: float = 30) -> str:
    """What ``argv`` printed.

    Raises:
      HostError: it failed or took longer than ``timeout_s``.
    """
    line = " ".join(argv)
    try:
        done = subprocess.run(
            argv,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=environment(),
        )
    except subprocess.TimeoutExpired as error:
        raise HostError(f"`{line}`: expected an end within {timeout_s:g} s, still running") from error
    if done.returncode:
        raise HostError(f"`{line}`: expected exit code 0, found {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def network(pid: int, argv: Sequence[str], stdin: str = "") -> str:
    """What ``argv`` printed, run with the network of process ``pid``. Raises as ``run`` does."""
    return run(["nsenter", f"--net=/proc/{pid}/ns/net", *argv], stdin)
