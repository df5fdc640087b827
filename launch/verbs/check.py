"""``launch check``: find every obstacle to a run, without starting it."""

import secrets
import sys
from dataclasses import replace
from datetime import datetime, timezone

import click

from launch.check.findings import Evidence
from launch.check.interview import interview, requests
from launch.check.report import as_values, judge, lines
from launch.errors import FOUND_WRONG, SUCCEEDED
from launch.fleet import Fleet
from launch.hosts.bundle import launcher_code, with_folder
from launch.plan.plan import make_plan, run_name
from launch.signals import Interrupts
from launch.target import Target
from launch.verbs.options import JSON, tell, with_hosts_file

SECONDS = click.FloatRange(min=1)


@click.command()
@with_hosts_file
@JSON
@click.option(
    "--deadline-s",
    type=SECONDS,
    default=60.0,
    show_default=True,
    help="Seconds to wait; the report names slower hosts.",
)
def check(target: Target, as_json: bool, deadline_s: float) -> int:
    """Find every obstacle to a run of FILE; start nothing.

    Every host is checked at the same time. Each finding names the hosts, the problem and the next step.
    With findings, the exit code is 4.

    \b
    Example:  launch check hosts.yaml --deadline-s 30
    """
    spec = target.spec()
    hurried = replace(spec, ssh=replace(spec.ssh, connect_timeout_s=min(spec.ssh.connect_timeout_s, deadline_s / 2)))
    job = target.job(hurried)
    plan = make_plan(hurried, job, run_name(spec.name, datetime.now(timezone.utc)), sys.executable)
    words = secrets.token_hex(8), secrets.token_hex(8)
    code = launcher_code()
    with Interrupts() as interrupts, Fleet(hurried, plan.python, code, interrupts) as fleet:
        facts, problems = interview(fleet, requests(plan, words, deadline_s), deadline_s)
    verdict = judge(Evidence(facts, plan, problems, with_folder(code, job).hashes))
    tell(as_json, as_values(verdict), lines(verdict))
    return SUCCEEDED if verdict.ok else FOUND_WRONG
