"""A run before its start: its plan, and the request to each agent.

Where the run's name is taken, the launcher names the run by the next second.
"""

import os
import platform
import pwd
import secrets
import sys
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Callable, Dict, NamedTuple, Optional, Sequence

from cluster.spec.model import Spec
from launch.agent.wire.run_request import RunRequest
from launch.hosts.bundle import Code, launcher_code, with_folder
from launch.plan.agent_requests import requests
from launch.plan.plan import Plan, make_plan, refuse_oversized, run_name
from launch.run.boot_returns import Fragile
from launch.run.hook_check import refuse_unusable
from launch.run.start import read_secrets
from launch.target import Target


class RunStart(NamedTuple):
    """The start of a run: its spec, and whether the run is to resume.

    ``needed``: a run that is to ``resume`` does not start without a checkpoint. ``source`` is the run whose checkpoint
    it resumes from; None for the newest. ``detach``: the launcher leaves the run once it is up.
    """

    spec: Spec
    resume: bool = False
    needed: bool = True
    source: Optional[str] = None
    detach: bool = False


@dataclass(frozen=True)
class Draft:
    """The draft of a run that would begin at ``begins``, which is part of its name."""

    plan: Plan
    requests: Dict[str, RunRequest] = field(repr=False)  # by host; they hold secrets
    code: Code = field(repr=False)
    begins: datetime
    at: Callable[[datetime], "Draft"] = field(repr=False)  # the same run, should it begin then
    fragile: Sequence[Fragile] = ()  # hosts whose reboot ends it, once the launcher has left it

    def a_second_later(self) -> "Draft":
        """Return the same run under the name of the next second."""
        return self.at(self.begins + timedelta(seconds=1))


def draft(target: Target, start: RunStart, begins: datetime) -> Draft:
    """Return the draft of a run.

    Raises:
      LaunchError: the job or a secret is missing, a secret makes no URL of a hook, or the cluster is too large to be
        described to a process.
    """
    spec, job = start.spec, target.job(start.spec)
    code = with_folder(launcher_code(), job)
    token, values = secrets.token_hex(16), read_secrets(spec, os.environ)
    refuse_unusable(spec, values)

    def at(begins: datetime) -> Draft:
        plan = make_plan(spec, job, run_name(spec.name, begins), sys.executable)
        asked = requests(plan, code, token, values, start.resume, str(target), user(), start.detach)
        return Draft(plan, asked, code, begins, at)

    first = at(begins)
    refuse_oversized(first.plan)
    return first


def user() -> str:
    """Return ``anna@desk7``: the user of this process, and the name of this machine."""
    number = os.getuid()
    try:
        name = pwd.getpwuid(number).pw_name
    except KeyError:  # as in a container
        name = f"uid{number}"
    return f"{name}@{platform.node()}"
