"""The command line: ``launch VERB hosts.yaml``."""

import os
import secrets
import sys
import time
from datetime import datetime
from typing import List, Optional, Tuple

import click

from cluster.errors import SpecError
from launch import display, report
from launch.down import take_down, told
from launch.errors import SUCCEEDED, USAGE, LaunchError
from launch.fleet import Fleet
from launch.interrupts import Interrupts
from launch.logs import print_log_of_culprit
from launch.plan import make_plan, refuse_oversized, requests, run_name
from launch.resume import bring_newest
from launch.revive import Revival
from launch.ship import launcher_code, with_folder
from launch.start import advising, read_secrets, start_agents
from launch.succession import Beginning, successor
from launch.verbs.asked import Asked, say, with_hosts_file
from launch.verbs.board import board
from launch.verbs.check import check
from launch.verbs.completion import completion
from launch.verbs.diagnose import diagnose
from launch.verbs.down import down
from launch.verbs.importing import import_hosts
from launch.verbs.logs import logs
from launch.verbs.metrics import metrics
from launch.verbs.plan import plan
from launch.verbs.restart import restart
from launch.verbs.setup import setup
from launch.verbs.status import status
from launch.verbs.sweep import sweep
from launch.watch import Watch


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="launch-ps")
def cli() -> None:
    """Starts, watches and stops parameter-server training on one machine or many.

    \b
    launch up hosts.yaml            train, with a live view, until it is done
    launch plan hosts.yaml          what would run where
    launch check hosts.yaml         what would keep it from training, on every host
    launch setup hosts.yaml         build the hosts' Python environment
    launch up -d hosts.yaml         start and come back
    launch status hosts.yaml        how far it is
    launch logs -f hosts.yaml       what the tasks print
    launch board hosts.yaml         its curves, in TensorBoard
    launch metrics hosts.yaml       its state, for Prometheus
    launch restart hosts.yaml ps:0  one task anew, in place
    launch diagnose hosts.yaml      all that says why it is as it is, in one archive
    launch down hosts.yaml          end it
    launch sweep hosts.yaml         what earlier runs left
    """


@cli.command()
@with_hosts_file
@click.option("-d", "--detach", is_flag=True, help="Return once every task is up; the run goes on.")
@click.option("--resume", is_flag=True, help="Go on from the newest checkpoint that a host of FILE holds.")
def up(asked: Asked, detach: bool, resume: bool) -> int:
    """Trains what FILE describes; the exit code is the run's.

    Ships the code, starts every task, shows progress, waits, tears down. Ctrl-C stops the
    run in order, a second one kills it.

    \b
    Example:  launch up hosts.yaml --set train.steps=100
    """
    began = time.monotonic()
    follows: Optional[Beginning] = Beginning(asked.spec(), resume)
    with Interrupts() as interrupts:
        while follows is not None:
            code, follows = _train(asked, follows, detach, interrupts, began)
    return code


def _train(
    asked: Asked, beginning: Beginning, detach: bool, interrupts: Interrupts, began: float
) -> Tuple[int, Optional[Beginning]]:
    """One run, from its plan to its report: its exit code, and what follows where its chief's host was lost."""
    spec = beginning.spec
    job = asked.job(spec)
    run = make_plan(spec, job, run_name(spec.name, datetime.now()), sys.executable)
    refuse_oversized(run)
    code = with_folder(launcher_code(), job)
    wanted = requests(run, code, secrets.token_hex(16), read_secrets(spec, os.environ), beginning.resume)
    with Fleet(spec, run.python, code, interrupts) as fleet:
        with display.for_terminal() as view:
            view.note(f"{run.run}: {len(run.tasks)} tasks on {display.fold(run.hosts)}")
            with advising(f"launch check {asked}"):
                fleet.connect()
                if beginning.resume:
                    bring_newest(fleet, run, wanted, view.note, beginning.needed)
                start_agents(fleet, wanted)
            watch = Watch(fleet, run, view, interrupts, Revival(fleet, wanted), detach)
            ended = watch.follow()
        if ended["state"] == "running":
            say(*report.detached(run.run, str(asked)))
            return SUCCEEDED, None
        left = take_down(fleet, wanted, reason="the run is over", heed=False)
        print_log_of_culprit(fleet, ended, say)
        say(*([] if left.clean else told(left)), *report.ending(ended, time.monotonic() - began))
        follows = successor(spec, watch.lead_lost_at, [problem.host for problem in left.problems], interrupts, say)
        return report.exit_code(ended, interrupts.received), follows


for verb in (
    plan,
    check,
    setup,
    status,
    logs,
    board,
    metrics,
    restart,
    diagnose,
    down,
    sweep,
    import_hosts,
    completion,
):
    cli.add_command(verb)


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
