"""Starting a run's agents, and taking a start back that did not succeed everywhere."""

from contextlib import contextmanager
from typing import Any, Dict, Iterator, Mapping

from cluster.spec.model import Spec
from launch.down import take_down
from launch.errors import CannotStart, HostProblem
from launch.fleet import Fleet

START_S = 90.0


def read_secrets(spec: Spec, environ: Mapping[str, str]) -> Dict[str, str]:
    """The values of ``secrets:`` from this process's environment.

    Raises:
      CannotStart: one of them is not set.
    """
    missing = [name for name in spec.secrets if name not in environ]
    if missing:
        raise CannotStart(
            [HostProblem("this machine", f"the secret {name} is not set; export it first") for name in missing]
        )
    return {name: environ[name] for name in spec.secrets}


@contextmanager
def advising(check: str) -> Iterator[None]:
    """What cannot start within this block names ``check``, the command that finds all that is in its way."""
    try:
        yield
    except CannotStart as error:
        raise CannotStart(error.problems, f"see all that is in the way with `{check}`") from error


def start_agents(fleet: Fleet, requests: Mapping[str, Dict[str, Any]]) -> None:
    """Starts an agent on every host; on a failure or a signal, none is left.

    Raises:
      CannotStart: names every host whose agent did not get ready, and why.
      Interrupted: a signal came.
    """
    # Not interrupted half way: an agent that is just starting could not be taken back.
    started, problems = fleet.ask("start", requests, START_S, heed=False)
    if problems or fleet.interrupts.received:
        take_down(fleet, {host: requests[host] for host in started}, reason="the start was taken back", heed=False)
    fleet.interrupts.check()
    if problems:
        raise CannotStart(problems)
