"""``launch status``: show the state of a run."""

import json
from typing import Any, List

import click

from cluster.protocol.typed_json import to_values
from launch.errors import SUCCEEDED, UsageError
from launch.fleet import Fleet
from launch.history import newest_status
from launch.hosts.conversation import Conversation
from launch.logs.task_logs import print_logs
from launch.run.follower import Follower
from launch.status.run import ENDED, RunStatus
from launch.status.task import TaskStatus
from launch.target import Target
from launch.verbs.options import JSON, OF_RUN, with_hosts_file
from launch.view.console import note, say

LOG_S = 8.0  # for a host to send the lines of a log that a viewer reads


class Watcher(Follower):
    """A follower of a run in a terminal, which reacts to the viewer's keys.

    Args:
      view: a ``WatchView``.
    """

    def __init__(self, fleet: Fleet, status: RunStatus, view: Any):
        super().__init__(fleet, status, view)
        self._keys = view

    def follow(self) -> RunStatus:
        """Follow the run until it ends, or until a key or a signal ends the view. Raises HostProblem."""
        with self._fleet.interrupts.pausable():
            return super().follow()

    def is_unwanted(self) -> bool:
        """Return whether the viewer, or a signal, has ended the view."""
        return bool(self._keys.watch.ends) or super().is_unwanted()

    def relay(self, lead: Conversation) -> None:
        """Fetch the lines of the log that the viewer reads; after a Ctrl-Z, restore the terminal and pause."""
        if self._fleet.interrupts.pause_asked:
            with self._keys.hidden():
                self._fleet.interrupts.pause()
        self._keys.attend(self._log_of)

    def _log_of(self, task: TaskStatus, most: int) -> List[str]:
        lines: List[str] = []
        problems = print_logs(self._fleet, [task], lines.append, raw=True, tail=most, patience_s=LOG_S)
        return [*lines, *map(str, problems)] or [f"{task.title} has printed nothing yet"]


@click.command()
@with_hosts_file
@JSON
@OF_RUN
@click.option(
    "--watch", "-w", is_flag=True, help="Show every change until the run ends; ? lists the keys. q and Ctrl-C end "
    "only this command.",
)  # fmt: skip
@click.option("--wide", is_flag=True, help="Show every task and every column, however long a line becomes.")
def status(target: Target, as_json: bool, watch: bool, wide: bool) -> int:
    """Show the newest run: step, rate, loss, every task's state.

    The table marks slow workers.

    \b
    Example:  launch status --watch hosts.yaml
    """
    from launch.view import keyboard, live_view  # launch.cli has loaded them; the Tab key does not need them

    if watch and as_json:
        raise UsageError("--watch: expected no --json, found both; leave one of the two out")
    with target.reach() as fleet:
        found = newest_status(fleet, str(target), warn=note)
        if watch and found.state not in ENDED:
            keys = keyboard.view_with_keys()
            with keys or live_view.for_terminal() as view:
                found = (Follower if keys is None else Watcher)(fleet, found, view).follow()
            say(*([f"cause: {found.cause}"] if found.cause else []))
        elif as_json:
            click.echo(json.dumps(to_values(found)))
        else:
            live_view.print_status(found, wide)
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)
