"""The newest spans (timed phases and steps) of this host's tasks, from the files of their flight recorders."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import List, Optional, Sequence

from cluster.protocol.flight_records import FILE, FlightRecords, clock_lead_s, read_records
from cluster.protocol.heartbeat import PULSE, STEPS, asks_after, read_sign
from launch.agent.state import plan_file
from launch.agent.state.run_folder import RunFolder
from launch.agent.state.runs import newest as newest_run
from launch.agent.wire.flight import Current, Exchanged, Flight, HostFlights
from launch.agent.wire.verb_requests import FlightRequest

NO_FILE = "it has no flight recorder, like a ps or a program under `command:`, or it has not begun"
DIGITS = 6  # of a second


def of_host(request: FlightRequest) -> HostFlights:
    """Return the newest spans of the requested tasks that this host has in the requested run."""
    folder = newest_run(request.run)
    found: List[Flight] = []
    if folder is not None:
        here = plan_file.read(folder).names
        found = [of_task(folder, task, request.newest) for task in request.tasks if task in here]
    return HostFlights(folder.run if folder else None, time.time(), found)


def of_task(folder: RunFolder, task: str, newest: int) -> Flight:
    """Return the newest spans of a task, or the reason why the task has none."""
    place, now = folder.task(task), time.time()
    current = _current(place, now)
    try:
        records = read_records(place / FILE)
    except FileNotFoundError:
        return Flight(task, now, NO_FILE, now=current)
    except (OSError, ValueError) as error:
        return Flight(task, now, f"its spans cannot be read: {error}", now=current)
    return in_columns(Flight(task, now, now=current), records, newest, clock_lead_s())


def _current(place: Path, now: float) -> Optional[Current]:
    sign = read_sign(place)
    if sign is None:
        return None
    try:
        age_s = now - os.lstat(str(place / PULSE)).st_mtime
    except OSError:  # the sign has just been removed
        return None
    asked_s = max(0.0, sign.phase_s - asks_after(sign.slowest_s)) if sign.phase in STEPS else 0.0
    return Current(sign.phase, sign.phase_s, sign.owes, round(max(0.0, age_s), DIGITS), asked_s)


def in_columns(empty: Flight, records: FlightRecords, newest: int, lead_s: float) -> Flight:
    """Return a copy of ``empty`` whose columns have the last ``newest`` spans of ``records``.

    ``lead_s`` is the time since 1970 minus the time of the spans' monotonic clock, in seconds.
    """
    spans = records.spans[-newest:]
    known = [span.longest for span in spans]
    return replace(
        empty,
        why_none=None if spans else "none of its spans has ended since its host booted",
        attempt=[span.attempt for span in spans],
        phase=[span.phase for span in spans],
        step=[span.step for span in spans],
        began=[round(span.began + lead_s, DIGITS) for span in spans],
        took_s=[round(span.ended - span.began, DIGITS) for span in spans],
        waited_s=_rounded([span.waited_s for span in spans]),
        longest_ps=[each and each.ps for each in known],
        longest_s=_rounded([each and each.seconds for each in known]),
        whole=[span.is_whole for span in spans],
        exchanged=[Exchanged(each.pushes, each.bytes) for each in (records.header.ps if records.header else ())],
        torn=records.torn,
        earlier=records.earlier,
    )


def _rounded(values: Sequence[Optional[float]]) -> List[Optional[float]]:
    return [None if value is None else round(value, DIGITS) for value in values]
