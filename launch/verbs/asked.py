"""What every verb is asked with: a hosts file, and the options that change how it is read."""

import functools
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, Tuple

import click

from cluster.spec import load
from cluster.spec.model import Spec
from launch.agent.ports import free_ports
from launch.fleet import Fleet
from launch.interrupts import Interrupts
from launch.plan import localised, pythons
from launch.ship import JobCode, find_job, launcher_code

JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout and nothing else.")
_OPTIONS = (
    click.argument("file", metavar="FILE", type=click.Path()),
    click.option("--local", is_flag=True, help="Every task of FILE on this machine, on free ports, without SSH."),
    click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Override a key: train.steps=100."),
)


@dataclass(frozen=True)
class Asked:
    """A hosts file as the command line names it."""

    file: str
    local: bool = False
    overrides: Tuple[str, ...] = ()

    def spec(self) -> Spec:
        """The spec for a run that is to start; with ``--local`` every task has a free port."""
        spec = load(Path(self.file), self.overrides)
        return localised(spec, free_ports(len(spec.tasks))) if self.local else spec

    def job(self, spec: Spec) -> JobCode:
        """The code that the spec trains; for ``command:`` the folder of the hosts file."""
        beside = Path(self.file).resolve().parent
        return JobCode(beside, "") if spec.job is None else find_job(spec.job, beside)

    @contextmanager
    def reach(self) -> Iterator[Fleet]:
        """The hosts of the file, for a verb about a run that is there."""
        spec = load(Path(self.file), self.overrides)
        if self.local:
            spec = localised(spec, [0] * len(spec.tasks))
        hosts = pythons(spec, sys.executable)
        with Interrupts() as interrupts, Fleet(spec, hosts, launcher_code(), interrupts) as fleet:
            yield fleet


def with_hosts_file(verb: Callable[..., int]) -> Callable[..., int]:
    """Gives a verb FILE and the options about it, as its first argument: an ``Asked``."""

    @functools.wraps(verb)
    def called(file: str, local: bool, overrides: Tuple[str, ...], **options: Any) -> int:
        return verb(Asked(file, local, overrides), **options)

    for option in reversed(_OPTIONS):
        called = option(called)
    return called


def say(*lines: str) -> None:
    """Human lines on stdout."""
    for line in lines:
        click.echo(line)
