"""Give each task of a TFJob its host; a manifest names none."""

from itertools import cycle
from typing import Dict, List, Optional, Sequence

from cluster.spec.host_names import HostError, hosts
from launch.errors import UsageError
from launch.hostfile.import_formats import split
from launch.tfjob.jobs import Role

PLACEHOLDER = ".invalid"  # no such name exists (RFC 2606), so `launch check` refuses the host


def parsed_hosts(text: str, argument: str) -> List[str]:
    """Return the hosts of a text such as ``gpu[01-04],cpu01``.

    Raises:
      UsageError: the text names no hosts, or one twice.
    """
    try:
        found = [host for part in split(text) for host in hosts(part.strip())]
    except HostError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise UsageError(f"{argument}: expected {error.expected}, found {error.found}{hint}") from None
    twice = next((host for host in found if found.count(host) > 1), None) if len(set(found)) < len(found) else None
    if twice is not None or not found:
        raise UsageError(f"{argument}: expected each host once, found {f'{twice} twice' if twice else 'none'}")
    return found


def dealt(roles: Sequence[Role], named: Optional[List[str]], for_ps: Optional[List[str]]) -> Dict[str, List[str]]:
    """Return the host of each task by role.

    Hosts get one task after the other: first the chief, then workers, then the evaluator, and again from the first
    host. The ps get theirs in the same way, from the first host. Without hosts, every task has a placeholder.

    Args:
      for_ps: hosts for the ps alone.
    """
    trainers, servers = cycle(named or [""]), cycle(for_ps or named or [""])
    found = {}
    for role in roles:
        source = servers if role.role == "ps" else trainers
        names = [next(source) for _ in range(role.count)]
        found[role.role] = [name or f"{role.role}-{index}{PLACEHOLDER}" for index, name in enumerate(names)]
    return found
