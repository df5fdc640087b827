"""Collect a report about a run from every host, in parallel under one deadline.

If a host falls silent, its report has the pieces that have arrived.
"""

import json
import os
import time
from dataclasses import dataclass, field, fields, replace
from typing import Any, Dict, List, Optional

from cluster.protocol.typed_json import Malformed, from_values, to_values, updated
from launch.agent.text import Redaction
from launch.agent.wire.diagnose_request import SPANS, DiagnoseRequest, DiagnosisFacts
from launch.agent.wire.flight import Flight
from launch.check.interview import read_clock
from launch.errors import HostProblem, ProblemKind
from launch.fleet import Fleet
from launch.hosts.channel import Host
from launch.status.run import RunStatus

TOTAL_BYTES = 50_000_000  # of all hosts, before compression
LEAST_BYTES, MOST_BYTES = 60_000, 8_000_000  # of one host
HOST_S = 25.0  # for one host, from its turn on: a host that hangs must not block the others
MARGIN_S = 3.0  # for the last pieces to arrive
NOTHING = DiagnosisFacts(versions=None, gpus=None, disks={}, gaps=[], clock=None)
FACTS = {f"{each.name}.json": each.name for each in fields(DiagnosisFacts) if each.name not in ("gaps", "clock")}


@dataclass
class HostReport:
    """The report of one host.

    ``files`` maps file names to texts or JSON values. ``facts`` are the facts in these files that rules use.
    ``missing`` is {section: reason}.
    """

    host: str
    files: Dict[str, Any] = field(default_factory=dict)
    missing: Dict[str, str] = field(default_factory=dict)
    run: Optional[str] = None
    problem: Optional[str] = None  # why the host sent nothing, or not everything
    seconds: Optional[float] = None  # until the host had sent everything
    room: int = 2 * MOST_BYTES  # for further pieces, in bytes
    lives: bool = False  # its run
    generation: int = 0  # of its run
    facts: DiagnosisFacts = NOTHING
    status: Optional[RunStatus] = None  # of the whole run, from the host that leads it
    flights: List[Flight] = field(default_factory=list)  # of its tasks

    def take(self, piece: Dict[str, Any], redaction: Redaction) -> bool:
        """Store a piece, and return whether it was the last; a file that exceeds the space left is missing."""
        if "file" in piece:
            self._take_file(piece["file"], piece, redaction)
        elif "missing" in piece:
            self.missing[piece["missing"]] = redaction.text(piece["why"])
        elif "done" in piece:
            self.run, self.lives = piece["run"], piece.get("lives", False)
            self.generation = piece.get("generation", 0)
        return "done" in piece

    def _take_file(self, file: str, piece: Dict[str, Any], redaction: Redaction) -> None:
        size = len(piece.get("text") or json.dumps(piece.get("json")))
        if size > self.room:
            self.missing[file] = f"{size} bytes, but only {self.room} bytes are left"
            return
        self.room -= size
        content = redaction.text(piece["text"]) if "text" in piece else redaction.value(piece["json"])
        before = self.files.get(file)
        if isinstance(before, dict) and isinstance(content, dict):
            content = {**before, **content}
        try:
            self._learn(file, content)
        except Malformed as error:
            self.missing[file] = str(error)
        else:
            self.files[file] = content

    def _learn(self, file: str, content: Any) -> None:
        """Read the facts in a file. Raises Malformed."""
        if file in FACTS:
            self.facts = updated(self.facts, {FACTS[file]: content})
        elif file == "status.json" and isinstance(content, dict) and content.get("state") is not None:
            self.status = from_values(RunStatus, content)  # a host that does not lead the run has no state
        elif file.endswith(f"/{SPANS}"):
            self.flights.append(from_values(Flight, content))


def gather(fleet: Fleet, deadline_s: float) -> List[HostReport]:
    """Return a report for each host, in the order of the hosts, including hosts that did not answer.

    Raises:
      Interrupted: a signal came.
    """
    until = time.monotonic() + deadline_s
    redaction = Redaction([os.environ[name] for name in fleet.spec.secrets if name in os.environ])
    share = max(LEAST_BYTES, min(MOST_BYTES, TOTAL_BYTES // max(1, len(fleet.hosts))))

    found = {host: HostReport(host, room=2 * share) for host in fleet.hosts}

    def ask(host: Host) -> None:
        _ask(fleet, host, found[host.name], redaction, share, until)

    _, problems = fleet.each(ask, list(found), timeout_s=deadline_s)
    own = {problem.host: problem.reason for problem in problems}
    of_gateways = "; ".join(str(problem) for problem in problems if problem.host not in found)
    for report in found.values():
        if report.seconds is None:
            report.problem = own.get(report.host, of_gateways or "it was not asked in time")
    return list(found.values())


def _ask(fleet: Fleet, host: Host, report: HostReport, redaction: Redaction, share: int, until: float) -> None:
    began = time.monotonic()
    until = min(until, began + HOST_S)
    conversation = fleet.contact(host.name, "diagnose", {"do": "time"})
    try:
        patience_s = max(1.0, until - time.monotonic())
        conversation.answer(patience_s)
        report.facts = replace(report.facts, clock=read_clock(conversation, patience_s))
        within_s = max(1.0, until - time.monotonic() - MARGIN_S)
        run, secrets = fleet.reference(host.name), tuple(fleet.spec.secrets)
        request = DiagnoseRequest(run, host.python, secrets, share, within_s)
        conversation.send({"do": "gather", **to_values(request)})
        piece = conversation.answer(patience_s)
        while not report.take(piece, redaction):
            if time.monotonic() > until + MARGIN_S:
                raise HostProblem(host.name, ProblemKind.SLOW, f"it was still sending after {HOST_S:.0f} s")
            piece = conversation.answer(patience_s)
    finally:
        conversation.close()
    report.seconds = time.monotonic() - began
