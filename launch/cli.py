"""The command line: ``launch VERB hosts.yaml``."""

import sys
from typing import List, Optional

import click

from cluster.errors import SpecError
from launch.agent.text.plain_text import without_controls
from launch.errors import SUCCEEDED, USAGE, LaunchError
from launch.verbs.board import board
from launch.verbs.check import check
from launch.verbs.completion import completion
from launch.verbs.diagnose import diagnose
from launch.verbs.down import down
from launch.verbs.import_hosts import import_hosts
from launch.verbs.logs import logs
from launch.verbs.metrics import metrics
from launch.verbs.plan import plan
from launch.verbs.restart import restart
from launch.verbs.setup import setup
from launch.verbs.status import status
from launch.verbs.sweep import sweep
from launch.verbs.up import up
from launch.verbs.verify import verify


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="launch-ps")
def cli() -> None:
    """Start, watch and stop parameter-server training on one machine or many.

    \b
    Example:  launch check hosts.yaml     find every obstacle; start nothing
              launch up hosts.yaml        train, with a live view
              launch logs -f hosts.yaml   follow the tasks' logs
              launch status hosts.yaml    show step, rate and loss
              launch down hosts.yaml      end the run
    """


for verb in (
    up,
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
    verify,
    import_hosts,
    completion,
):
    cli.add_command(verb)


def main(arguments: Optional[List[str]] = None) -> None:
    """Run a verb, and turn every error into its message and its exit code."""
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
    except click.Abort:  # of a KeyboardInterrupt
        complain("interrupted by SIGINT")
        code = 130
    sys.exit(code or SUCCEEDED)


def complain(text: str) -> None:
    """Print an error's text on stderr."""
    click.echo(without_controls(text), err=True)
