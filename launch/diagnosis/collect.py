"""Collect what every host reports of a run, side by side under one deadline.

What a host sends before it falls silent counts.
"""

import json
import os
import time
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from launch.agent.text.redaction import Redaction
from launch.check.collect import read_clock
from launch.errors import HostProblem, ProblemKind
from launch.fleet import Fleet
from launch.hosts.answer_shapes import DIAGNOSED
from launch.hosts.channel import Host
from launch.hosts.shape import fault
from launch.status.values import to_values

TOTAL_BYTES = 50_000_000  # of all hosts, before they are packed
LEAST_BYTES, MOST_BYTES = 60_000, 8_000_000  # of one host
HOST_S = 25.0  # for one host, once it is its turn: one that hangs must not keep others from theirs
SHOWN = 200  # characters of a piece that is not what its file has
MARGIN_S = 3.0  # for the last pieces to arrive


@dataclass
class Evidence:
    """The report of one host.

    ``files`` has text, or what becomes JSON, by name. ``missing`` has {section: reason}.
    """

    host: str
    files: Dict[str, Any] = field(default_factory=dict)
    missing: Dict[str, str] = field(default_factory=dict)
    clock: Optional[Dict[str, float]] = None
    run: Optional[str] = None
    problem: Optional[str] = None  # why it told nothing, or not all
    seconds: Optional[float] = None  # until all was told
    room: int = 2 * MOST_BYTES  # for what is still to come, in bytes
    lives: bool = False  # its run
    generation: int = 0  # of its run

    def take(self, piece: Dict[str, Any], redaction: Redaction) -> bool:
        """Store a piece if there is room; return whether that piece was the last."""
        size = len(piece.get("text") or json.dumps(piece.get("json")))
        if "file" in piece and size > self.room:
            self.missing[piece["file"]] = f"{size} bytes, of which there may be {self.room} more"
            return False
        self.room -= size if "file" in piece else 0
        if "missing" in piece:
            self.missing[piece["missing"]] = redaction.text(piece["why"])
        elif _strangeness(piece) is not None:
            self.missing[piece["file"]] = redaction.text(str(_strangeness(piece)))
        elif "text" in piece:
            self.files[piece["file"]] = redaction.text(piece["text"])
        elif "json" in piece:
            value, before = redaction.value(piece["json"]), self.files.get(piece["file"])
            parts = [each for each in (before, value) if isinstance(each, dict)]
            self.files[piece["file"]] = {**parts[0], **parts[1]} if len(parts) == 2 else value
        if "done" in piece:
            self.run, self.lives = piece["run"], piece.get("lives", False)
            self.generation = piece.get("generation", 0)
        return "done" in piece


def _strangeness(piece: Dict[str, Any]) -> Optional[str]:
    """Return how a piece differs from what is read of its file; None where it does not, or nothing is read."""
    value = piece.get("json", piece.get("text"))
    at = fault(value, DIAGNOSED.get(piece.get("file", ""), object))
    if at is None:
        return None
    return f"expected it with {at.lstrip('.') or 'other keys'}, found {json.dumps(value)[:SHOWN]}"


def gather(fleet: Fleet, deadline_s: float) -> List[Evidence]:
    """Return the evidence of each host in order, also of hosts that cannot be asked.

    Raises:
      Interrupted: a signal came.
    """
    until = time.monotonic() + deadline_s
    redaction = Redaction([os.environ[name] for name in fleet.spec.secrets if name in os.environ])
    share = max(LEAST_BYTES, min(MOST_BYTES, TOTAL_BYTES // max(1, len(fleet.hosts))))

    found = {host: Evidence(host, room=2 * share) for host in fleet.hosts}

    def ask(host: Host) -> None:
        _ask(fleet, host, found[host.name], redaction, share, until)

    _, problems = fleet.each(ask, list(found), timeout_s=deadline_s)
    own = {problem.host: problem.reason for problem in problems}
    of_gateways = "; ".join(str(problem) for problem in problems if problem.host not in found)
    for evidence in found.values():
        if evidence.seconds is None:
            evidence.problem = own.get(evidence.host, of_gateways or "it was not asked in time")
    return list(found.values())


def _ask(fleet: Fleet, host: Host, evidence: Evidence, redaction: Redaction, share: int, until: float) -> None:
    began = time.monotonic()
    until = min(until, began + HOST_S)
    conversation = fleet.contact(host.name, "diagnose", {"do": "time"})
    try:
        patience_s = max(1.0, until - time.monotonic())
        conversation.answer(patience_s)
        evidence.clock = read_clock(conversation, patience_s)
        within_s = max(1.0, until - time.monotonic() - MARGIN_S)
        wanted = {"bytes": share, "python": host.python, "secrets": list(fleet.spec.secrets), "within_s": within_s}
        conversation.send({**to_values(fleet.reference(host.name)), "do": "gather", **wanted})
        piece = conversation.answer(patience_s)
        while not evidence.take(piece, redaction):
            if time.monotonic() > until + MARGIN_S:
                raise HostProblem(host.name, ProblemKind.SLOW, f"it was still telling after {HOST_S:.0f} s")
            piece = conversation.answer(patience_s)
    finally:
        conversation.close()
    evidence.seconds = time.monotonic() - began
