"""Slurm's daemons on fake hosts, and batch jobs in them."""

import time
from typing import List, Sequence

from tests.support.hosts import FakeHosts, Host, HostError
from tests.support.hosts.boot import wait
from tests.support.waiting import PATIENCE_S, eventually

_CONF = """\
ClusterName=fake
SlurmctldHost={control}({address})
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
StateSaveLocation=/var/lib/fake-slurmctld
SlurmdSpoolDir=/var/lib/fake-slurmd
SlurmctldLogFile=/var/log/fake-slurmctld.log
SlurmdLogFile=/var/log/fake-slurmd.log
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
MailProg=/bin/true
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
KillWait=5
MessageTimeout=60
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
_CGROUP = "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/run/cgroup\n"  # loaded, and not used
_NODE = "NodeName={name} NodeAddr={address} CPUs=2 State=UNKNOWN\n"
_KEY = "/etc/munge/fake.key"
# munged refuses folders that another user may write, and this key's owner, unless it is forced.
_PREPARE = (
    f"mkdir -p /run/munge /var/lib/fake-slurmd && munged --force --key-file={_KEY} --socket=/run/munge/munge.socket.2"
)
_OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")


class Slurm:
    """One cluster; the first host has its controller, and all hosts are its nodes. It ends with the hosts."""

    def __init__(self, hosts: FakeHosts):
        self.hosts, self.control = hosts, hosts[0]
        nodes = "".join(_NODE.format(name=host.name, address=host.address) for host in hosts)
        conf = _CONF.format(control=self.control.name, address=self.control.address) + nodes
        for host in hosts:
            host.write(_KEY, "not a secret, on hosts that end with a test", 0o400)
            host.write("/etc/slurm/slurm.conf", conf)
            host.write("/etc/slurm/cgroup.conf", _CGROUP)
            must(host, ["sh", "-c", _PREPARE])
        must(self.control, ["slurmctld"])
        for host in hosts:
            must(host, ["slurmd"])
        wait(self._idle, time.monotonic() + PATIENCE_S, lambda: self.control.run(["sinfo"]).stdout)

    def _idle(self) -> bool:
        states = self.control.run(["sinfo", "--noheader", "--Node", "--format=%T"]).stdout.split()
        return states == ["idle"] * len(self.hosts)

    def submit(self, script: str, *options: str) -> "Job":
        """Submit a batch script on all nodes."""
        words = ["sbatch", "--parsable", f"--nodes={len(self.hosts)}", "--output=/root/%j.out", *options]
        number = must(self.control, words, stdin=f"#!/bin/bash\n{script}\n").strip()
        return Job(self, number)

    def cancel_all(self) -> None:
        """End all jobs, and return when they are gone."""
        must(self.control, ["scancel", "--user=root"])
        eventually("the end of all jobs", lambda: not must(self.control, ["squeue", "--noheader"]))

    def steps(self) -> List[str]:
        """The steps that run now, but for batch scripts."""
        listed = must(self.control, ["squeue", "--steps", "--noheader", "--format=%i"]).split()
        return [step for step in listed if not step.endswith((".batch", ".extern"))]


class Job:
    """One batch job."""

    def __init__(self, slurm: Slurm, number: str):
        self._control, self.number = slurm.control, number

    def field(self, name: str) -> str:
        """What ``scontrol show job`` has for a field, as ``ExitCode``."""
        shown = must(self._control, ["scontrol", "--oneliner", "show", "job", self.number])
        return next(word.partition("=")[2] for word in shown.split() if word.startswith(f"{name}="))

    def output(self) -> str:
        """What the script has printed so far."""
        return self._control.run(["cat", f"/root/{self.number}.out"]).stdout

    def ended(self) -> str:
        """The job's last state, once it has one."""
        return str(eventually(f"the end of the job; {self.output()}", self._over))

    def _over(self) -> str:
        state = self.field("JobState")
        return state if state in _OVER else ""


def must(host: Host, argv: Sequence[str], stdin: str = "") -> str:
    """What a command on a host prints. Raises HostError where it fails."""
    done = host.run(argv, timeout_s=PATIENCE_S, stdin=stdin)
    if done.returncode:
        raise HostError(f"{host.name}: `{' '.join(argv)}`: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout
