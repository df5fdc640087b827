"""The command line: ``launch VERB hosts.yaml``. A verb's module is loaded when the verb is called."""

import difflib
import sys
from importlib import import_module
from typing import Any, Callable, Dict, List, Optional

import click
from click.shell_completion import CompletionItem

from cluster.errors import SpecError
from launch.agent.text import without_controls
from launch.errors import SUCCEEDED, USAGE, LaunchError
from launch.verbs import completion  # noqa: F401 (Click finds its script of Bash)

# Each verb with its summary, so that `launch -h` and the Tab key, which people wait for, load no verb.
VERBS = {
    "init": "Write a first job into the new folder NAME.",
    "up": "Train FILE, with a live view; the exit code is the run's.",
    "run": "Run PROGRAM as workers on hosts, without a hosts file.",
    "plan": "Show the tasks, their hosts and the traffic of a step.",
    "check": "Find every obstacle to a run of FILE; start nothing.",
    "setup": "Build the Python environment of FILE on every host.",
    "status": "Show the newest run: step, rate, loss, every task's state.",
    "runs": "List every run on the hosts of FILE, of any name, newest first.",
    "logs": "Print the task logs of the newest run, sorted by time.",
    "board": "Open TensorBoard on the newest run's summaries, until Ctrl-C.",
    "metrics": "Serve the newest run's status to Prometheus, until Ctrl-C.",
    "view": "Serve a live page of the newest run to a browser, until Ctrl-C.",
    "report": "Print a page about the newest run: one HTML file.",
    "export": "Write a SavedModel of the newest run into the new folder DIR.",
    "restart": "Restart tasks of a run in place.",
    "drain": "Take tasks out of a run that trains, or put them back.",
    "diagnose": "Collect evidence about the newest run of FILE in one archive.",
    "down": "End the newest run of FILE, and report leftovers per host.",
    "sweep": "Find leftovers of earlier runs on the hosts of FILE.",
    "prune": "Show past runs and code that exceed the bounds of the key keep.",
    "verify": "Train, and compare each step with one process, bit by bit.",
    "import": "Print a hosts file from the host list of MPI or a batch job.",
    "import tfjob": "Print a hosts file from a TFJob manifest of Kubernetes.",
    "manifest": "Print a TFJob manifest for the program of FILE.",
    "schema": "Print the JSON Schema of hosts files, for editors.",
    "grid": "Train once for each combination of values; name the best.",
    "completion": "Print a script for the shell's Tab key.",
}
# What `launch -h` prints: every verb, in a terminal of 80 columns and 24 lines with the command and the next prompt.
HELP = """\
Usage: launch VERB [FILE] [OPTIONS]     FILE is ./hosts.yaml where none is named
Start here
  init NAME        Write a first job into the new folder NAME.
  up               Train, with a live view: launch up hosts.yaml
  plan, check      Show tasks and traffic; find every obstacle to a run.
  setup, verify    Build the hosts' Python; compare each step with one process.
  run, grid        Run any program; train once for each combination of values.
Watch
  status           Show step, rate, loss and every task; --watch follows.
  logs             Print what the tasks have printed, by time; -f follows.
  view, report     Serve a live page; print it as one HTML file.
  board, metrics   Open TensorBoard; serve the status to Prometheus.
  runs, diagnose   List every run; collect evidence about one in an archive.
End
  down             End the run; name its checkpoint, and leftovers per host.
  restart, drain   Restart tasks in place; take tasks out, or put them back.
  export           Write a SavedModel into a new folder.
  sweep, prune     Find leftovers of earlier runs; remove past runs.
Move in
  import           Print a hosts file from MPI, a batch job or a TFJob (tfjob).
  manifest, schema, completion   Print a TFJob; a JSON Schema; a script for Tab.
launch VERB -h explains VERB, with an example; launch --version is the version.
"""
# Other words for verbs.
_MEANT = {
    "up": "start begin train launch fit go resume",
    "down": "stop kill end cancel delete quit abort",
    "status": "ps top watch show info progress state",
    "logs": "tail cat output",
    "runs": "ls list history",
    "init": "new create example tutorial",
    "prune": "clean clear remove rm gc",
    "board": "tensorboard",
    "check": "test ping doctor preflight",
    "setup": "install env",
}
# Modules that take a tenth of a second to load, most of them for drawing. Only these verbs need them; the Tab key does
# not.
_USED_BY = {
    "up": "launch.view.live_view",
    "run": "launch.view.live_view",
    "grid": "launch.view.live_view",
    "verify": "launch.view.live_view",
    "status": "launch.view.keyboard",
    "plan": "launch.plan.text_view",
    "setup": "launch.environments.builder",
    "metrics": "launch.monitoring.exporter",
}
# The modules of ``launch.verbs`` that have another name than their verbs.
_MODULES = {
    "drain": "task_changes",
    "import": "import_hosts",
    "import tfjob": "tfjob",
    "manifest": "tfjob",
    "report": "page",
    "run": "run_program",
    "restart": "task_changes",
    "schema": "init",
    "view": "page",
}


class Verbs(click.Group):
    """The group of all verbs, each loaded from its own module of ``launch.verbs``."""

    def list_commands(self, ctx: click.Context) -> List[str]:
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Optional[click.Command]:
        if cmd_name not in VERBS:
            return None
        if cmd_name in _USED_BY and not ctx.resilient_parsing:  # the Tab key parses resiliently
            import_module(_USED_BY[cmd_name])  # before Ctrl-C raises an exception
        return load(cmd_name)

    def resolve_command(self, ctx: click.Context, args: List[str]) -> Any:
        name = args[0]
        if " ".join(args[:2]) in VERBS:
            args = [" ".join(args[:2]), *args[2:]]
        elif name not in VERBS and not name.startswith("-"):
            raise click.UsageError(f"expected a verb, found '{name}'; {_advice(name, args[1:])}", ctx)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(HELP)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> List[CompletionItem]:
        verbs = [CompletionItem(name, help=VERBS[name]) for name in sorted(VERBS) if _is_typed(name, incomplete)]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)


def _advice(name: str, rest: List[str]) -> str:
    """Return the next step after a word that is no verb."""
    if name.endswith(".py"):
        return f"type `launch up` with a hosts file that names {name}, or `launch run -H localhost -- python {name}`"
    if name.endswith((".yaml", ".yml")):
        verb = next((word for word in rest if word in VERBS), "up")
        return f"type `launch {verb} {name}`"
    meant = [verb for verb, words in _MEANT.items() if name in words.split()]
    near = meant or difflib.get_close_matches(name, VERBS, 1)
    return f"did you mean {near[0]}?" if near else "see `launch -h`"


def _is_typed(name: str, incomplete: str) -> bool:
    """Return whether the Tab key may complete a word to this verb; False for a verb of two words."""
    return name.startswith(incomplete) and " " not in name


def module_of(name: str) -> str:
    """Return the dotted name of the module that has the verb ``name``."""
    return f"launch.verbs.{_MODULES.get(name, name)}"


def load(name: str) -> click.Command:
    """Return the command of the verb ``name``."""
    known = vars(import_module(module_of(name))).values()
    return next(each for each in known if isinstance(each, click.Command) and each.name == name)


def verbs() -> Dict[str, click.Command]:
    """Return all verbs by name, the most used first."""
    return {name: load(name) for name in VERBS}


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="launch-ps")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Start, watch and stop parameter-server training on one machine or many."""
    if ctx.obj:
        ctx.obj(ctx.invoked_subcommand or "")


def main(arguments: Optional[List[str]] = None, loaded: Callable[[str], None] = lambda verb: None) -> None:
    """Run a verb, and exit with its exit code; turn every error into a message and an exit code.

    Args:
      arguments: the arguments after the program's name; None for those of this process.
      loaded: a function to call with the verb, between loading its module and running it.
    """
    try:
        code = cli.main(args=arguments, prog_name="launch", standalone_mode=False, obj=loaded)
        sys.stdout.flush()  # here, where a failure is reported
    except SpecError as error:
        complain(str(error))
        code = USAGE
    except LaunchError as error:
        complain(str(error))
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = USAGE
    except click.Abort:  # Click raises it for a KeyboardInterrupt
        complain("interrupted by SIGINT")
        code = 130
    sys.exit(code or SUCCEEDED)


def complain(text: str) -> None:
    """Print an error's text on stderr, if the error has one."""
    if text:
        click.echo(without_controls(text), err=True)
