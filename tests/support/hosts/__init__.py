"""Fake hosts: machines of their own to programs, on one Linux machine. See docs/fake-hosts.md.

fleet     several hosts on one switch
host      one host: its power, its cable and its console
share     a part of a processor for each host
fixture   ``fake_hosts`` for tests

boot      starting a host, with boot.sh
cable     the veth pair between a host and the switch
console   commands and files of a host, without its network
errors    errors of fake hosts
keys      keys and configuration of SSH
needs     programs and rights that a machine must have
proc      processes and traffic of a host, read from outside
process   processes by number and start time
rack      the switch, the disks and the cable to this machine
sshd      settings of sshd for a while, logins counted, certificates
ssh_files somebody's SSH configuration of fake hosts, and known hosts
tool      programs that hosts are made with
"""

from tests.support.hosts.errors import HostError, MissingError
from tests.support.hosts.fleet import FakeHosts
from tests.support.hosts.host import Host
from tests.support.hosts.proc import Process, Traffic

__all__ = ["FakeHosts", "Host", "HostError", "MissingError", "Process", "Traffic"]
