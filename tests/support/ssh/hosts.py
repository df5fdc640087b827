"""Hosts by name, each an SSH server on loopback, and the operator's files to reach them with."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional

from cluster.spec.model import Ssh
from tests.support import ROOT
from tests.support.ssh import HOST
from tests.support.ssh.keys import new_key
from tests.support.waiting import PATIENCE_S

_OPERATOR = "Host *\n  IdentityFile {key}\n  IdentitiesOnly yes\n"


class ServerProcess:
    """The process in which the servers are."""

    def __init__(self) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "tests.support.ssh.server"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True, cwd=str(ROOT)
        )

    def ask(self, **request: Any) -> int:
        """Start or close a server (tests/support/ssh/server.py says how); return its port."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise AssertionError(
                f"the SSH server: expected a port, found its end (code {self._process.wait(PATIENCE_S)})"
            )
        return int(answer)

    def close(self) -> None:
        try:
            self._process.communicate(timeout=PATIENCE_S)
        finally:
            self._process.kill()


class SshHost:
    """One of them. ``home`` is the home of whoever logs in there."""

    def __init__(self, name: str, folder: Path, port: int):
        self.name, self.folder, self.home, self.port = name, folder, folder / "home", port

    def known(self) -> str:
        """The line of known_hosts that trusts it."""
        return f"[{HOST}]:{self.port} {(self.folder / 'host_key.pub').read_text()}"

    def count(self, event: str) -> int:
        """How often this has happened: a ``login`` or a ``drop``."""
        log = self.folder / "log"
        return log.read_text().split().count(event) if log.exists() else 0


class SshHosts:
    """Hosts, until the end of the block, with an SSH configuration and known hosts that lead to them by name."""

    def __init__(self, folder: Path, server: ServerProcess):
        self.folder, self._server = folder, server
        self.key = new_key(folder / "key")
        self.config, self.known = folder / "config", folder / "known_hosts"
        self.known.write_text("")
        self.config.write_text(_OPERATOR.format(key=self.key))
        self._up: List[SshHost] = []

    def add(self, name: str, options: str = "", key: Optional[Path] = None, **settings: Any) -> SshHost:
        """Start one more. ``options``: further lines for it in the SSH configuration. ``key``: the one it lets in."""
        folder = self.folder / name
        (folder / "home").mkdir(parents=True)
        new_key(folder / "host_key")
        (folder / "authorized_keys").write_text(Path(f"{key or self.key}.pub").read_text())
        host = SshHost(name, folder, self._server.ask(folder=str(folder), **settings))
        self._up.append(host)
        entry = f"Host {name}\n  HostName {HOST}\n  Port {host.port}\n{options}"
        self.config.write_text(entry + self.config.read_text())
        self.known.write_text(self.known.read_text() + host.known())
        return host

    def close(self, host: SshHost) -> None:
        """Nobody listens at its port any more."""
        self._up.remove(host)
        self._server.ask(close=host.port)

    def keys(self) -> Dict[str, str]:
        """The key ``ssh`` of a hosts file."""
        return {"config": str(self.config), "known_hosts": str(self.known)}

    def settings(self, **keys: Any) -> Ssh:
        """How the launcher reaches them."""
        return Ssh(**{**self.keys(), **keys})

    def __enter__(self) -> "SshHosts":
        return self

    def __exit__(self, *_: object) -> None:
        for host in list(self._up):
            self.close(host)
