"""Find what looks wrong in hosts' reports: rules over the pieces of one host, and over all of them."""

from collections import Counter
from contextlib import suppress
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from launch.diagnosis.collect import Evidence
from launch.status.moments import utc
from launch.status.run import RunStatus
from launch.status.states import ENDED
from launch.status.values import Malformed, from_values

CLOCK_S = 1.0  # off by so much is told
FREE_SHARE, FREE_BYTES = 0.02, 1_000_000_000  # of a disk
MEMORY_SHARE = 0.05  # that should be there to be had
LOAD_PER_CORE = 4.0

Sign = Tuple[str, str]  # host, what looks wrong there


def signs(found: List[Evidence]) -> List[Sign]:
    """Return what looks wrong on each host; a host that looks right has no sign.

    The signs are in the order of the hosts, and differences between hosts come last.
    """
    status, run = run_status(found), newest_run(found)
    told = [(each.host, text) for each in found for text in _of_host(each, status, run)]
    return told + list(_unlike(found))


def newest_run(found: List[Evidence]) -> Optional[str]:
    """Return the run that verbs mean: one that lives, else the one that began last.

    Hosts that are not in that run have older ones.
    """
    told = sorted((each.lives, each.generation, each.run) for each in found if each.run)
    return told[-1][2] if told else None


def run_status(found: List[Evidence]) -> Optional[RunStatus]:
    """Return the status of the newest run, as its lead wrote it last.

    The result is None where the lead's host did not report a status.
    """
    run = newest_run(found)
    told: List[Any] = [each.files.get("status.json") for each in found if each.run == run]
    whole: List[Dict[str, Any]] = [each for each in told if isinstance(each, dict) and "state" in each]
    with suppress(Malformed):
        return from_values(RunStatus, sorted(whole, key=lambda status: len(status["tasks"]))[-1]) if whole else None
    return None


def _of_host(host: Evidence, status: Optional[RunStatus], run: Optional[str]) -> Iterator[str]:
    if host.problem is not None:
        yield f"did not tell all: {host.problem}"
    for section, why in sorted(host.missing.items()):
        yield f"nothing of its {section}: {why}"
    if host.run is not None and host.run != run:
        yield f"its newest run is {host.run}: it took no part in {run}"
    for rule in (_agent, _processes, _kernel, _disks, _memory, _load, _clock, _connections):
        yield from rule(host, status if host.run == run else None)


def _agent(host: Evidence, status: Optional[RunStatus]) -> Iterator[str]:
    live = host.files.get("live.json")
    if status is None or live is None:
        return
    over = status.state in ENDED
    if live["agent"] is None and not over:
        yield "its agent is gone, though the run has not ended"
    left = [each for each in live["processes"] if each["task"] is not None]
    if over and left:
        yield f"{len(left)} processes live on after the run's end; `launch sweep --kill` ends them"
    expected = [task.name for task in status.tasks if task.host == host.host and task.state == "running"]
    alive = {each["task"] for each in left}
    gone = [name for name in expected if name not in alive]
    if gone and not over:
        yield f"running by the run's status, but no process of it is there: {', '.join(gone)}"


def _processes(host: Evidence, status: Optional[RunStatus]) -> Iterator[str]:
    for each in host.files.get("live.json", {}).get("processes", []):
        who = f"{each['task'] or 'its agent or keeper'} (pid {each['pid']})"
        if each["state"] == "T":
            yield f"{who} is stopped by a signal (SIGSTOP or a debugger)"
        elif each["state"] == "D":
            yield f"{who} hangs in the kernel, in {each['waits_in']}"
        if each["swapped_bytes"] > 100_000_000:
            yield f"{who} has {each['swapped_bytes'] / 1e9:.1f} GB in the swap"


def _kernel(host: Evidence, status: Optional[RunStatus]) -> Iterator[str]:
    messages = host.files.get("kernel.json", [])
    for kind, count in Counter(each["kind"] for each in messages).items():
        last = [each for each in messages if each["kind"] == kind][-1]
        yield f"the kernel told {count} times of trouble with {kind}, last at {utc(last['time'])}: {last['text'][:200]}"


def _disks(host: Evidence, status: Optional[RunStatus]) -> Iterator[str]:
    for folder, disk in sorted(host.files.get("disks.json", {}).items()):
        if disk["error"]:
            yield f"{folder}: {disk['error']}"
            continue
        if disk["free_bytes"] < min(FREE_BYTES, FREE_SHARE * disk["bytes"]):
            yield f"{folder}: {disk['free_bytes'] / 1e6:.0f} MB free of {disk['bytes'] / 1e9:.0f} GB"
        if disk["inodes"] and disk["free_inodes"] < FREE_SHARE * disk["inodes"]:
            yield f"{folder}: {disk['free_inodes']} inodes free of {disk['inodes']}"
        if not disk["writable"]:
            yield f"{folder}: it cannot be written to"


def _memory(host: Evidence, status: Optional[RunStatus]) -> Iterator[str]:
    memory = host.files.get("machine.json", {}).get("memory", {})
    total, available = memory.get("MemTotal", 0), memory.get("MemAvailable", 0)
    if total and available < MEMORY_SHARE * total:
        yield f"{available / 1e9:.1f} GB of memory to be had of {total / 1e9:.0f} GB"


def _load(host: Evidence, status: Optional[RunStatus]) -> Iterator[str]:
    machine = host.files.get("machine.json")
    if machine and machine["cores"] and max(machine["load"][:1], default=0.0) > LOAD_PER_CORE * machine["cores"]:
        yield f"a load of {machine['load'][0]:.0f} on {machine['cores']} cores"


def _clock(host: Evidence, status: Optional[RunStatus]) -> Iterator[str]:
    if host.clock and abs(host.clock["offset_s"]) - host.clock["error_s"] > CLOCK_S:
        yield f"its clock is {host.clock['offset_s']:+.1f} s off this machine's"


def _connections(host: Evidence, status: Optional[RunStatus]) -> Iterator[str]:
    held = host.files.get("connections.json")
    if held and held["hanging"]:
        remotes = ", ".join(dict.fromkeys(f"{each['remote']} {each['state']}" for each in held["first"][:4]))
        yield f"{held['hanging']} of {held['count']} connections hang: {remotes}"


def _unlike(found: List[Evidence]) -> Iterator[Sign]:
    """Yield a sign for each host whose versions or code are not those of most."""
    for what, of in (("Python", _python), ("tensorflow", _tensorflow), ("numpy", _numpy), ("the code", _code)):
        told = {each.host: of(each.files.get("versions.json", {})) for each in found}
        known = Counter(version for version in told.values() if version)
        if len(known) > 1:
            usual = known.most_common(1)[0][0]
            yield from (
                (host, f"{what} is {version}, on most hosts {usual}")
                for host, version in told.items()
                if version and version != usual
            )


def _python(versions: Mapping[str, Any]) -> Optional[str]:
    version: Optional[str] = versions.get("python", {}).get("version")
    return version


def _package(versions: Mapping[str, Any], *names: str) -> Optional[str]:
    packages = versions.get("packages", {})
    return next((packages[name] for name in names if name in packages), None)


def _tensorflow(versions: Mapping[str, Any]) -> Optional[str]:
    return _package(versions, "tensorflow", "tensorflow-gpu", "tensorflow-cpu", "nvidia-tensorflow")


def _numpy(versions: Mapping[str, Any]) -> Optional[str]:
    return _package(versions, "numpy")


def _code(versions: Mapping[str, Any]) -> Optional[str]:
    code = versions.get("code") or {}
    return " ".join(f"{kind} {digest[:8]}" for kind, digest in sorted(code.items())) or None
