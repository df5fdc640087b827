"""A fake host as from its console: what is here works without the host's network."""

import subprocess
from typing import Any, List, Sequence

from tests.support.hosts import proc, tool
from tests.support.hosts.errors import HostError

SSH_PORT = 22
_ENVIRONMENT = ["HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/sh", "LANG=C.UTF-8", f"PATH={tool.SYSTEM_PATH}"]
# Whoever waits for the file finds it whole, and may remove it at once.
_WRITE = 'umask 022; mkdir -p "$(dirname "$1")"; umask 077; cat >"$1.new" && chmod "$2" "$1.new" && mv "$1.new" "$1"'


class Console:
    """Commands, files and processes inside one host. Paths are absolute, or start with ``~/``."""

    name: str

    def init(self) -> int:
        """Process 1 of the host, as this machine numbers it. Raises HostError while it is powered off."""
        raise NotImplementedError

    def run(self, argv: Sequence[str], timeout_s: float = 30, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """Runs a command as root in the host's root folder; its exit code is the caller's to judge.

        Raises:
          subprocess.TimeoutExpired: it was ended after ``timeout_s``.
        """
        return subprocess.run(
            self._inside(argv),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=tool.environment(),
        )

    def popen(self, argv: Sequence[str], **options: Any) -> "subprocess.Popen[Any]":
        """Starts a command in the host. Whatever ends the returned process ends the command by SIGKILL."""
        return subprocess.Popen(self._inside(argv), env=tool.environment(), **options)

    def processes(self) -> List[proc.Process]:
        """What runs on the host, less its init and sshd; numbers are the host's own."""
        return proc.processes(self.init())

    def listening_ports(self) -> List[int]:
        """TCP ports that accept connections on the host, less sshd's, in order."""
        return [port for port in proc.listening_ports(self.init()) if port != SSH_PORT]

    def traffic(self) -> proc.Traffic:
        """What the host's network card has received and sent since it booted; loopback is not in it."""
        return proc.traffic(self.init())

    def exists(self, path: str) -> bool:
        """Whether ``path`` is there."""
        return self.run(["test", "-e", _absolute(path)]).returncode == 0

    def read(self, path: str) -> str:
        """The text of the file at ``path``. Raises HostError where it cannot be read."""
        return self._must(["cat", _absolute(path)])

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Writes a file and makes the folders above it. Raises HostError where that fails."""
        self._must(["sh", "-c", _WRITE, "sh", _absolute(path), f"{mode:o}"], text)

    def reload_sshd(self) -> None:
        """Has sshd read its keys and configuration anew; open connections stay."""
        self._must(["sh", "-c", "kill -HUP $(cat /run/sshd.pid)"])

    def _must(self, argv: Sequence[str], stdin: str = "") -> str:
        done = self.run(argv, stdin=stdin)
        if done.returncode:
            raise HostError(f"{self.name}: `{' '.join(argv)}`: exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def _inside(self, argv: Sequence[str]) -> List[str]:
        enter = ["nsenter", f"--target={self.init()}", "--mount", "--net", "--pid", "--uts", "--ipc"]
        # nsenter stays outside; without this, its end would leave the command running.
        return [*enter, "setpriv", "--pdeathsig", "KILL", "env", "-i", *_ENVIRONMENT, *argv]


def _absolute(path: str) -> str:
    return "/root/" + path[2:] if path.startswith("~/") else path
