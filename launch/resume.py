"""``up --resume``: the newest checkpoint that any host of the file holds, brought to the chief's host.

A host holds the checkpoints of runs whose chief was there, and copies of others'
(``train.checkpoint.replicas``). So a run goes on also when the file has another chief, other
hosts, or no longer the one that died.
"""

import secrets
import time
from contextlib import closing
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Sequence

from launch.channel import Channel, Noise, Silence
from launch.errors import CannotStart, HostProblem
from launch.fleet import Fleet
from launch.plan import Plan

HELD_S = 60.0  # for a host to look through its runs
QUIET_S = 120.0  # without a word from either side, a checkpoint does not move any more
LOOK_S = 0.2


class Held(NamedTuple):
    """The newest checkpoint that a host holds of a run; ``run`` None: of what lies in ``train.checkpoint.dir``."""

    host: str
    run: Optional[str]
    step: int
    bytes: int


def newest(held: Sequence[Held], lead: str) -> Optional[Held]:
    """The one to go on from: the newest step of the newest run that left any; of the same, the chief's host's own.

    An older run may have come further: it was given up when a newer one began without ``--resume``.
    """
    run = max((each.run for each in held if each.run is not None), default=None)
    eligible = [each for each in held if each.run in (None, run)]
    if not eligible:
        return None
    return max(eligible, key=lambda each: (each.step, each.host == lead, each.run is None))


def bring_newest(
    fleet: Fleet, plan: Plan, requests: Mapping[str, Dict[str, Any]], note: Callable[[str], None], needed: bool = True
) -> None:
    """Has the lead's request name the newest checkpoint, which is on the lead's host then.

    Where no host holds one and one is ``needed``, the lead's agent refuses to start and says so;
    otherwise the run begins at the beginning.

    Raises:
      CannotStart: a host cannot be asked, or the checkpoint does not arrive.
      Interrupted: a signal came.
    """
    directory = plan.spec.train.checkpoint.dir
    asked = {host: fleet.request(host, checkpoint_dir=directory) for host in plan.hosts}
    answers, problems = fleet.ask("held", asked, HELD_S)
    if problems:
        raise CannotStart(problems)
    found = newest([Held(host, **each) for host in plan.hosts for each in answers[host]["held"]], plan.lead)
    requests[plan.lead]["resume"] = needed or found is not None
    if found is None:
        return
    run = found.run
    if found.host != plan.lead:
        size = f"{found.bytes / 2**20:.1f} MiB"
        note(f"going on from the checkpoint of step {found.step} that {found.host} holds: {size} to {plan.lead}")
        _hand_over(fleet, plan, found)
        run = found.run if directory is None else None
    requests[plan.lead]["resume_from"] = {"run": run, "step": found.step}


def _hand_over(fleet: Fleet, plan: Plan, found: Held) -> None:
    checkpoint = plan.spec.train.checkpoint
    common = {
        "checkpoint_dir": checkpoint.dir, "keep": checkpoint.keep, "wanted": {"run": found.run, "step": found.step},
        "address": plan.control, "token": secrets.token_hex(16),
    }  # fmt: skip
    try:
        with closing(fleet.contact(plan.lead, "take", fleet.request(plan.lead, **common))) as taker:
            _hear(fleet, {plan.lead: taker}, "listening")
            with closing(fleet.contact(found.host, "give", fleet.request(found.host, **common))) as giver:
                _hear(fleet, {plan.lead: taker, found.host: giver}, "taken")
    except HostProblem as problem:
        raise CannotStart([problem]) from problem


def _hear(fleet: Fleet, channels: Mapping[str, Channel], word: str) -> None:
    """Listens to all until one says ``word``. Raises HostProblem."""
    heard_at, open_ones = time.monotonic(), dict(channels)
    while open_ones:
        fleet.interrupts.check()
        for host, channel in list(open_ones.items()):
            said = _said(host, channel)
            if said is None:
                del open_ones[host]
            elif said:
                heard_at = time.monotonic()
            if said and word in said:
                return
        if time.monotonic() - heard_at > QUIET_S:
            break
    hosts = " and ".join(channels)
    raise HostProblem(hosts, f"the checkpoint did not arrive: nothing heard for {QUIET_S:.0f} s, or an early end")


def _said(host: str, channel: Channel) -> Optional[Dict[str, Any]]:
    """What a host says next: {} for nothing yet, None for its end. Raises HostProblem."""
    try:
        said = channel.hear(LOOK_S)
    except Silence:
        return {}
    except (Noise, OSError) as error:
        raise HostProblem(host, f"while the checkpoint was brought: {error}") from error
    if said is not None and "error" in said:
        raise HostProblem(host, f"the checkpoint was not brought: {said['error']}")
    return said
