"""Write a hosts file from another launcher's list of hosts."""

import json
import tempfile
from itertools import groupby
from pathlib import Path
from typing import List, Optional, Sequence

from cluster.errors import SpecError
from cluster.spec import load
from cluster.spec.host_names import HostError, hosts
from launch.errors import UsageError
from launch.hostfile.import_formats import Listed, split
from launch.view.console import fold

# The meanings of a slot, and the resulting workers of a host.
KINDS = {
    "gpus": "one worker a host, with a GPU and a tower for each slot",
    "workers": "a worker for each slot, with one GPU",
    "cores": "one worker a host, without GPUs; slots do not count",
}


def written(source: str, job: str, listed: Sequence[Listed], kind: str, ps: int, ps_hosts: Optional[str]) -> str:
    """Return the text of a hosts file that ``launch up`` accepts.

    Args:
      source: the origin of the list, for the file's first line.
      kind: the meaning of a slot, one of ``KINDS``.
      ps: the number of hosts, from the first, that also run a ps; ignored where ``ps_hosts`` names the hosts of the ps.

    Raises:
      UsageError: the ps need more hosts, or ``launch up`` would refuse the file.
    """
    if ps_hosts is None and ps > len(listed):
        raise UsageError(f"--ps: expected at most one for each of the {len(listed)} hosts, found {ps}; see --ps-hosts")
    servers = split(ps_hosts) if ps_hosts is not None else folded([each.host for each in listed[:ps]])
    lines = [
        f"# From {source}: {KINDS[kind]}.",
        f"job: {json.dumps(job)}",
        "cluster:",
        f"  ps: [{', '.join(map(json.dumps, servers))}]",
        "  worker:",
        *(f"    - {item}" for item in _workers(listed, kind)),
    ]
    text = "\n".join(lines) + "\n"
    refuse_invalid(text)
    return text


def _workers(listed: Sequence[Listed], kind: str) -> List[str]:
    items = []
    for slots, neighbours in groupby(listed, key=lambda each: each.slots):
        for name in folded([each.host for each in neighbours]):
            items.append(f"{{host: {json.dumps(name)}{_share(slots, kind)}}}")
    return items


def _share(slots: Optional[int], kind: str) -> str:
    """Return the part of a worker's entry about its GPUs.

    The part is empty where the list has no slots: the worker then uses all GPUs of the host.
    """
    if kind == "cores":
        return ", gpus: none"
    if slots is None:
        return ""
    return f", gpus: {slots}" if kind == "gpus" else f", count: {slots}, gpus: 1"


def folded(names: Sequence[str]) -> List[str]:
    """Return ``gpu[01-03]`` for three hosts, if the range has exactly their order.

    Otherwise the function returns each host separately.
    """
    ranges = split(fold(names))
    return ranges if _meant(ranges) == list(names) else list(names)


def _meant(ranges: Sequence[str]) -> Optional[List[str]]:
    try:
        return [host for each in ranges for host in hosts(each)]
    except HostError:  # a range of IPv6 addresses, which hosts files do not support
        return None


def refuse_invalid(text: str) -> None:
    """Refuse the text of a hosts file that ``launch up`` would refuse.

    Raises:
      UsageError: the text is wrong; the error has every problem.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hosts.yaml"
        path.write_text(text, encoding="utf-8")
        try:
            load(path)
        except SpecError as error:
            said = "\n".join(str(problem._replace(where="the hosts file")) for problem in error.problems)
            raise UsageError(f"the generated hosts file is invalid:\n{said}") from error
