"""``up --resume``: copy the newest checkpoint on any host of the file to the chief's host.

A host holds the checkpoints of runs whose chief was there, and copies of the checkpoints of other runs
(``train.checkpoint.replicas``). So a run can also continue when the file has another chief or other hosts, or no longer
names the host that died.
"""

import json
import secrets
import time
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from cluster.protocol.typed_json import Malformed, from_values
from cluster.spec.model import Spec
from launch.agent.state.run_folder import name_of
from launch.agent.wire.run_request import RunRequest, Wanted
from launch.agent.wire.verb_requests import HandoverRequest, HeldRequest
from launch.errors import CannotStart, HostProblem, ProblemKind, UsageError
from launch.fleet import Fleet
from launch.history import find_named
from launch.hosts.channel import Silence
from launch.hosts.conversation import Conversation
from launch.plan.agent_requests import peers
from launch.plan.plan import Plan
from launch.status.run import RunRecord
from launch.status.run_history import RunHistory
from launch.view.console import cut, fold
from launch.view.differences import between, in_words

HELD_S = 60.0  # for a host to look through its runs
QUIET_S = 120.0  # after this time without a line from either host, the transfer has failed
LOOK_S = 0.2
MOST_KEYS = 8  # in the line about settings that differ
LONGEST = 40  # characters of a value in that line


class Held(NamedTuple):
    """The newest checkpoint that a host holds of a run.

    Where ``run`` is None, the checkpoint is in ``train.checkpoint.dir``. ``folder`` is the checkpoint's folder on the
    host. Of two runs, the one with the higher ``generation`` began later. ``history`` is the learning curve of
    the run, and ``record`` has its settings; only the host that led the run has both.
    """

    host: str
    run: Optional[str]
    step: int
    bytes: int
    generation: int = 0
    folder: str = ""
    history: RunHistory = RunHistory()
    record: Optional[RunRecord] = None


def refuse_resume(spec: Spec, source: Optional[str] = None) -> None:
    """Refuse to resume from checkpoints that the launcher does not know.

    The launcher does not know the checkpoints of a ``command``, which resumes only from its ``{state_folder}``. The
    launcher also does not know which runs wrote to ``train.checkpoint.dir``.

    Args:
      source: the run to resume from; None for the newest.

    Raises:
      UsageError: the file has ``command`` without that folder; ``source`` is a run of another name; or ``source`` is
        given, and several runs share one folder.
    """
    if spec.command is not None and not spec.keeps_state:
        raise UsageError(
            f"--resume: expected the key job, or {{state_folder}} in command, found neither in {spec.path}; let the "
            "program keep its checkpoints in {state_folder}, or leave out --resume if command names your own folder"
        )
    if spec.command is not None and source is not None:
        raise UsageError(
            f"--run: expected the key job, found command in {spec.path}, and its {{state_folder}} belongs to all "
            f"runs of the name {spec.name}; leave --run out"
        )
    directory = spec.train.checkpoint.dir
    if source is not None and directory is not None:
        raise UsageError(
            f"--run: expected checkpoints in the folders of runs, found train.checkpoint.dir {directory}; "
            "--resume continues from the newest checkpoint there, whichever run wrote it; leave --run out"
        )
    if source is not None and name_of(source) != spec.name:
        raise UsageError(
            f"--run: expected a run of {spec.name} to resume from, found '{source}'; take values of another model with "
            "train.warm_start"
        )


def newest(held: Sequence[Held], lead: str) -> Optional[Held]:
    """Return the checkpoint to continue from: the newest step of the newest run.

    Only runs that left a checkpoint count. Of equal steps, the checkpoint on the chief's host, ``lead``, is chosen. An
    older run may have reached a later step, but the user abandoned it with a newer run without ``--resume``.
    """
    _, run = max(((each.generation, each.run) for each in held if each.run is not None), default=(0, None))
    eligible = [each for each in held if each.run in (None, run)]
    if not eligible:
        return None
    return max(eligible, key=lambda each: (each.step, each.host == lead, each.run is None))


def passed_over(held: Sequence[Held], chosen: Held) -> Optional[Held]:
    """Return the checkpoint with the highest step, if that is above the step of ``chosen``; else None.

    The user abandoned its run when a newer run began.
    """
    further = sorted((each for each in held if each.step > chosen.step), key=lambda each: each.step)
    return further[-1] if further else None


def bring_newest(
    fleet: Fleet,
    plan: Plan,
    requests: Mapping[str, RunRequest],
    note: Callable[[str], None],
    needed: bool = True,
    source: Optional[str] = None,
) -> Dict[str, RunRequest]:
    """Copy the newest checkpoint to the lead's host, and name it in the lead's request.

    The function returns the requests of all hosts. If no host holds a checkpoint, the lead's agent refuses to start and
    reports that; with ``needed`` False, the run begins at step 0.

    Args:
      source: the run whose checkpoints count; None for all runs.

    Raises:
      UsageError: ``source`` has left no checkpoint, or does not exist.
      CannotStart: a host is out of reach, or the checkpoint does not arrive.
      Interrupted: a signal came.
    """
    directory = plan.spec.train.checkpoint.dir
    asked = {host: HeldRequest(fleet.reference(host, source), directory) for host in plan.hosts}
    answers, problems = fleet.ask("held", asked, HELD_S)
    if problems:
        raise CannotStart(problems)
    held = [_held(host, each) for host in plan.hosts for each in answers[host]["held"]]
    found = newest(held, plan.lead)
    asked_of_lead = replace(requests[plan.lead], resume=needed or found is not None)
    if found is None and source is not None:
        find_named(fleet, source)
        raise UsageError(
            f"--run: expected a run that left a checkpoint on {fold(plan.hosts)}, found '{source}', which left none"
        )
    if found is None:
        return {**requests, plan.lead: asked_of_lead}
    for line in chosen_in_words(found, passed_over(held, found), plan.lead, fleet.path_on):
        note(line)
    record = next((each.record for each in held if each.run == found.run and each.record is not None), None)
    for line in differences(record, plan.spec):
        note(line)
    run = found.run
    if found.host != plan.lead:
        _hand_over(fleet, plan, found)
        run = found.run if directory is None else None
    curve = max((each.history for each in held if each.run == found.run), key=lambda curve: curve.step[-1:])
    history = curve if curve.step else None
    return {**requests, plan.lead: replace(asked_of_lead, resume_from=Wanted(run, found.step), history=history)}


def _held(host: str, values: Mapping[str, Any]) -> Held:
    known = {key: values[key] for key in ("run", "step", "bytes", "generation", "folder") if key in values}
    try:
        record = None if values.get("record") is None else from_values(RunRecord, values["record"])
        return Held(host, history=from_values(RunHistory, values.get("history", {})), record=record, **known)
    except Malformed:  # of another version: a curve is not worth a refusal
        return Held(host, **known)


def chosen_in_words(found: Held, further: Optional[Held], lead: str, path_on: Callable[[str, str], str]) -> List[str]:
    """Return a line about the chosen checkpoint, and a line about a later checkpoint that is ignored."""
    what = f"step {found.step} of {found.run or found.folder}"
    way = "" if found.host == lead else f" on {found.host}: {found.bytes / 2**20:.1f} MiB to {lead}"
    lines = [f"continuing from the checkpoint of {what}{way}"]
    if further is not None:
        lines.append(
            f"ignoring the checkpoint of step {further.step} of {further.run or further.folder}, an older run: "
            f"{path_on(further.host, further.folder)}"
        )
    return lines


def differences(before: Optional[RunRecord], spec: Spec) -> List[str]:
    """Return a line with the settings in which ``spec`` differs from an earlier run; no line if no setting differs.

    The settings are ``args`` and ``train``. A key of ``train`` that only one of two versions of the launcher knows is
    left out.
    """
    if before is None:
        return []
    args, train = json.loads(json.dumps([spec.args, spec.train.to_dict()]))  # as in a record: lists, no tuples
    known = [key for key in before.train if key in train]
    changed = [*between(before.args, args, "args")]
    changed += [each for key in known for each in between(before.train[key], train[key], f"train.{key}")]
    found = [f"{each.key} {_shortened(each.before)} → {_shortened(each.now)}" for each in changed]
    more = [f"and {len(found) - MOST_KEYS} more"] if len(found) > MOST_KEYS else []
    return [f"differs from {before.run}: {', '.join([*found[:MOST_KEYS], *more])}"] if found else []


def _shortened(value: Any) -> str:
    return cut(" ".join(in_words(value).split()), LONGEST)


def _hand_over(fleet: Fleet, plan: Plan, found: Held) -> None:
    checkpoint = plan.spec.train.checkpoint
    request = HandoverRequest(
        run=fleet.reference(plan.lead, plan.run),
        checkpoint_dir=checkpoint.dir,
        wanted=Wanted(found.run, found.step),
        generation=found.generation,
        address=str(plan.control),
        token=secrets.token_hex(16),
        keep=checkpoint.keep,
        guard=plan.spec.guard,
        peers=peers(plan),
    )
    given = replace(request, run=fleet.reference(found.host, plan.run))
    try:
        with closing(fleet.contact(plan.lead, "take", request)) as taker:
            _await(fleet, [taker], "listening")
            with closing(fleet.contact(found.host, "give", given)) as giver:
                _await(fleet, [taker, giver], "taken")
    except HostProblem as problem:
        raise CannotStart([problem]) from problem


def _await(fleet: Fleet, conversations: Sequence[Conversation], word: str) -> None:
    """Receive from all conversations until one sends ``word``. Raises HostProblem."""
    received_at, open_ones = time.monotonic(), list(conversations)
    while open_ones and time.monotonic() - received_at <= QUIET_S:
        fleet.interrupts.check()
        for conversation in list(open_ones):
            with suppress(Silence):
                line = conversation.receive(LOOK_S)
                if line is None:
                    open_ones.remove(conversation)
                    continue
                received_at = time.monotonic()
                if word in line:
                    return
    hosts = " and ".join(conversation.host for conversation in conversations)
    quiet = f"the checkpoint did not arrive: no answer for {QUIET_S:.0f} s, or the transfer ended early"
    raise HostProblem(hosts, ProblemKind.SILENT, quiet)
