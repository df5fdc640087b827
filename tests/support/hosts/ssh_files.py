"""The files by which somebody reaches fake hosts: an SSH configuration of the test's own, and known hosts."""

from pathlib import Path

from tests.support.hosts.fleet import FakeHosts

ALL = "Host *\n  User root\n  IdentityFile {key}\n"


def each(number: int) -> str:
    """Lines by which each of the first hosts is reached at its address."""
    return "".join(f"Host h{host}\n  HostName {{h{host}}}\n" for host in range(1, number + 1))


class SshFiles:
    """A folder with the files of one user."""

    def __init__(self, hosts: FakeHosts, folder: Path):
        self.hosts, self.folder = hosts, folder
        self.config, self.known = folder / "config", folder / "known_hosts"
        self.known.write_text(hosts.known_hosts.read_text())

    def write(self, text: str) -> None:
        """An SSH configuration; ``{h1}`` is that host's address."""
        addresses = {host.name: host.address for host in self.hosts}
        self.config.write_text(text.format(key=self.hosts.key, folder=self.folder, **addresses))
