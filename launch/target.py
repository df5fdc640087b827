"""The target of a verb: a hosts file, and the options that change its reading."""

import shlex
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Iterator, Mapping, Optional, Tuple

import click

from cluster.spec import load
from cluster.spec.model import Spec
from launch.agent.linux.sockets import free_ports
from launch.agent.state.run_folder import expand
from launch.errors import UsageError
from launch.fleet import Fleet
from launch.history import remembered
from launch.hostfile.selection import chosen, narrowed
from launch.hosts.bundle import JobCode, find_job, launcher_code
from launch.plan.local_spec import localised, other_pythons
from launch.plan.plan import pythons
from launch.signals import Interrupts


@dataclass(frozen=True)
class Target:
    """A hosts file as the command line names it, and the part of it that is meant."""

    file: str
    local: Optional[bool] = None  # None: as the newest run that was begun from here
    overrides: Tuple[str, ...] = ()
    include: Tuple[str, ...] = ()
    exclude: Tuple[str, ...] = ()
    run: Optional[str] = None  # None: the newest

    def __str__(self) -> str:
        """Return the target as a user types it, for another verb about the same run."""
        selection = [
            word for flag in ("include", "exclude") for text in getattr(self, flag) for word in (f"--{flag}", text)
        ]
        return " ".join([*(["--local"] if self.local else []), *map(shlex.quote, [*selection, self.file])])

    @property
    def selects(self) -> bool:
        """Return whether the target means only some of the file's tasks."""
        return bool(self.include or self.exclude)

    def _loaded(self) -> Spec:
        return load(Path(self.file), self.overrides)

    def _narrowed(self) -> Spec:
        return narrowed(self._loaded(), self.include, self.exclude)

    def spec(self) -> Spec:
        """Return the spec of a run that is to start.

        With ``--local`` every task has a free port, and runs on the Python of ``--set python=``, else on the
        launcher's own.
        """
        spec = self._narrowed()
        if not self.local:
            return spec
        tasks, hosts = len(spec.tasks), len(spec.hosts)
        ports = free_ports(tasks + hosts)
        here = localised(spec, ports[:tasks], ports[tasks:])
        if any(word.startswith("python=") for word in self.overrides):
            return replace(here, python=spec.python)
        self._note_python(spec)
        return here

    def _note_python(self, spec: Spec) -> None:
        """Print that the tasks run on the launcher's Python, where the file names another."""
        others = other_pythons(spec, sys.executable)
        if others:
            click.echo(
                f"--local: tasks run on the launcher's own Python, {sys.executable}; {self.file} names "
                f"{' and '.join(others)} for its hosts; --set python=PATH chooses another",
                err=True,
            )

    def job(self, spec: Spec) -> JobCode:
        """Return the code that the spec trains; for ``command:`` the folder of the hosts file."""
        beside = Path(self.file).resolve().parent
        code = JobCode(beside, "") if spec.job is None else find_job(spec.job, beside, spec.job_at)
        workdir = expand(spec.workdir).resolve()
        return replace(code, workdir=workdir.parent if spec.local else workdir)

    @contextmanager
    def reach(self) -> Iterator[Fleet]:
        """Open the fleet of the file's hosts, for a verb about an existing run."""
        spec = self._narrowed()
        spec = _here(spec) if self._is_here(spec) else spec
        with self._fleet(spec, pythons(spec, sys.executable)) as fleet:
            yield fleet

    @contextmanager
    def reach_hosts(self) -> Iterator[Fleet]:
        """Open the fleet of the selected hosts, for a verb about hosts.

        The selected hosts need not suffice for a cluster.
        """
        spec = self._loaded()
        meant = {task.host for task in chosen(spec.tasks, self.include, self.exclude)}
        if not meant:
            raise UsageError("--include, --exclude: expected at least one host to be left, found none")
        spec = _here(spec) if self._is_here(spec) else spec
        hosts = {host: python for host, python in pythons(spec, sys.executable).items() if host in meant}
        with self._fleet(spec, hosts) as fleet:
            yield fleet

    def _is_here(self, spec: Spec) -> bool:
        """Return whether a verb about a run means this machine.

        This is so with ``--local``, or where the newest run, or the one that ``--run`` names, was begun with
        ``--local``. Where a run of either kind could be meant, this prints which one is.
        """
        if self.local is not None:
            return self.local
        if self.run is not None:
            return remembered.is_here(spec, self.run)
        newest = remembered.newest(spec)
        if newest.said is not None:
            click.echo(newest.said, err=True)
        return newest.local

    @contextmanager
    def _fleet(self, spec: Spec, hosts: Mapping[str, str]) -> Iterator[Fleet]:
        with Interrupts() as interrupts, Fleet(spec, hosts, launcher_code(), interrupts, self.run) as fleet:
            yield fleet


def _here(spec: Spec) -> Spec:
    return localised(spec, [0] * len(spec.tasks))
