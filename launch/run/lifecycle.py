"""A run that this launcher starts and follows: from its plan to its report."""

import os
import secrets
import sys
from datetime import datetime, timedelta, timezone
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from launch.agent.wire.run_request import RunRequest
from launch.errors import SUCCEEDED
from launch.fleet import Fleet
from launch.history import generation
from launch.history.remembered import remember
from launch.hosts.bundle import launcher_code, with_folder
from launch.logs.reader import print_log_of_culprit
from launch.plan.agent_requests import requests
from launch.plan.plan import Plan, make_plan, refuse_oversized, run_name
from launch.run.agent_restarts import Revival
from launch.run.attached import Watch
from launch.run.failover import Beginning, successor
from launch.run.resume import bring_newest
from launch.run.start import advising, read_secrets, start_agents
from launch.signals import Interrupts
from launch.status.run import RunStatus
from launch.target import Target
from launch.teardown.down import take_down, told
from launch.view import live_view, report
from launch.view.console import fold, say

Ending = Callable[[RunStatus], List[str]]  # the last lines of a run, from its status


class Ended(NamedTuple):
    """How a run ended, or was left.

    Attributes:
      code: the launcher's exit code.
      status: the run's last one.
      follows: the run that begins where the chief's host was lost, else None.
    """

    code: int
    status: RunStatus
    follows: Optional[Beginning] = None


def attend(target: Target, beginning: Beginning, interrupts: Interrupts, ending: Ending, detach: bool = False) -> Ended:
    """Start a run, follow it to its end or until it is up, take it down, and print how it ended.

    Raises:
      LaunchError: it cannot start.
    """
    spec = beginning.spec
    job = target.job(spec)
    code = with_folder(launcher_code(), job)
    token, values = secrets.token_hex(16), read_secrets(spec, os.environ)

    def planned(begins: datetime) -> Tuple[Plan, Dict[str, RunRequest]]:
        run = make_plan(spec, job, run_name(spec.name, begins), sys.executable)
        return run, requests(run, code, token, values, beginning.resume, str(target))

    begins = datetime.now(timezone.utc)
    run, wanted = planned(begins)
    refuse_oversized(run)
    with Fleet(spec, run.python, code, interrupts) as fleet:
        with live_view.for_terminal() as view:
            view.note(f"{run.run}: {len(run.tasks)} tasks on {fold(run.hosts)}")
            with advising(f"launch check {target}"):
                fleet.connect()
                numbered = generation.number(fleet, wanted)
                while not numbered.is_free:  # a run that began in this second has the name
                    begins += timedelta(seconds=1)
                    run, wanted = planned(begins)
                    view.note(f"its name is {run.run}, as one began in the same second")
                    numbered = generation.number(fleet, wanted)
                wanted = numbered.requests
                if beginning.resume:
                    wanted = bring_newest(fleet, run, wanted, view.note, beginning.needed)
                for line in start_agents(fleet, wanted):
                    view.note(line)
                remember(spec, run.run, local=bool(target.local))
            watch = Watch(fleet, run, view, interrupts, Revival(fleet, wanted), detach)
            ended = watch.follow()
        if ended.state == "running":
            say(*report.detached(run.run, str(target)))
            return Ended(SUCCEEDED, ended)
        mine = {host: fleet.request(host, run=run.run) for host in wanted}
        left = take_down(fleet, mine, reason="the run is over", heed=False)
        print_log_of_culprit(fleet, ended, say)
        say(*([] if left.clean else told(left)), *ending(ended))
        follows = successor(spec, watch.lead_lost_at, [problem.host for problem in left.problems], interrupts, say)
        return Ended(report.exit_code(ended, interrupts.received), ended, follows)
