"""Rules about one host, each checked against that host's own facts."""

from typing import Any, Dict, Iterator, Mapping

from cluster.protocol.addresses import port_of
from launch.check.evidence import Evidence, Facts
from launch.check.findings import Finding, Note
from launch.check.requests import shipped_program

CLOCK_S = 1.0  # further off, the lines of several logs are no longer in order
LEAST_FREE_BYTES = 10**9
_NAMES = {"numpy": "numpy", "tensorflow": "TensorFlow"}


def python(evidence: Evidence) -> Iterator[Finding]:
    """The tasks' Python is there and, for a job, imports numpy and TensorFlow."""
    modules = _NAMES if evidence.plan.spec.job is not None else {}
    for host, facts in evidence.facts.items():
        versions = facts["versions"]
        if not facts["environment_ready"]:
            what = "the environment that the key setup asks for is not there"
            yield Finding("environment", (host,), what, f"build it with `launch setup {evidence.file}`")
        elif "error" in versions["python"]:
            yield Finding("python", (host,), versions["python"]["error"], "name another Python with the key python")
        else:
            yield from (
                _module(host, facts, *module) for module in modules.items() if "error" in versions.get(module[0], {})
            )


def _module(host: str, facts: Facts, module: str, name: str) -> Finding:
    path, error = facts["versions"]["python"]["path"], facts["versions"][module]["error"]
    install = f"`ssh {host} {path} -m pip install {_package(module, facts)}`"
    mend = f"{install}, or let `launch setup` build an environment (key setup), or name a Python that has it"
    return Finding(module, (host,), f"{name} cannot be imported by {path}: {error}", mend)


def _package(module: str, facts: Facts) -> str:
    old = facts["versions"]["python"]["version"].startswith("3.7.")
    return "tensorflow-gpu==1.15" if module == "tensorflow" and old else module


def ports(evidence: Evidence) -> Iterator[Finding]:
    """Every port that the run needs is free, or held by the very run that is up."""
    owners = _owners(evidence)
    for host, facts in evidence.facts.items():
        up = facts["run"] or {"run": "", "pid": 0}
        for port, held in facts["ports"].items():
            if held is None or held.get("run") == up["run"] or held.get("pid") == up["pid"]:
                continue
            what = f"port {port} of {owners[host, int(port)]} is {held['why']}"
            yield Finding("port", (host,), what, _free_it(host, held))


def _free_it(host: str, held: Mapping[str, Any]) -> str:
    if held.get("run"):
        return f"it belongs to {held['run']}: end that with `launch down` and its hosts file, or choose another port"
    if held.get("pid"):
        return f"end it with `ssh {host} kill {held['pid']}`, or choose another port"
    return "choose another port"


def _owners(evidence: Evidence) -> Dict[Any, str]:
    owners = {(task.host, task.port): task.name for task in evidence.plan.tasks}
    if evidence.plan.control is not None:
        owners[evidence.plan.lead, port_of(evidence.plan.control)] = "the lead's agent"
    return owners


def run_up(evidence: Evidence) -> Iterator[Finding]:
    """No run of this name is up."""
    for host, facts in evidence.facts.items():
        if facts["run"]:
            mend = f"see it with `launch status {evidence.file}`, end it with `launch down {evidence.file}`"
            yield Finding("run-up", (host,), f"{facts['run']['run']} is up", mend)


def guard(evidence: Evidence) -> Iterator[Finding]:
    """A guard that the file asks for can be set up."""
    for host, facts in evidence.facts.items():
        if facts["unguarded"]:
            what, *mend = facts["unguarded"]
            yield Finding("guard", (host,), what, "; ".join(mend))


def gpus(evidence: Evidence) -> Iterator[Finding]:
    """Each GPU that a task is to get exists, is booked by no other run and used by no process."""
    for host, facts in evidence.facts.items():
        if facts["lacking"]:
            yield Finding("gpu", (host,), facts["lacking"], "ask for GPUs that the host has, with the key gpus")
        for task, indices in facts["given"].items() if not facts["run"] else ():
            for index in indices:
                yield from _gpu(host, task, index, facts["gpus"][index])


def _gpu(host: str, task: str, index: int, gpu: Mapping[str, Any]) -> Iterator[Finding]:
    name = f"GPU {index} of {task}"
    if gpu["booked"]:
        mend = "end that run with `launch down` and its hosts file, or choose another GPU"
        yield Finding("gpu", (host,), f"{name} is held by {gpu['booked']}", mend)
    elif gpu["processes"]:
        mend = f"end what is not needed, see `ssh {host} nvidia-smi`, or choose another GPU"
        yield Finding("gpu", (host,), f"{name} is used by {'; '.join(gpu['processes'])}", mend)


def clock(evidence: Evidence) -> Iterator[Finding]:
    """The clocks agree with the launcher's, as far as the connection allows to measure them."""
    for host, facts in evidence.facts.items():
        offset_s, error_s = facts["clock"]["offset_s"], facts["clock"]["error_s"]
        if abs(offset_s) - error_s > CLOCK_S:
            way = "ahead of" if offset_s > 0 else "behind"
            what = f"its clock is {abs(offset_s):.1f} s {way} this machine's (known to {error_s:.3f} s)"
            yield Finding("clock", (host,), what, f"`ssh {host} sudo timedatectl set-ntp true`")


def folders(evidence: Evidence) -> Iterator[Finding]:
    """The working folder and the checkpoints' can be written and have room."""
    for host, facts in evidence.facts.items():
        for folder, state in facts["folders"].items():
            if state["error"]:
                mend = f"see `ssh {host} df -h {folder}` and `ssh {host} ls -ld {folder}`, or choose another folder"
                yield Finding("disk", (host,), f"{folder} cannot be used: {state['error']}", mend)
            elif state["free_bytes"] < LEAST_FREE_BYTES:
                found = f"{state['free_bytes'] / 1e6:.0f} MB free"
                what = f"{folder}: expected at least {LEAST_FREE_BYTES / 1e6:.0f} MB free, found {found}"
                yield Finding(
                    "disk", (host,), what, f"make room: `ssh {host} du -xsh {folder}`, or choose another folder"
                )


def programs(evidence: Evidence) -> Iterator[Finding]:
    """The program of ``command:`` is there."""
    missing = "install it, or write its path into command"
    for host, facts in evidence.facts.items():
        for program in facts["missing_programs"]:
            yield Finding("program", (host,), f"no program {program} there", missing)
    shipped = shipped_program(evidence.plan)
    if shipped is not None and not (evidence.plan.spec.path.resolve().parent / shipped).is_file():
        what = f"{shipped} is not in the folder of {evidence.file}, which is shipped"
        yield Finding("program", evidence.plan.hosts, what, "put it there, or write its path on the hosts into command")


def proxies(evidence: Evidence) -> Iterator[Finding]:
    """A proxy makes TensorFlow's connections hang; the launcher unsets those that it finds."""
    for host, facts in evidence.facts.items():
        if facts["proxies"]:
            yield Note("proxy", (host,), f"{', '.join(facts['proxies'])} set there; the tasks run without", "")
