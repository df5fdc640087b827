"""This host's part of ``launch check``: it opens ports, connects to other hosts, and reports what it finds.

The first request opens this host's ports, and the answer lists the ports that are taken. After that, the launcher may
ask for this host's time. Once every host's ports are open, it may ask for a look: everything about this host and its
connections to other hosts. The ports close when the launcher closes the connection, or at the deadline.
"""

import os
import shutil
import threading
import time
from functools import partial
from typing import Any, Callable, Dict, Iterator, Optional, Sequence

from cluster.protocol.addresses import PROXIES
from cluster.protocol.env_values import on_this_host
from cluster.protocol.typed_json import from_values, to_values
from launch.agent import facts as host_facts
from launch.agent.containers import runtimes
from launch.agent.facts import Piece, Section, pieces
from launch.agent.limits.enforcement import would_agree
from launch.agent.linux import sockets
from launch.agent.network import firewall
from launch.agent.network.doors import DialTarget, Doors, Knock, dial_all
from launch.agent.network.resolver import resolve
from launch.agent.state import locks, plan_file
from launch.agent.state.run_folder import RunFolder, expand
from launch.agent.wire.check_request import CheckFacts, CheckRequest
from launch.agent.wire.host_facts import Gap

RESOLVE_SHARE = 1 / 6  # of the deadline: for the names of the cluster

Values = Dict[str, Any]


def check(receive: Callable[[], Values], send: Callable[[Values], None]) -> None:
    """Answer the launcher's requests until it closes the connection; ``receive`` then ends the process.

    The first request is a ``CheckRequest``. Further requests are {"do": "time"}, and {"do": "look", "within_s"}.
    """
    request = from_values(CheckRequest, receive())
    deadline = threading.Timer(request.within_s, os._exit, [0])
    deadline.daemon = True
    deadline.start()
    with Doors(request.words, request.run.host) as doors:
        send({"ports": doors.open(request.ports)})
        while True:
            values = receive()
            if values["do"] == "time":
                send({"time": time.time()})
            else:  # in a thread, so that the end of the launcher is noticed meanwhile
                threading.Thread(target=_answer, args=(request, values, send), daemon=True).start()


def _answer(request: CheckRequest, values: Values, send: Callable[[Values], None]) -> None:
    try:
        send(to_values(look(request, values["within_s"])))
    except Exception as error:  # without an answer, the launcher would wait in vain
        send({"error": f"the look failed: {type(error).__name__}: {error}"})


def look(request: CheckRequest, within_s: float) -> CheckFacts:
    """Return all that a check can find out about this host and its connections within ``within_s`` seconds."""
    found: Values = {
        "versions": None, "gpus": None, "disks": {}, "gaps": [], "clock": None, "names": {}, "unreached": [],
        "unguarded": [], "missing_programs": [], "limits": None, "container": [], "run": None, "ports": {},
        "ephemeral": _ephemeral(request.ports),
        "proxies": sorted(name for name in os.environ if name.lower() in PROXIES),
    }  # fmt: skip
    own = {
        "ways": _ways,
        "guard": _guard,
        "programs": _programs,
        "limits": _limits,
        "run": _run,
        "container": _container,
    }
    sections: Dict[str, Section] = {name: partial(section, request) for name, section in own.items()}
    sections.update(host_facts.sections(request.facts, within_s))
    for piece in pieces(sections, within_s):
        if isinstance(piece, Gap):
            found["gaps"].append(to_values(piece))
        else:
            name, value = piece
            found[name] = {**found[name], **value} if name == "disks" else value
    return from_values(CheckFacts, found)


def _ephemeral(ports: Sequence[int]) -> Optional[Values]:
    """Return the ports of this run that outgoing connections may get."""
    (first, last), reserved = sockets.outgoing_ports(), sockets.reserved_ports()
    found = sockets.ephemeral(ports, (first, last), reserved)
    return {"ports": found, "first": first, "last": last, "reserved": reserved} if found else None


# -- the sections that only a check needs; their pieces are fields of CheckFacts


def _ways(request: CheckRequest) -> Iterator[Piece]:
    names = resolve(request.names, RESOLVE_SHARE * request.within_s)
    yield "names", names
    targets = [DialTarget(*pair) for pair in request.targets]
    yield "unreached", dial_all(targets, names, Knock(request.words, request.here, request.knock_s))


def _guard(request: CheckRequest) -> Iterator[Piece]:
    if request.guard:
        yield "unguarded", list(firewall.refusal() or ())


def _programs(request: CheckRequest) -> Iterator[Piece]:
    paths = on_this_host({name: path or "" for name, path in request.programs.items()}, os.environ)
    programs = ((name, shutil.which(os.path.expanduser(name), path=paths[name] or None)) for name in paths)
    yield "missing_programs", [name for name, found in programs if found is None]


def _limits(request: CheckRequest) -> Iterator[Piece]:
    try:
        container = runtimes.of_run(request.facts.container, expand(request.run.workdir))
    except runtimes.Lacking:  # the container's section reports the reason
        container = None
    terms = would_agree(request.limits, container)
    yield "limits", {"problems": list(terms.problems), "notes": list(terms.notes)}


def _container(request: CheckRequest) -> Iterator[Piece]:
    try:
        runtimes.of_run(request.facts.container, expand(request.run.workdir))
    except runtimes.Lacking as error:
        yield "container", [error.what, error.mend]


def _run(request: CheckRequest) -> Iterator[Piece]:
    """Yield the live run of this name on this host, if one exists."""
    workdir, host = expand(request.run.workdir), request.run.host
    held = locks.lock_holder(workdir, request.run.name, host)
    if held is not None:
        yield "run", {**held, "code": plan_file.read(RunFolder(workdir, held["run"], host)).code}
