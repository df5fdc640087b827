"""Write a hosts file for a TFJob, and choose the host of each task, because a manifest names no hosts."""

from itertools import cycle
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from cluster.protocol.env_values import literal
from cluster.spec.host_names import HostError, hosts
from launch.errors import UsageError
from launch.hostfile.import_formats import split
from launch.hostfile.writer import flow, folded, refuse_invalid
from launch.tfjob.jobs import Role, TFJob

PLACEHOLDER = ".invalid"  # this domain never exists (RFC 2606), so `launch check` refuses the host


def parsed_hosts(text: str, argument: str) -> List[str]:
    """Return the hosts of a text such as ``gpu[01-04],cpu01``.

    Raises:
      UsageError: the text names no host, or names a host twice.
    """
    try:
        found = [host for part in split(text) for host in hosts(part.strip())]
    except HostError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise UsageError(f"{argument}: expected {error.expected}, found {error.found}{hint}") from None
    twice = next((host for host in found if found.count(host) > 1), None) if len(set(found)) < len(found) else None
    if twice is not None or not found:
        raise UsageError(f"{argument}: expected hosts, each once, found {f'{twice} twice' if twice else 'none'}")
    return found


def dealt(roles: Sequence[Role], named: Optional[List[str]], for_ps: Optional[List[str]]) -> Dict[str, List[str]]:
    """Return the hosts of the tasks of each role: {role: hosts}.

    The function assigns each host in turn to the next task, and starts again when all hosts have had a task. The tasks
    are in the order of ``roles``. The ps are counted apart from the others. Both begin at the first host of their list.

    Args:
      named: the hosts of all tasks; None gives each task a placeholder.
      for_ps: the hosts of the ps, in place of ``named``; None if the ps also use ``named``.
    """
    trainers, servers = cycle(named or [""]), cycle(for_ps or named or [""])
    found = {}
    for role in roles:
        source = servers if role.role == "ps" else trainers
        names = [next(source) for _ in range(role.count)]
        found[role.role] = [name or f"{role.role}-{index}{PLACEHOLDER}" for index, name in enumerate(names)]
    return found


def written(source: str, job: TFJob, hosts: Mapping[str, Sequence[str]]) -> str:
    """Return the text of a hosts file that ``launch up`` accepts.

    Args:
      source: the name of the manifest, for the file's first line.
      hosts: the host of each task, by role.

    Raises:
      UsageError: ``launch up`` would refuse the file.
    """
    text = "\n".join([f"# From {source}.", *_lines(job, hosts)]) + "\n"
    refuse_invalid(text)
    return text


def _lines(job: TFJob, hosts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    if job.name:
        yield f"name: {flow(job.name)}"
    yield from _by_role("command", {role.role: list(role.command) for role in job.roles}, same="")
    yield "cluster:"
    if any(name.endswith(PLACEHOLDER) for names in hosts.values() for name in names):
        yield f"  # Replace each host that ends in {PLACEHOLDER} by your own host."
    for role in job.roles:
        yield f"  {role.role}:"
        yield from (f"    - {item}" for item in _items(role, hosts[role.role]))
    yield from _by_role("env", {role.role: _env(role) for role in job.roles}, same="all")
    yield from _by_role("limits", {role.role: role.limits.given() for role in job.roles}, same="all")
    if job.secrets:
        yield f"secrets: {flow(list(job.secrets))}"
    if job.restart_max is not None:
        yield f"restart: {{max: {job.restart_max}}}"


def _env(role: Role) -> Dict[str, str]:
    return {name: literal(value) for name, value in role.env.items()}


def _by_role(key: str, values: Mapping[str, Any], same: str) -> Iterator[str]:
    """Yield the lines of a key that has a value for each role, or one value for all of them.

    Args:
      same: the key below ``key`` for a value of all roles; "" where the value is at ``key`` itself.
    """
    given = list(values.values())
    if all(each == given[0] for each in given):
        if given[0]:
            yield f"{key}: {flow({same: given[0]} if same else given[0])}"
        return
    yield f"{key}:"
    yield from (f"  {role}: {flow(value)}" for role, value in values.items() if value)


def _items(role: Role, names: Sequence[str]) -> Iterator[str]:
    gpus = {"gpus": role.gpus or "none"} if role.gpus or role.role != "ps" else {}
    for turn in _turns(names):
        for host in folded(turn):
            yield flow({"host": host, **gpus}) if gpus else flow(host)


def _turns(names: Sequence[str]) -> List[List[str]]:
    """Return the names in consecutive lists, in which each name appears at most once."""
    turns: List[List[str]] = [[]]
    for name in names:
        if name in turns[-1]:
            turns.append([])
        turns[-1].append(name)
    return turns
