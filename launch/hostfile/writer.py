"""Write a hosts file from another launcher's list of hosts."""

import json
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence

import yaml

from cluster.errors import SpecError
from cluster.spec import load
from cluster.spec.host_names import HostError, hosts
from launch.errors import UsageError
from launch.hostfile.import_formats import Listed, split
from launch.hostfile.schedulers import Hosts
from launch.view.console import fold

# The meanings of a slot, and the resulting workers of a host.
KINDS = {
    "gpus": "one worker on each host, with a GPU and a tower for each slot",
    "workers": "one worker for each slot, with one GPU",
    "processes": "one worker for each slot; the workers of a host share its GPUs",
    "cores": "one worker on each host, without GPUs; slots are ignored",
}


def written(
    source: str, program: Mapping[str, Any], found: Hosts, kind: str, ps: int = 0, ps_hosts: Optional[str] = None
) -> str:
    """Return the text of a hosts file that ``launch up`` accepts.

    Args:
      source: the origin of the list, for the file's first line.
      program: the key ``job`` or ``command`` with its value.
      found: the hosts; if all have the same user, the file names this user.
      kind: the meaning of a slot, one of ``KINDS``.
      ps: the number of first hosts that also run a ps; ignored if the hosts of the ps are known.
      ps_hosts: the hosts of the ps, as a text.

    Raises:
      UsageError: there are fewer hosts than ps, or ``launch up`` would refuse the file.
    """
    servers, user = _servers(found, ps, ps_hosts), None if ps_hosts else only_user(found.workers)
    lines = [
        f"# From {source}: {KINDS[kind]}.",
        *(f"{key}: {flow(value)}" for key, value in program.items()),
        "cluster:",
        *([f"  ps: {flow(servers)}"] if servers else []),
        "  worker:",
        *(f"    - {item}" for item in _workers(found.workers, kind)),
        *([f"ssh: {flow({'user': user})}"] if user else []),
    ]
    text = "\n".join(lines) + "\n"
    refuse_invalid(text)
    return text


def _servers(found: Hosts, ps: int, ps_hosts: Optional[str]) -> List[str]:
    if ps_hosts is not None:
        return split(ps_hosts)
    if found.ps is None and ps > len(found.workers):
        count = len(found.workers)
        raise UsageError(f"--ps: expected at most one ps on each of the {count} hosts, found {ps}; see --ps-hosts")
    return folded(found.ps if found.ps is not None else [each.host for each in found.workers[:ps]])


def only_user(listed: Sequence[Listed]) -> Optional[str]:
    """Return the user of all hosts; None if hosts have different users, or no user."""
    users = {each.user for each in listed}
    return next(iter(users)) if len(users) == 1 else None


def ssh_configuration(listed: Sequence[Listed]) -> List[str]:
    """Return the lines of an SSH configuration that name the user of each host."""
    lines = []
    for user in dict.fromkeys(each.user for each in listed if each.user):
        lines += [f"Host {' '.join(each.host for each in listed if each.user == user)}", f"    User {user}"]
    return lines


def _workers(listed: Sequence[Listed], kind: str) -> List[str]:
    items = []
    for slots, neighbours in groupby(listed, key=lambda each: each.slots):
        for name in folded([each.host for each in neighbours]):
            items.append(f"{{host: {flow(name)}{_share(slots, kind)}}}")
    return items


def _share(slots: Optional[int], kind: str) -> str:
    """Return the part of a worker's entry about its GPUs.

    The part is empty where the list has no slots: the worker then uses all GPUs of the host.
    """
    if kind == "cores":
        return ", gpus: none"
    if slots is None:
        return ""
    return {
        "gpus": f", gpus: {slots}",
        "workers": f", count: {slots}, gpus: 1",
        "processes": f", count: {slots}" if slots > 1 else "",
    }[kind]


def folded(names: Sequence[str]) -> List[str]:
    """Return host names as ranges such as ``gpu[01-03]``, if the ranges mean exactly ``names`` in that order.

    Otherwise the function returns ``names`` unchanged.
    """
    ranges = split(fold(names))
    return ranges if _meant(ranges) == list(names) else list(names)


def _meant(ranges: Sequence[str]) -> Optional[List[str]]:
    try:
        return [host for each in ranges for host in hosts(each)]
    except HostError:  # a range of IPv6 addresses, which hosts files do not support
        return None


def refuse_invalid(text: str) -> None:
    """Raise an error if ``launch up`` would refuse ``text``, the text of a hosts file.

    Raises:
      UsageError: the text is invalid; the error lists every problem.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hosts.yaml"
        path.write_text(text, encoding="utf-8")
        try:
            load(path)
        except SpecError as error:
            said = "\n".join(str(problem._replace(where="the hosts file")) for problem in error.problems)
            raise UsageError(f"the generated hosts file is invalid:\n{said}") from error


def flow(value: Any) -> str:
    """Return a value as YAML on one line; every text is quoted, except for keys and the text ``none``."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, str) and value != "none":
        return str(yaml.safe_dump(value, default_style='"', width=sys.maxsize)).rstrip("\n")
    return value if isinstance(value, str) else json.dumps(value)
