"""The transport to each host: none to this machine, otherwise SSH or Slurm, by the key ``transport``."""

import os
from contextlib import ExitStack
from typing import Dict, Mapping

from cluster.spec.model import Spec
from launch.hosts.channel import Host
from launch.hosts.closing import EndingProcesses
from launch.hosts.local_host import LocalHost
from launch.openssh import ssh_program
from launch.openssh.openssh_host import Logins, OpensshHost
from launch.slurm.slurm_host import SlurmHost
from launch.slurm.srun import environment, find_allocation


def make_hosts(pythons: Mapping[str, str], spec: Spec, closing: ExitStack) -> Dict[str, Host]:
    """Return a transport to each host: a direct one to this machine, otherwise by the key ``transport``.

    ``closing`` closes the resources that the hosts share.

    Raises:
      HostProblem: this process cannot use the transport.
    """
    hosts: Dict[str, Host] = {
        name: LocalHost(name, python, spec.before) for name, python in pythons.items() if spec.is_here(name)
    }
    away = {name: python for name, python in pythons.items() if name not in hosts}
    if away:
        ssh = _by_openssh if spec.ssh.transport == "openssh" else _by_fabric
        hosts.update((_by_slurm if spec.transport == "slurm" else ssh)(away, spec, closing))
    return {name: hosts[name] for name in pythons}


def _by_fabric(pythons: Mapping[str, str], spec: Spec, closing: ExitStack) -> Dict[str, Host]:
    from launch.remote.access import Access  # loading Fabric takes a second, which a local run saves
    from launch.remote.ssh_host import SshHost

    access = Access(spec.ssh)
    closing.callback(access.close)
    return {name: SshHost(name, python, access, spec.before) for name, python in pythons.items()}


def _by_openssh(pythons: Mapping[str, str], spec: Spec, closing: ExitStack) -> Dict[str, Host]:
    logins = Logins(spec.ssh, ssh_program.environment(os.environ, spec.secrets))
    closing.callback(logins.close)
    return {name: OpensshHost(name, python, logins, spec.before) for name, python in pythons.items()}


def _by_slurm(pythons: Mapping[str, str], spec: Spec, closing: ExitStack) -> Dict[str, Host]:
    allocation = find_allocation(os.environ)
    environ, ending = environment(os.environ, spec.secrets), EndingProcesses()
    closing.callback(ending.close)
    return {name: SlurmHost(name, python, allocation, environ, ending, spec.before) for name, python in pythons.items()}
