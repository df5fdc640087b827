"""Several fake hosts on one switch, and the keys to reach them over SSH."""

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Iterator, List, Optional, Tuple, Type

from tests.support import ROOT
from tests.support.hosts import keys, needs, tool
from tests.support.hosts.boot import TIMEOUT_S, hidden, wait
from tests.support.hosts.errors import HostError
from tests.support.hosts.host import Host, power_on
from tests.support.hosts.rack import Rack, sweep

MOST = 250


class FakeHosts:
    """``count`` hosts named ``prefix`` and a number from 1, running from ``with`` to its end.

    >>> with FakeHosts(2) as hosts:
    ...     hosts[0].run(["hostname"]).stdout
    'h1\\n'

    Raises:
      MissingError: this machine cannot have fake hosts.
      HostError: a host did not boot.
    """

    def __init__(self, count: int, prefix: str = "h"):
        needs.require()
        if not 1 <= count <= MOST:
            raise HostError(f"count: expected 1 to {MOST} fake hosts, found {count}")
        sweep()
        self._rack = Rack()
        self._hosts = self._installed(count, prefix)
        try:
            self._write_keys()
            power_on(self._rack, self._hosts)
        except BaseException:
            self.close()
            raise

    def _installed(self, count: int, prefix: str) -> List[Host]:
        subnet = f"10.77.{self._rack.number}"
        # Python is to be found on the hosts, wherever it and the repository are on this machine.
        visible = hidden([sys.prefix, sys.base_prefix, str(ROOT)])
        numbers = range(1, count + 1)
        return [Host(self._rack, n - 1, f"{prefix}{n}", f"{subnet}.{n}", visible) for n in numbers]

    def _write_keys(self) -> None:
        addresses = self._addresses()
        keys.generate(self.key)
        hosts_file = keys.hosts_file([*addresses, ("launcher", self.launcher_address)])
        for host in self:
            keys.seed(self._seed(host), self.key, hosts_file, host.name)
        known = (keys.known_host(host.name, host.address, self._seed(host) / keys.HOST_KEY) for host in self)
        self.known_hosts.write_text("".join(known))
        self.ssh_config.write_text(keys.client_config(addresses, self.key, self.known_hosts))

    def _addresses(self) -> List[Tuple[str, str]]:
        return [(host.name, host.address) for host in self]

    def _seed(self, host: Host) -> Path:
        return self._rack.folder / "seeds" / host.name

    @property
    def ssh_config(self) -> Path:
        """For ``ssh -F``: every host by name and by address, strict about host keys."""
        return self._rack.folder / "ssh_config"

    @property
    def key(self) -> Path:
        """The private key that opens root's account on every host."""
        return self._rack.folder / "key"

    @property
    def known_hosts(self) -> Path:
        """The keys that the hosts had when they were first booted."""
        return self._rack.folder / "known_hosts"

    @property
    def launcher_address(self) -> str:
        """Where the hosts find this machine, which they also know by the name ``launcher``."""
        return self._rack.launcher(self._rack.number)

    def written(self, host: Host) -> Path:
        """The folder with all that the host has written to its disk since its first boot, as this machine sees it."""
        disks = f"/proc/{self._rack.pid}/root{self._rack.folder}/disks"
        return Path(disks) / host.name / "upper"

    def ssh(self, host: Host, *command: str) -> List[str]:
        """An argv that runs a shell command on the host through OpenSSH."""
        return ["ssh", "-F", str(self.ssh_config), host.name, *command]

    def change_host_key(self, index: int) -> None:
        """Gives the host a new key, as an impostor or a new installation has; ``known_hosts`` keeps the old one."""
        host = self[index]
        key = self._rack.folder / "new_keys" / host.name
        keys.generate(key)
        host.write(f"/{keys.HOST_KEY}", key.read_text(), 0o600)
        host.reload_sshd()
        wanted = keys.public(key).read_text().split()[1]
        missing = f"{host.name}: expected sshd to show its new key, found another or none"
        wait(lambda: wanted in _shown(host), time.monotonic() + TIMEOUT_S, lambda: missing)

    def close(self) -> None:
        """Ends every host and leaves nothing of them; again does nothing."""
        self._rack.close()
        for host in self:
            host.reap()

    def __enter__(self) -> "FakeHosts":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def __getitem__(self, index: int) -> Host:
        return self._hosts[index]

    def __len__(self) -> int:
        return len(self._hosts)

    def __iter__(self) -> Iterator[Host]:
        return iter(self._hosts)


def _shown(host: Host) -> str:
    """The host key that sshd shows, or nothing while it starts anew."""
    try:
        return tool.run(["ssh-keyscan", "-T", "5", "-t", "ed25519", host.address])
    except HostError:
        return ""
