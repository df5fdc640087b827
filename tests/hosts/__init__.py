"""Fake hosts: machines of their own to programs, on one Linux machine. See docs/fake-hosts.md."""

from tests.hosts.errors import HostError, MissingError
from tests.hosts.fleet import FakeHosts
from tests.hosts.host import Host
from tests.hosts.proc import Process, Traffic

__all__ = ["FakeHosts", "Host", "HostError", "MissingError", "Process", "Traffic"]
