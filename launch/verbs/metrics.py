"""``launch metrics``: serve a run's status to Prometheus."""

from contextlib import suppress

import click

from launch.errors import SUCCEEDED, CannotStart
from launch.history import locate
from launch.monitoring.newest_state import LeadConnection, NewestAnswer
from launch.target import Target
from launch.verbs.options import OF_RUN, port_option, with_hosts_file
from launch.view.console import note, say


@click.command()
@with_hosts_file
@OF_RUN
@port_option(default=9476)
@click.option("--address", default="127.0.0.1", show_default=True, help="Address of this machine to listen on.")
def metrics(target: Target, port: int, address: str) -> int:
    """Serve the newest run's status to Prometheus, until Ctrl-C.

    When another run of FILE starts, the command serves that run's status, except with --run.

    \b
    Example:  launch metrics hosts.yaml --port 9476
    """
    from launch.monitoring.exporter import Exporter, RunCollector  # launch.cli has loaded it for this verb

    with target.reach() as fleet:
        with suppress(CannotStart):  # every scrape asks a silent host again
            locate(fleet)
        lead = LeadConnection(fleet)
        newest = NewestAnswer(lead.ask)
        collector = RunCollector(fleet.name, lead.name, newest.get, note)
        with Exporter(collector, address, port) as exporter:
            say(f"{fleet.name}: http://{address}:{exporter.port}/metrics (Ctrl-C ends it)")
            exporter.serve(over=lambda: bool(fleet.interrupts.received))
        newest.close()
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)
