"""The time line of a run's newest steps, from the reports of its hosts."""

from typing import List, Optional

from cluster.spec.model import Spec
from launch.diagnosis.collect import HostReport
from launch.diagnosis.symptoms import newest_run, run_status
from launch.timeline.clocks import Exchange
from launch.timeline.flights import Answer, TimeLine, has_common_steps, time_line


def time_line_of(found: List[HostReport], spec: Spec) -> Optional[TimeLine]:
    """Return the time line of the newest run; None where no host has sent the spans of a task."""
    run = newest_run(found)
    answers = {each.host: Answer(each.flights, _clock(each)) for each in found if each.run == run and each.flights}
    if not answers:
        return None
    return time_line(answers, run_status(found), spec.chief.host, has_common_steps(spec))


def _clock(report: HostReport) -> Optional[Exchange]:
    clock = report.facts.clock
    return None if clock is None else Exchange(clock.offset_s, clock.error_s)
