"""``launch report`` and ``launch view``: print the page of a run, or serve it live."""

import secrets
from typing import Any, Dict, List, Sequence, Tuple

import click

from cluster.protocol.quantity import quantity
from launch.errors import SUCCEEDED
from launch.fleet import AnyTask, Fleet
from launch.history import newest_status
from launch.logs.task_logs import print_logs, select
from launch.monitoring.newest_state import LeadConnection, NewestAnswer, newest_steps
from launch.monitoring.page_server import EVERY_S, LOGS_EVERY_S, STEPS_EVERY_S, PageServer, Repeated
from launch.page.run_page import clean, document, facts, lines_of_each
from launch.target import Target
from launch.verbs.options import OF_RUN, TASKS, port_option, with_hosts_file
from launch.view.console import note, say

ADDRESS = "127.0.0.1"  # only this one: the page has names of hosts and lines of logs
MOST_TASKS = 32  # with logs on the page, unless the user names more
PATIENCE_S = 30.0  # to wait for a host's answer


def chosen(fleet: Fleet, patterns: Sequence[str]) -> List[AnyTask]:
    """Return the tasks whose logs the page shows: the named tasks, else the chief and the first other tasks.

    Raises:
      UsageError: a pattern matches no task.
    """
    tasks = select(fleet.tasks, patterns)
    return tasks if patterns else sorted(tasks, key=_is_not_chief)[:MOST_TASKS]


def _is_not_chief(task: AnyTask) -> Tuple[bool, bool]:
    """Return a sort key that puts the chief first, or without a chief the first worker."""
    return task.role != "chief", (task.role, task.index) != ("worker", 0)


def last_lines(fleet: Fleet, tasks: Sequence[AnyTask], patience_s: float = PATIENCE_S) -> Dict[str, Any]:
    """Return {"lines": the last log lines of ``tasks`` by time, "missing": the reasons why lines are missing}."""
    lines: List[str] = []
    problems = print_logs(
        fleet, tasks, lambda line: lines.append(clean(line)), raw=True, tail=lines_of_each(len(tasks)),
        patience_s=patience_s,
    )  # fmt: skip
    missing = [f"{problem}" for problem in problems]
    left_out = len(fleet.tasks) - len(tasks)
    if left_out:
        missing.append(
            f"left out: the logs of {quantity(left_out, 'more task')}; name tasks after FILE to choose others"
        )
    return {"lines": lines, "missing": missing}


@click.command()
@with_hosts_file
@TASKS
@OF_RUN
def report(target: Target, patterns: Tuple[str, ...]) -> int:
    """Print a page about the newest run: one HTML file.

    The file needs no network and can be mailed. The page has the run's tasks, incidents, checkpoints and result. It
    also has the newest steps and the last log lines of TASK (worker:1, ps:* or a host), by default of at most 32 tasks.

    \b
    Example:  launch report hosts.yaml > run.html
    """
    with target.reach() as fleet:
        status = newest_status(fleet, str(target), warn=note)
        tasks = chosen(fleet, patterns)
        logs = last_lines(fleet, tasks)
        steps, silent = newest_steps(fleet, tasks, status)
        for line in dict.fromkeys([*logs["missing"], *map(str, silent)]):
            note(line)
        fleet.interrupts.check()
        click.echo(document(facts(status), logs, steps=steps), nl=False)
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)


@click.command()
@with_hosts_file
@TASKS
@OF_RUN
@port_option()
def view(target: Target, patterns: Tuple[str, ...], port: int) -> int:
    """Serve a live page of the newest run to a browser, until Ctrl-C.

    Open the printed address on this machine; its token keeps other users out. The page has the newest steps and the
    last log lines of TASK (worker:1, ps:* or a host), by default of at most 32 tasks.

    \b
    Example:  launch view hosts.yaml
    """
    from launch.monitoring.web_server import WebServer  # imported here: a report needs no server

    with target.reach() as fleet:
        status = newest_status(fleet, str(target), warn=note)
        tasks = chosen(fleet, patterns)
        newest, token = NewestAnswer(LeadConnection(fleet).ask), secrets.token_urlsafe(24)
        page = PageServer(
            status,
            token,
            newest.get,
            lambda: last_lines(fleet, tasks),
            lambda known: newest_steps(fleet, tasks, known)[0],
        )
        recorded = Repeated(
            [(page.record, EVERY_S), (page.logs.record, LOGS_EVERY_S), (page.steps.record, STEPS_EVERY_S)]
        )
        with WebServer(page, ADDRESS, port) as server, recorded:
            say(f"{status.run}: http://{ADDRESS}:{server.port}/{token}/ (Ctrl-C ends it)")
            server.serve(over=lambda: bool(fleet.interrupts.received))
        newest.close()
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)
