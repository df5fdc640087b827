"""``launch view``"""

import secrets
from typing import Tuple

import click

from launch.errors import SUCCEEDED
from launch.history import newest_status
from launch.logs.last_lines import chosen, last_lines
from launch.monitoring.newest_state import LeadConnection, NewestAnswer, newest_steps
from launch.monitoring.page_server import EVERY_S, LOGS_EVERY_S, STEPS_EVERY_S, PageServer, Repeated
from launch.monitoring.web_server import WebServer
from launch.target import Target
from launch.verbs.options import OF_RUN, TASKS, port_option, with_hosts_file
from launch.view.console import note, say

ADDRESS = "127.0.0.1"  # and no other: the page has names of hosts and lines of logs


@click.command()
@with_hosts_file
@TASKS
@OF_RUN
@port_option()
def view(target: Target, patterns: Tuple[str, ...], port: int) -> int:
    """Serve a live page of the newest run to a browser, until Ctrl-C.

    Open the printed address on this machine; its token keeps other users out. The page has the newest steps and the
    last lines of the logs of TASK (worker:1, ps:* or a host), by default of at most 32 tasks.

    \b
    Example:  launch view hosts.yaml
    """
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
            [(page.record, EVERY_S), (page.record_logs, LOGS_EVERY_S), (page.record_steps, STEPS_EVERY_S)]
        )
        with WebServer(page, ADDRESS, port) as server, recorded:
            say(f"{status.run}: http://{ADDRESS}:{server.port}/{token}/ (Ctrl-C ends it)")
            server.serve(over=lambda: bool(fleet.interrupts.received))
        newest.close()
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)
