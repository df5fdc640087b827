"""The launcher as a user runs it, with a hosts file for fake hosts."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Dict, Mapping

from tests.support import ROOT
from tests.support.hosts import FakeHosts
from tests.support.launch.launcher import LAUNCH, shown_here
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    Running = subprocess.Popen[str]
    Ended = subprocess.CompletedProcess[str]


class HostsFile:
    """``launch VERB FILE …`` on these hosts; a test's class says what is in the file."""

    env: Mapping[str, str] = MappingProxyType({})  # of the launcher, beyond this process's

    def __init__(self, hosts: FakeHosts, folder: Path, name: str):
        self.hosts, self.folder, self.file = hosts, folder, folder / f"{name}.yaml"

    def put(self, **keys: Any) -> None:
        """Writes the file: these keys, and how to reach the hosts."""
        ssh = {"config": str(self.hosts.ssh_config), "known_hosts": str(self.hosts.known_hosts), "connect_timeout_s": 3}
        self.file.write_text(json.dumps({"python": sys.executable, "ssh": ssh, **keys}))

    def start(self, verb: str, *arguments: str) -> "Running":
        """A verb in the background, both outputs in one."""
        return subprocess.Popen(
            [*LAUNCH, verb, str(self.file), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, universal_newlines=True, cwd=str(ROOT), env={**os.environ, **self.env},
        )  # fmt: skip

    def launch(self, verb: str, *arguments: str) -> "Ended":
        """A verb to its end, in this process, both outputs in one."""
        return shown_here(verb, str(self.file), *arguments, **self.env)

    def launch_apart(self, verb: str, *arguments: str) -> "Ended":
        """A verb to its end, in a process of its own: for callers that have several at once; both outputs in one."""
        process = self.start(verb, *arguments)
        try:
            output, _ = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, output, "")

    def status(self) -> Dict[str, Any]:
        """``launch status --json``."""
        status: Dict[str, Any] = json.loads(self.launch("status", "--json").stdout)
        return status

    def told(self) -> Dict[str, Any]:
        """The status of the run whose lead is on the first host, as it lies in its file there; empty before it does."""
        lead = self.hosts[0]
        text = lead.run(["sh", "-c", f"cat /root/.launch/runs/*/hosts/{lead.name}/status.json"]).stdout
        status: Dict[str, Any] = json.loads(text) if text.startswith("{") else {}
        return status
