"""The target of a verb: a hosts file, the options that change its meaning, and the selected machines.

The launcher records on its machine the newest run with ``--local``, and the newest later run without it. So later verbs
need no option ``--local``.

WORKDIR/local/NAME.json     {"run": RUN, "later": RUN on the hosts of the file or null}
"""

import json
import shlex
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, ContextManager, Iterator, Mapping, NamedTuple, Optional, Tuple

from cluster.protocol.shared_files import replace_file
from cluster.spec import load
from cluster.spec.model import Spec
from launch.agent.linux.sockets import free_ports
from launch.agent.state import process_records
from launch.agent.state.run_folder import RunFolder, expand
from launch.errors import UsageError
from launch.fleet import Fleet
from launch.hostfile.selection import chosen, narrowed
from launch.hosts.bundle import JobCode, find_job, launcher_code
from launch.plan.local_spec import localised, other_pythons
from launch.plan.plan import pythons
from launch.signals import Interrupts
from launch.view.console import note


@dataclass(frozen=True)
class Target:
    """A hosts file as named on the command line, and the selected tasks of the file."""

    file: str
    local: Optional[bool] = None  # None: as for the newest run begun on this machine
    overrides: Tuple[str, ...] = ()
    include: Tuple[str, ...] = ()
    exclude: Tuple[str, ...] = ()
    run: Optional[str] = None  # None: the newest
    interrupts: Callable[[], Interrupts] = Interrupts  # makes what a fleet for this target heeds

    def __str__(self) -> str:
        """Return the target as a user types it for another verb about the same run."""
        selection = [
            word for flag in ("include", "exclude") for text in getattr(self, flag) for word in (f"--{flag}", text)
        ]
        return " ".join([*(["--local"] if self.local else []), *map(shlex.quote, [*selection, self.file])])

    @property
    def as_started(self) -> str:
        """Return the target as a user types it for another ``launch up`` with the same settings."""
        return " ".join([*(f"--set {shlex.quote(each)}" for each in self.overrides), str(self)])

    @property
    def selects(self) -> bool:
        """Return whether the target selects only some of the file's tasks."""
        return bool(self.include or self.exclude)

    def _loaded(self) -> Spec:
        return load(Path(self.file), self.overrides)

    def of_file(self) -> Spec:
        """Return the spec of the file's selected tasks, on the file's own hosts even with ``--local``."""
        return narrowed(self._loaded(), self.include, self.exclude)

    def spec(self) -> Spec:
        """Return the spec of a run before its start.

        With ``--local`` every task has a free port, and runs on the Python of ``--set python=``, else on the
        launcher's own.
        """
        spec = self.of_file()
        if not self.local:
            return spec
        tasks, hosts = len(spec.tasks), len(spec.hosts)
        ports = free_ports(tasks + hosts + 1)
        here = localised(spec, ports[:tasks], ports[tasks:-1], ports[-1])
        if any(word.startswith("python=") for word in self.overrides):
            return replace(here, python=spec.python)
        self._note_python(spec)
        return here

    def _note_python(self, spec: Spec) -> None:
        """Print that the tasks run on the launcher's Python, where the file names another."""
        others = other_pythons(spec, sys.executable)
        if others:
            note(
                f"--local: tasks run on the launcher's own Python, {sys.executable}; {self.file} names "
                f"{' and '.join(others)} for its hosts; --set python=PATH chooses another"
            )

    def job(self, spec: Spec) -> JobCode:
        """Return the code that the spec trains; for ``command:`` the folder of the hosts file."""
        beside = Path(self.file).resolve().parent
        code = JobCode(beside, "") if spec.job is None else find_job(spec.job, beside, spec.job_at)
        workdir = expand(spec.workdir).resolve()
        return replace(code, workdir=workdir.parent if spec.local else workdir)

    def reach(self) -> ContextManager[Fleet]:
        """Open the fleet of the file's hosts, for a verb about an existing run."""
        spec = self._of_existing_run(self.of_file())
        return self._fleet(spec, pythons(spec, sys.executable))

    def reach_hosts(self) -> ContextManager[Fleet]:
        """Open the fleet of the selected hosts, for a verb about hosts.

        The selected hosts need not suffice for a cluster.
        """
        spec = self._loaded()
        meant = {task.host for task in chosen(spec.tasks, self.include, self.exclude)}
        if not meant:
            raise UsageError("--include, --exclude: expected at least one host to be left, found none")
        spec = self._of_existing_run(spec)
        return self._fleet(spec, {host: own for host, own in pythons(spec, sys.executable).items() if host in meant})

    def _of_existing_run(self, spec: Spec) -> Spec:
        """Return the spec of an existing run: on this machine, if the run was begun with ``--local``.

        Where both a local and a remote run exist, the method prints which of the two it chose.
        """
        is_here = self.local
        if is_here is None:
            is_here = _is_newest_here(spec) if self.run is None else _folder_here(spec, self.run).is_dir()
        return localised(spec, [0] * len(spec.tasks)) if is_here else spec

    @contextmanager
    def _fleet(self, spec: Spec, hosts: Mapping[str, str]) -> Iterator[Fleet]:
        with self.interrupts() as interrupts, Fleet(spec, hosts, launcher_code(), interrupts, self.run) as fleet:
            yield fleet


def remember(spec: Spec, run: str) -> None:
    """Record that this machine has begun a run, on itself or on the hosts of the file."""
    file = _note_file(spec)
    with suppress(OSError):  # the run continues without a record; the next verb then needs --local
        if spec.local:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(file, json.dumps({"run": run, "later": None}))
        else:
            here = _noted(file).run
            if here is not None:
                replace_file(file, json.dumps({"run": here, "later": run}))


def _is_newest_here(spec: Spec) -> bool:
    """Return whether the newest run that this machine began runs on itself; ``spec`` is the file's spec."""
    run, later = _noted(_note_file(spec))
    if run is None or not _folder_here(spec, run).is_dir():
        return False
    if later is None:
        note(f"{run} is on this machine, started with --local; --no-local asks the hosts of the file")
    elif _is_up_here(spec, run):
        here = f"--local selects {run}, which is still up on this machine"
        note(f"this verb uses {later}, on the hosts of the file; {here}")
    return later is None


def _is_up_here(spec: Spec, run: str) -> bool:
    """Return whether an agent of the run lives on this machine."""
    workdir, hosts = expand(spec.local_workdir), (_folder_here(spec, run) / "hosts").glob("*")
    with suppress(OSError, ValueError, KeyError):  # a full disk may have left a damaged record
        return any(process_records.agent_of(RunFolder(workdir, run, host.name)) for host in hosts)
    return False


def _folder_here(spec: Spec, run: str) -> Path:
    """Return the folder of a run on this machine, if the run was begun with ``--local``."""
    return expand(spec.local_workdir) / "runs" / run


def _note_file(spec: Spec) -> Path:
    return expand(spec.local_workdir) / f"{spec.name}.json"


class _Begun(NamedTuple):
    """The newest run on this machine, and the newest later run on the hosts; None where no such run exists."""

    run: Optional[str]
    later: Optional[str]


def _noted(file: Path) -> _Begun:
    try:
        values = json.loads(file.read_text())
    except (OSError, ValueError):
        values = None
    found = values if isinstance(values, dict) else {}
    return _Begun(*(each if isinstance(each, str) else None for each in map(found.get, _Begun._fields)))
