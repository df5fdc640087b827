"""The command line: ``launch VERB hosts.yaml``."""

import json
import os
import secrets
import sys
import time
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple

import click

from cluster.errors import SpecError
from cluster.spec import load
from cluster.spec.model import Spec
from launch import display, report
from launch.agent.ports import free_ports
from launch.down import as_values, look_and_take_down, take_down, told
from launch.errors import FOUND_WRONG, SUCCEEDED, USAGE, CannotStart, LaunchError, UsageError
from launch.fleet import Fleet
from launch.interrupts import Interrupts
from launch.logs import print_logs, select
from launch.placement import describe
from launch.plan import localised, make_plan, pythons, requests, run_name, shown
from launch.ship import JobCode, find_job, launcher_code, with_folder
from launch.start import read_secrets, start_agents
from launch.watch import Watch

HOSTS_FILE = click.argument("file", metavar="FILE", type=click.Path())
SET = click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Override a key: train.steps=100.")
LOCAL = click.option("--local", is_flag=True, help="Every task of FILE on this machine, on free ports, without SSH.")
JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout and nothing else.")
STATUS_S = 30.0
TAIL = 15  # lines of the failed task's log that `up` shows


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="launch-ps")
def cli() -> None:
    """Starts, watches and stops parameter-server training on one machine or many.

    \b
    launch up hosts.yaml            train, with a live view, until it is done
    launch plan hosts.yaml          what would run where
    launch up -d hosts.yaml         start and come back
    launch status hosts.yaml        how far it is
    launch logs -f hosts.yaml       what the tasks print
    launch down hosts.yaml          end it
    """


@cli.command()
@HOSTS_FILE
@click.option("-d", "--detach", is_flag=True, help="Return once every task is up; the run goes on.")
@LOCAL
@click.option("--resume", is_flag=True, help="Go on from the last checkpoint.")
@SET
def up(file: str, detach: bool, local: bool, resume: bool, overrides: Tuple[str, ...]) -> int:
    """Trains what FILE describes; the exit code is the run's.

    Ships the code, starts every task, shows progress, waits, tears down. Ctrl-C stops the
    run in order, a second one kills it.

    \b
    Example:  launch up hosts.yaml --set train.steps=100
    """
    began = time.monotonic()
    spec, job = read(file, overrides, local)
    plan = make_plan(spec, job, run_name(spec.name, datetime.now()), sys.executable)
    code = with_folder(launcher_code(), job)
    asked = requests(plan, code, secrets.token_hex(16), read_secrets(spec, os.environ), resume)
    with Interrupts() as interrupts, Fleet(spec, plan.python, code, interrupts) as fleet:
        with display.for_terminal() as view:
            view.note(f"{plan.run}: {len(plan.tasks)} tasks on {display.fold(plan.hosts)}")
            fleet.connect()
            start_agents(fleet, asked)
            status = Watch(fleet, plan, view, interrupts, detach).follow()
        if status["state"] == "running":
            say(*report.detached(plan.run, file, local))
            return SUCCEEDED
        left = take_down(fleet, asked, reason="the run is over", heed=False)
        show_log_of_culprit(fleet, status)
        say(*([] if left.clean else told(left)), *report.ending(status, time.monotonic() - began))
        return report.exit_code(status, interrupts.received)


@cli.command()
@HOSTS_FILE
@LOCAL
@JSON
@SET
@click.option(
    "--nic-gbps", type=click.FloatRange(min=0, min_open=True), default=10.0, help="Speed of a host's network card."
)
def plan(file: str, local: bool, as_json: bool, overrides: Tuple[str, ...], nic_gbps: float) -> int:
    """Shows what would run where, and what a step moves; starts nothing and reaches no host.

    \b
    Example:  launch plan hosts.yaml --nic-gbps 25
    """
    spec, job = read(file, overrides, local)
    planned = make_plan(spec, job, run_name(spec.name, datetime.now()), sys.executable)
    values = shown(planned, with_folder(launcher_code(), job))
    values.update(describe(planned, job, sys.executable, nic_gbps))
    if as_json:
        click.echo(json.dumps(values))
    else:
        display.print_plan(values)
    return SUCCEEDED


@cli.command()
@HOSTS_FILE
@LOCAL
@JSON
@SET
def status(file: str, local: bool, as_json: bool, overrides: Tuple[str, ...]) -> int:
    """Shows the newest run of FILE: its step, rate and loss, and every task's state.

    \b
    Example:  launch status hosts.yaml
    """
    with reach(file, overrides, local) as fleet:
        lead = next(iter(fleet.hosts))
        answers, problems = fleet.ask("status", {lead: fleet.request(lead)}, STATUS_S)
        if problems:
            raise CannotStart(problems)
    found = answers[lead]["status"]
    if found is None:
        raise UsageError(f"{file}: no run of this name has been on {lead}; start one with `launch up {file}`")
    if as_json:
        click.echo(json.dumps(found))
    else:
        display.print_status(found)
    return SUCCEEDED


@cli.command()
@HOSTS_FILE
@click.argument("patterns", metavar="[TASK]...", nargs=-1)
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines until the run is over.")
@LOCAL
@SET
def logs(file: str, patterns: Tuple[str, ...], follow: bool, local: bool, overrides: Tuple[str, ...]) -> int:
    """Prints the task logs of the newest run. TASK is worker:1, ps:* or a host.

    \b
    Example:  launch logs -f hosts.yaml worker:0 ps:*
    """
    with reach(file, overrides, local) as fleet:
        problems = print_logs(fleet, select(fleet.spec, patterns), click.echo, follow=follow)
        if problems:
            raise CannotStart(problems)
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)


@cli.command()
@HOSTS_FILE
@LOCAL
@JSON
@SET
def down(file: str, local: bool, as_json: bool, overrides: Tuple[str, ...]) -> int:
    """Ends the newest run of FILE, workers before ps, and tells per host what is left.

    \b
    Example:  launch down hosts.yaml
    """
    with reach(file, overrides, local) as fleet:
        left = look_and_take_down(fleet, reason="launch down")
    if as_json:
        click.echo(json.dumps(as_values(left)))
    else:
        say(*told(left))
    return SUCCEEDED if left.clean else FOUND_WRONG


# -- what the verbs share


def read(file: str, overrides: Sequence[str], local: bool) -> Tuple[Spec, JobCode]:
    """The spec of a hosts file and the code it trains, both checked."""
    spec = load(Path(file), overrides)
    beside = Path(file).resolve().parent
    job = JobCode(beside, "") if spec.job is None else find_job(spec.job, beside)
    return (localised(spec, free_ports(len(spec.tasks))) if local else spec), job


@contextmanager
def reach(file: str, overrides: Sequence[str], local: bool) -> Iterator[Fleet]:
    """The hosts of a file, for a verb about a run that is there."""
    spec = load(Path(file), overrides)
    if local:
        spec = localised(spec, [0] * len(spec.tasks))
    hosts = pythons(spec, sys.executable)
    with Interrupts() as interrupts, Fleet(spec, hosts, launcher_code(), interrupts) as fleet:
        yield fleet


def show_log_of_culprit(fleet: Fleet, status: Mapping[str, Any]) -> None:
    """The last lines of the task that the run's cause names."""
    task = report.culprit(status)
    if task is not None:
        say(f"last lines of {task['host']}:{task['log']}")
        print_logs(
            fleet, select(fleet.spec, [f"{task['role']}:{task['index']}"]), lambda line: say("  " + line), tail=TAIL
        )


def say(*lines: str) -> None:
    """Human lines on stdout."""
    for line in lines:
        click.echo(line)


def main(arguments: Optional[List[str]] = None) -> None:
    """Runs a verb; every error becomes its message and its exit code."""
    try:
        code = cli.main(args=arguments, prog_name="launch", standalone_mode=False)
    except SpecError as error:
        complain(str(error))
        code = USAGE
    except LaunchError as error:
        complain(str(error))
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = USAGE
    except click.Abort:
        code = 130
    sys.exit(code or SUCCEEDED)


def complain(text: str) -> None:
    """An error's text, on stderr."""
    click.echo(text, err=True)
