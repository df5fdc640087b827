"""Find symptoms in the hosts' reports, by the rules of ``launch check`` about hosts and by rules about the run."""

from collections import Counter
from typing import Iterator, List, Optional, Tuple

from cluster.protocol.quantity import quantity
from cluster.spec.model import Spec
from launch.agent.wire.diagnose_request import DiagnosisFacts
from launch.check import fleet_rules, host_rules
from launch.check.findings import Survey
from launch.diagnosis.collect import HostReport
from launch.status.run import ENDED, RunStatus, utc
from launch.timeline.clock_shifts import ClockShift
from launch.timeline.flights import HostSpans, TimeLine, has_common_steps, time_line

MEMORY_SHARE = 0.05  # least share of memory that should be available
LOAD_PER_CORE = 4.0
SWAPPED_BYTES = 100_000_000
SHOWN = 200  # characters of a message

Sign = Tuple[str, str]  # host, symptom


class Diagnosis:
    """The reports of all hosts, and the results drawn from them.

    Attributes:
      name: the name that runs of the file share.
      run: the run that verbs act on; None where no host reports a run.
      status: the newest status of that run; None if the host of its lead reported no status.
      steps: the newest steps of all tasks, where they are known.
    """

    def __init__(self, name: str, hosts: List[HostReport], steps: Optional[TimeLine] = None):
        self.name, self.hosts, self.steps = name, hosts, steps
        self.run, self.status, self.signs = newest_run(hosts), run_status(hosts), signs(hosts)


def signs(found: List[HostReport]) -> List[Sign]:
    """Return the symptoms of each host; a healthy host has no symptom.

    The symptoms are in the order of the hosts, and differences between hosts come last.
    """
    status, run = run_status(found), newest_run(found)
    survey = Survey({each.host: each.facts for each in found})
    shared = [*host_rules.python(survey), *host_rules.disks(survey, started=True), *host_rules.clock(survey)]
    here = [(host, finding.what) for finding in shared for host in finding.hosts]
    of_hosts = [
        (each.host, text)
        for each in found
        for text in (*_of_host(each, status, run), *(what for host, what in here if host == each.host))
    ]
    return of_hosts + list(_differing(survey))


def newest_run(found: List[HostReport]) -> Optional[str]:
    """Return the run that verbs act on: a live run, else the run that began last.

    Hosts outside that run report older runs.
    """
    known = sorted((each.lives, each.generation, each.run) for each in found if each.run)
    return known[-1][2] if known else None


def run_status(found: List[HostReport]) -> Optional[RunStatus]:
    """Return the status that the lead of the newest run wrote last.

    The result is None where the lead's host did not report a status.
    """
    run = newest_run(found)
    known: List[RunStatus] = [each.status for each in found if each.run == run and each.status is not None]
    return max(known, key=lambda each: len(each.tasks)) if known else None


def _of_host(host: HostReport, status: Optional[RunStatus], run: Optional[str]) -> Iterator[str]:
    if host.problem is not None:
        yield f"incomplete answer: {host.problem}"
    for section, why in sorted(host.missing.items()):
        yield f"its answer lacks section {section}: {why}"
    if host.run is not None and host.run != run:
        yield f"its newest run is {host.run}: this host took no part in {run}"
    elif status is not None:
        yield from _of_run(host.host, host.facts, status)
    for rule in (_processes, _kernel, _machine, _connections):
        yield from rule(host.facts)


def _of_run(host: str, facts: DiagnosisFacts, status: RunStatus) -> Iterator[str]:
    if facts.live is None:
        return
    over = status.state in ENDED
    if facts.live.agent is None and not over:
        yield "its agent is gone, though the run has not ended"
    left = [each for each in facts.live.processes if each.task is not None]
    if over and left:
        living = quantity(len(left), "living process", "living processes")
        yield f"{living} after the run's end; `launch sweep --kill` ends them"
    expected = [task.name for task in status.tasks if task.host == host and task.state == "running"]
    alive = {each.task for each in left}
    gone = [name for name in expected if name not in alive]
    if gone and not over:
        yield f"no process of tasks that the status reports as running: {', '.join(gone)}"


def _processes(facts: DiagnosisFacts) -> Iterator[str]:
    for each in facts.live.processes if facts.live else ():
        who = f"{each.task or 'its agent or keeper'} (pid {each.pid})"
        if each.state == "T":
            yield f"{who} is stopped by a signal (SIGSTOP or a debugger)"
        elif each.state == "D":
            yield f"{who} hangs in the kernel, in {each.waits_in}"
        if each.swapped_bytes > SWAPPED_BYTES:
            yield f"{who} has {each.swapped_bytes / 1e9:.1f} GB in the swap"


def _kernel(facts: DiagnosisFacts) -> Iterator[str]:
    messages = {each.kind: each for each in facts.kernel or ()}  # the last of each kind
    for kind, count in Counter(each.kind for each in facts.kernel or ()).items():
        last = f"last at {utc(messages[kind].time)}: {messages[kind].text[:SHOWN]}"
        yield f"the kernel reported trouble with {kind} {quantity(count, 'time')}, {last}"


def _machine(facts: DiagnosisFacts) -> Iterator[str]:
    machine = facts.machine
    if machine is None:
        return
    total, available = machine.memory.get("MemTotal", 0), machine.memory.get("MemAvailable", 0)
    if total and available < MEMORY_SHARE * total:
        yield f"only {available / 1e9:.1f} GB of {total / 1e9:.0f} GB of memory is available"
    if machine.cores and max(machine.load[:1], default=0.0) > LOAD_PER_CORE * machine.cores:
        yield f"a load of {machine.load[0]:.0f} on {machine.cores} cores"


def _connections(facts: DiagnosisFacts) -> Iterator[str]:
    held = facts.connections
    if held and held.hanging:
        remotes = ", ".join(dict.fromkeys(f"{each.remote} {each.state}" for each in held.first[:4]))
        yield f"{held.hanging} of {held.count} connections hang: {remotes}"


def _differing(survey: Survey) -> Iterator[Sign]:
    """Yield a symptom for each host whose versions or code differ from those of most hosts."""
    for finding in fleet_rules.versions(survey):
        yield from ((host, finding.what) for host in finding.hosts)
    known = {host: facts.versions.code for host, facts in survey.facts.items() if facts.versions}
    for few, shown in fleet_rules.differing({host: fleet_rules.digests(code or {}) for host, code in known.items()}):
        yield from ((host, f"the code of the run {shown}") for host in few)


def time_line_of(found: List[HostReport], spec: Spec) -> Optional[TimeLine]:
    """Return the time line of the newest run; None where no host has sent the spans of a task."""
    run = newest_run(found)
    answers = {each.host: HostSpans(each.flights, _clock(each)) for each in found if each.run == run and each.flights}
    if not answers:
        return None
    return time_line(answers, run_status(found), spec.chief.host, has_common_steps(spec))


def _clock(report: HostReport) -> Optional[ClockShift]:
    clock = report.facts.clock
    return None if clock is None else ClockShift(clock.offset_s, clock.error_s)
