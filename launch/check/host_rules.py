"""Rules about one host, based on its facts. ``launch diagnose`` also applies the rules that take a ``Survey``."""

from pathlib import Path
from typing import Dict, Iterator, Optional, Tuple

from cluster.protocol.addresses import port_of
from cluster.protocol.quantity import quantity
from cluster.spec.model import is_local
from launch.agent.gpus import assignment
from launch.agent.wire.check_request import PortHolder
from launch.agent.wire.host_facts import Failed, Gpu, Python, Versions
from launch.check.findings import Evidence, Finding, Note, Survey
from launch.check.interview import agent_programs, shipped_programs

CLOCK_S = 1.0  # with a larger difference, lines of several logs are not in order
LEAST_FREE_BYTES = 10**9
FULL_SHARE = 0.02  # a disk with a smaller free share is nearly full
LEAST_FREE_INODES = 10_000
LONGER = "see `ssh {host} uptime`, or raise --deadline-s"


# -- the rules that both verbs apply


def python(survey: Survey) -> Iterator[Finding]:
    """Require that the tasks' Python starts and, for a job, imports numpy and TensorFlow."""
    for host, facts in survey.facts.items():
        versions = facts.versions
        if versions is None:
            continue
        if not versions.environment_ready:
            what = "expected the Python environment of the key setup, found none"
            yield Finding("environment", (host,), what, f"build it with `launch setup {survey.file}`")
        elif isinstance(versions.python, Failed):
            key = "python" if survey.image is None else "container.python"
            yield Finding("python", (host,), versions.python.error, f"name another Python with the key {key}")
        elif survey.of_job:
            yield from _modules(host, versions, versions.python, survey.image)


def _modules(host: str, versions: Versions, interpreter: Python, image: Optional[str]) -> Iterator[Finding]:
    tensorflow = "tensorflow-gpu==1.15" if interpreter.version.startswith("3.7.") else "tensorflow"
    for kind, name, package in (("numpy", "numpy", "numpy"), ("tensorflow", "TensorFlow", tensorflow)):
        module = getattr(versions, kind)
        if isinstance(module, Failed):
            install = f"`ssh {host} {interpreter.path} -m pip install {package}`"
            mend = f"{install}, or let `launch setup` build an environment (key setup), or name a Python that has it"
            if image is not None:
                mend = f"add {name} to the image {image}, or name another Python there with the key container.python"
            what = f"{name} cannot be imported by {interpreter.path}: {module.error}"
            yield Finding(kind, (host,), what, mend)


def clock(survey: Survey) -> Iterator[Finding]:
    """Require that each host's clock agrees with the launcher's, as far as the connection allows to measure that."""
    for host, facts in survey.facts.items():
        if facts.clock is not None and abs(facts.clock.offset_s) - facts.clock.error_s > CLOCK_S:
            way = "ahead of" if facts.clock.offset_s > 0 else "behind"
            off = f"{abs(facts.clock.offset_s):.1f} s {way} this machine's (± {facts.clock.error_s:.3f} s)"
            yield Finding("clock", (host,), f"its clock is {off}", f"`ssh {host} sudo timedatectl set-ntp true`")


def disks(survey: Survey, started: bool = False) -> Iterator[Finding]:
    """Require writable folders with free space: enough to start a run, or a little if the run has ``started``."""
    for host, facts in survey.facts.items():
        for folder, disk in sorted(facts.disks.items()):
            mend = f"see `ssh {host} df -h {folder}` and `ssh {host} ls -ld {folder}`, or choose another folder"
            if isinstance(disk, Failed):
                yield Finding("disk", (host,), f"{folder} cannot be used: {disk.error}", mend)
                continue
            least = min(LEAST_FREE_BYTES, FULL_SHARE * disk.bytes) if started else LEAST_FREE_BYTES
            room = f"make room: `ssh {host} du -xsh {folder}`, or choose another folder"
            if disk.free_bytes < least:
                expected, found = f"{least / 1e6:.0f} MB free", f"{disk.free_bytes / 1e6:.0f} MB free"
                yield Finding("disk", (host,), f"{folder}: expected at least {expected}, found {found}", room)
            if disk.inodes and disk.free_inodes < min(LEAST_FREE_INODES, FULL_SHARE * disk.inodes):
                found = f"{disk.free_inodes} of {disk.inodes}"
                yield Finding("disk", (host,), f"{folder}: expected free inodes for new files, found {found}", room)
            if not disk.writable:
                yield Finding("disk", (host,), f"{folder} cannot be used: it is not writable", mend)


# -- the rules of a check


def gaps(evidence: Evidence) -> Iterator[Finding]:
    """Require that each host has reported every fact, because a missing fact could hide a problem."""
    for host, facts in evidence.facts.items():
        for gap in facts.gaps:
            kind = "slow" if gap.late else "unreachable"
            yield Finding(kind, (host,), f"its answer lacks section {gap.section}: {gap.why}", LONGER.format(host=host))


def ports(evidence: Evidence) -> Iterator[Finding]:
    """Require that every port of the run is free, or held by the live run of this name."""
    owners = _owners(evidence)
    for host, facts in evidence.facts.items():
        for port, holder in facts.ports.items():
            if holder is None or (facts.run and facts.run.holds(holder)):
                continue
            what = f"port {port} of {owners[host, int(port)]} is {holder.why}"
            yield Finding("port", (host,), what, _free_it(host, holder))


def ephemeral_ports(evidence: Evidence) -> Iterator[Finding]:
    """Yield a note on tasks' ports that any outgoing connection may occupy when the task starts."""
    for host, facts in evidence.facts.items():
        found = facts.ephemeral
        if found is not None:
            is_one = len(found.ports) == 1
            noun = f"port{'' if is_one else 's'} {', '.join(map(str, found.ports))}"
            what = f"{noun}: the kernel gives ports {found.first} to {found.last} to outgoing connections"
            kept = ",".join([*filter(None, [found.reserved]), *map(str, found.ports)])
            reserve = f"`ssh {host} sudo sysctl -w net.ipv4.ip_local_reserved_ports={kept}`"
            mend = f"choose ports below {found.first}, or reserve {noun} on each boot: {reserve}"
            holds = f"a connection may hold {'the port' if is_one else 'such a port'} when a task starts"
            yield Note("ephemeral-port", (host,), f"{what}, so {holds}", mend)


def _free_it(host: str, holder: PortHolder) -> str:
    if holder.run:
        return f"it belongs to {holder.run}: end that run with `launch down` and its hosts file, or {_other_port(host)}"
    if holder.pid:
        return f"end it with `ssh {host} kill {holder.pid}`, or {_other_port(host)}"
    return _other_port(host)


def _other_port(host: str) -> str:
    way = "choose another port (key port)"
    return f"{way}, or add --local, which takes free ports" if is_local(host) else way


def _owners(evidence: Evidence) -> Dict[Tuple[str, int], str]:
    owners = {(task.host, task.port): task.name for task in evidence.plan.tasks}
    if evidence.plan.control is not None:
        owners[evidence.plan.lead, port_of(evidence.plan.control)] = "the lead's agent"
    return owners


def run_up(evidence: Evidence) -> Iterator[Finding]:
    """Require that no run of this name is up."""
    for host, facts in evidence.facts.items():
        if facts.run:
            mend = f"see it with `launch status {evidence.file}`, end it with `launch down {evidence.file}`"
            yield Finding("run-up", (host,), f"{facts.run.run} is up", mend)


def guard(evidence: Evidence) -> Iterator[Finding]:
    """Require that the firewall rules of the key ``guard``, if any, can be set up."""
    for host, facts in evidence.facts.items():
        if facts.unguarded:
            what, *mend = facts.unguarded
            yield Finding("guard", (host,), what, "; ".join(mend))


def gpus(evidence: Evidence) -> Iterator[Finding]:
    """Require that each GPU of a task exists, has no memory errors, and is neither reserved nor used by others."""
    wishes: Dict[str, Dict[str, assignment.Wish]] = {host: {} for host in evidence.plan.hosts}
    for task in evidence.plan.tasks:
        wishes[task.host][task.name] = task.gpus
    for host, facts in evidence.facts.items():
        if facts.gpus is None:
            continue
        try:
            given = assignment.give(wishes[host], len(facts.gpus.gpus))
        except ValueError as error:
            yield Finding("gpu", (host,), str(error), "ask for GPUs that the host has, with the key gpus")
            continue
        for name, indices in given.items() if not facts.run else ():
            for index in indices:
                yield from _gpu(host, f"GPU {index} of {name}", facts.gpus.gpus[index])


def _gpu(host: str, name: str, gpu: Gpu) -> Iterator[Finding]:
    if gpu.memory_errors:
        found = quantity(gpu.memory_errors, "uncorrectable memory error")
        mend = f"reset it with `ssh {host} sudo nvidia-smi --gpu-reset -i {gpu.uuid}`, or choose another GPU"
        yield Finding("gpu", (host,), f"{name}: expected intact memory, found {found} since the driver loaded", mend)
    if gpu.slowed:
        yield Note("gpu", (host,), f"{name} runs at a reduced clock, because of heat or a lack of power", "")
    if gpu.booked:
        mend = "end that run with `launch down` and its hosts file, or choose another GPU"
        yield Finding("gpu", (host,), f"{name} is held by {gpu.booked}", mend)
    elif gpu.processes:
        mend = f"end unneeded processes (see `ssh {host} nvidia-smi`), or choose another GPU"
        yield Finding("gpu", (host,), f"{name} is used by {'; '.join(gpu.processes)}", mend)


def programs(evidence: Evidence) -> Iterator[Finding]:
    """Require that hosts have the programs that ``command:``, ``on:`` and ``notice:`` name."""
    plan = evidence.plan
    keys = {**agent_programs(plan, plan.lead), **dict.fromkeys((task.argv[0] for task in plan.tasks), "command")}
    for host, facts in evidence.facts.items():
        for program in facts.missing_programs:
            mend = f"install it, or write its path into {keys.get(program, 'command')}"
            yield Finding("program", (host,), f"no program {program} on this host", mend)
    folder = Path(plan.tasks[0].env.get("LAUNCH_JOB_DIR", "."))
    shipped = "the job" if evidence.of_job else evidence.file
    for program in shipped_programs(plan):
        if not (folder / program).is_file():
            key = keys[program]
            hosts = (plan.lead,) if key == "on" else plan.hosts
            what = f"{program} is not in the shipped folder of {shipped}"
            yield Finding("program", hosts, what, f"put it there, or write its path on the hosts into {key}")


def limits(evidence: Evidence) -> Iterator[Finding]:
    """Require that the kernel can enforce every limit of a task.

    Hosts with a live run are skipped, because its tasks hold the processors that the next start will use.
    """
    for host, facts in evidence.facts.items():
        if facts.limits is None or facts.run:
            continue
        for problem in facts.limits.problems:
            yield Finding("limits", (host,), problem, "change the key limits, or allow this user to set such limits")
        for note in facts.limits.notes:
            yield Note("limits", (host,), note, "")


def container(evidence: Evidence) -> Iterator[Finding]:
    """Require that hosts have the program that runs the tasks' containers, and the container image."""
    for host, facts in evidence.facts.items():
        if facts.container:
            what, *mend = facts.container
            yield Finding("container", (host,), what, "; ".join(mend))


def proxies(evidence: Evidence) -> Iterator[Finding]:
    """Yield a note on a host's proxy variables: TensorFlow's connections would hang, so tasks run without them."""
    for host, facts in evidence.facts.items():
        if facts.proxies:
            yield Note("proxy", (host,), f"proxy set there: {', '.join(facts.proxies)}; tasks run without a proxy", "")
