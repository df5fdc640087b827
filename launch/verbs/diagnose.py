"""``launch diagnose``: collect evidence about a run in one archive."""

import os
import platform
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Optional

import click

from launch.diagnosis import summary
from launch.diagnosis.collect import gather
from launch.diagnosis.symptoms import Diagnosis, time_line_of
from launch.errors import SUCCEEDED, CannotStart
from launch.history import find_named
from launch.target import Target
from launch.verbs.options import JSON, OF_RUN, tell, with_hosts_file

DEADLINE_S = 60.0


@click.command()
@with_hosts_file
@JSON
@OF_RUN
@click.option(
    "-o", "--output", metavar="PATH", help="Path of the archive; default: diagnose-RUN.tar.gz in this folder."
)
@click.option(
    "--deadline-s", type=click.FloatRange(min=1), default=DEADLINE_S, show_default=True,
    help="Seconds to wait; the archive names the hosts with incomplete reports.",
)  # fmt: skip
def diagnose(target: Target, as_json: bool, output: Optional[str], deadline_s: float) -> int:
    """Collect evidence about the newest run of FILE in one archive.

    The archive has from every host: versions; the run's report, plan and state; the newest steps of the run's tasks;
    the ends of all logs; kernel messages; the stacks and connections of the run's processes; memory, disks and GPUs.
    The command also prints symptoms, the tasks that wait, and the tasks that they wait for.
    It changes nothing. Secrets stay on the hosts.

    \b
    Example:  launch diagnose hosts.yaml -o night.tar.gz
    """
    with target.reach_hosts() as fleet:
        if fleet.run is not None:
            with suppress(CannotStart):  # a silent host may know the run; the archive names the host
                find_named(fleet, fleet.run)
        hosts = gather(fleet, deadline_s)
        found = Diagnosis(fleet.spec.name, hosts, time_line_of(hosts, fleet.spec))
        unknown = [each for each in fleet.spec.secrets if each not in os.environ]
    path = Path(output or f"diagnose-{found.run or found.name}.tar.gz")
    launcher = {"python": sys.version, "platform": platform.platform(), "time": time.time(), "file": target.file}
    size = summary.pack(path, found, launcher)
    missing = (
        f"secrets: expected the values of {', '.join(unknown)} in this environment, found none; "
        "search the archive's logs for them before you share it"
    )
    lines = [*summary.spoken(found, str(path), size), *([missing] if unknown else [])]
    tell(as_json, summary.as_values(found, str(path), size), lines)
    return SUCCEEDED
