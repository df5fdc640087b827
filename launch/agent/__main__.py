"""The verbs of an agent on its host: ``python -m launch.agent VERB``, request on stdin.

    start   makes an agent that outlives this process; answers when it is ready. With ``again`` in the
            request, in the place of one that died: one that lives is left alone
    return  starts the agent of a detached run again, after a boot; its request is in the folder that argv names
    attach  joins this process's stdin and stdout to the running agent
    status  the newest run of a name, from its agent or, when that is gone, its files
    restart ends tasks of the newest run, so that their next attempts begin; on the lead
    drain   takes tasks out of the newest run, or back; on the lead
    logs    lines of task logs, with follow until the run is over
    flight  the newest steps of this host's tasks
    check   opens ports, dials those of other hosts, and reports what a run would find here
    look    reports what exists of a run on this host now
    board   TensorBoard beside the newest run's summaries, until the launcher goes
    sweep   reports the leftovers of earlier runs on this host; ends them on request
    prune   reports past runs and code that are to go; removes them on request
    diagnose  sends everything that may explain the state of a run, piece by piece
    find    reports the runs of a name that this host knows: the newest, and its lead
    runs    reports the runs of every name on this host
    down    ends this host's part of a run and reports what is left of it
    graph   builds the graph of a job, which trains nothing, and reports its mistake
    export  builds the SavedModel of a checkpoint, and sends it
    held    reports the checkpoints on this host that a run could resume from
    take    receives a checkpoint that another host gives
    give    sends a checkpoint to another host
    build   makes the Python environment that tasks are to run in

But for ``return``, the request is one JSON line, the answers are JSON lines. Nothing secret is in argv.
"""

import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Type, TypeVar

from cluster.protocol.typed_json import Malformed, from_values, to_values
from launch.agent.checkpoints import resume
from launch.agent.errors import AgentError
from launch.agent.linux.daemonize import fork_away
from launch.agent.linux.open_files import readable
from launch.agent.linux.processes import Process
from launch.agent.protocol import local_socket
from launch.agent.service.located import folder_of
from launch.agent.state import leftovers, locks, runs
from launch.agent.state.log import say as write_log
from launch.agent.verbs import down, logs, status
from launch.agent.wire.run_request import RunRequest
from launch.agent.wire.verb_requests import (
    BuildRequest,
    DownRequest,
    DrainRequest,
    ExportRequest,
    FlightRequest,
    HandoverRequest,
    HeldRequest,
    LogsRequest,
    PruneRequest,
    RestartRequest,
    RunReference,
    RunsRequest,
    SweepRequest,
)

T = TypeVar("T")
START_S = 60.0
ENDED_S, LOOK_S = 15.0, 0.01  # for an agent that refused to start, and its keeper, to be gone
SILENT_S = 60.0  # a launcher that stops in the middle of a file has gone


class NotUnderstood(AgentError):
    """The request is of another version of the launcher; the text is the answer to it."""


def read_request(kind: Type[T]) -> T:
    """Return the request on stdin.

    Raises:
      NotUnderstood: a field is missing, or has another type.
    """
    try:
        return from_values(kind, read_values())
    except Malformed as error:
        advice = "start again with the launcher that this code came with"
        raise NotUnderstood(f"expected a request of this version, found {error}; {advice}") from None


def read_values() -> Dict[str, Any]:
    """Return the JSON line on stdin, unbuffered: what follows may belong to a relay."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            sys.exit(0)
        line += byte
    values: Dict[str, Any] = json.loads(line.decode())
    return values


def read_some(size: int) -> bytes:
    """At most so many bytes of what the launcher sends; b"" when it has gone."""
    return os.read(0, size) if readable(0, SILENT_S) else b""


def tell(values: Dict[str, Any]) -> None:
    """Write one JSON line to stdout."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def launcher_goes(seconds: float) -> bool:
    """Wait so many seconds at most; return whether the launcher has closed its end.

    The launcher sends nothing more after its request.
    """
    return readable(0, seconds) and not os.read(0, 1)


def start() -> None:
    """Make the agent, a process of its own, and pass its first answer on."""
    tell(begin(read_request(RunRequest)))


def begin(request: RunRequest) -> Dict[str, Any]:
    """Make the agent, a process of its own, and return its first answer: ready or an error."""
    folder = folder_of(request)
    serving = leftovers.make_way(folder) if request.again else None
    if serving is not None:
        return {"ready": True, "pid": serving, "lives": True}
    ready, says = os.pipe()
    try:
        folder.create(again=request.again)
        log = folder.own / "agent.log"
        agent = fork_away(lambda: serve(request, says), log, says, f"launch agent of {folder.run} on {folder.host}")
    except FileExistsError:  # two of the same second, which names a run
        held = locks.lock_holder(folder.workdir, request.name, folder.host)
        second = f"{folder.run} started in this second; start the run again"
        return {"error": locks.refusal(folder.run, request.file) if held else second}
    except OSError as error:
        return {"error": f"cannot make the run's folder {folder.own}: {error.strerror}", "kind": "disk"}
    finally:
        os.close(says)
    with os.fdopen(ready, "rb") as pipe:
        if not readable(pipe, START_S):
            os.killpg(agent, signal.SIGKILL)
            return {"error": f"the agent did not get ready within {START_S:.0f} s; its log: {log}"}
        word = pipe.readline()
    answer: Dict[str, Any] = json.loads(word.decode()) if word else {"error": f"the agent ended; its log: {log}"}
    if "error" in answer:
        _wait_for_end(agent)
    return answer


def return_to_run() -> None:
    """Start the agent of a detached run again after a boot."""
    from launch.agent.service.boot_return import start_again  # loads what no other verb needs

    sys.exit(start_again(Path(sys.argv[2]), begin))


def _wait_for_end(agent: int) -> None:
    """Wait for the end of an agent that refused to start, and of its keeper.

    When the launcher receives the refusal, nothing of the start is left.
    """
    until = time.monotonic() + ENDED_S
    while time.monotonic() < until and os.waitpid(agent, os.WNOHANG)[0] == 0:
        time.sleep(LOOK_S)


def check() -> None:
    """Takes part in ``launch check``."""
    from launch.agent.verbs import check  # loads asyncio

    check.check(read_values, tell)


def serve(request: RunRequest, says: int) -> int:
    """Run the agent and its keeper; ``says`` is the pipe for the answer to ``start``."""
    from launch.agent.service import daemon, keeper, recovery

    def say(values: Dict[str, Any]) -> None:
        os.write(says, json.dumps(values).encode() + b"\n")
        os.close(says)

    def note(values: Dict[str, Any]) -> None:
        write_log(f"the agent cannot start: {values['error']}" if "error" in values else "the agent has started again")

    again = replace(request, again=True)

    def serve_again(own: Process, pulse: keeper.Pulse) -> int:
        goes_on = recovery.goes_on(folder_of(request), request)
        return daemon.serve(again, note, own, pulse) if goes_on else keeper.OVER

    service = keeper.Service(
        first=lambda own, pulse: daemon.serve(request, say, own, pulse),
        next=serve_again if request.detached else None,
        release=lambda: os.close(says),
        patience_s=keeper.patience_s(request.lost_after_s),
    )
    return keeper.keep(folder_of(request), service)


def build() -> None:
    """Makes an environment, and ends when the launcher goes."""
    from launch.agent.environments.pip_build import Build  # loads what no other verb needs

    Build(read_request(BuildRequest), tell, read_some, launcher_goes).run()


def sweep() -> None:
    """Report the leftovers of earlier runs on this host."""
    from launch.agent.verbs.sweep import sweep as swept  # loads what no other verb needs

    tell(to_values(swept(read_request(SweepRequest))))


def prune() -> None:
    """Report past runs and code that are to go; remove them on request."""
    from launch.agent.retention.pruning import answer as pruned  # loads what no other verb needs

    tell(to_values(pruned(read_request(PruneRequest))))


def graph() -> None:
    """Build the graph of a job once, before its tasks start."""
    from launch.agent.service.chief_command import mistake  # loads what no other verb needs

    tell(to_values(mistake(read_request(RunRequest))))


def export() -> None:
    """Build the SavedModel of a checkpoint, and send it."""
    from launch.agent.service.export import export as send  # loads what no other verb needs

    send(read_request(ExportRequest), tell)


def take() -> None:
    """Receive a checkpoint from another host."""
    from launch.agent.checkpoints import migration  # loads asyncio

    migration.take(read_request(HandoverRequest), tell)


def give() -> None:
    """Send a checkpoint to another host."""
    from launch.agent.checkpoints import migration  # loads asyncio

    migration.give(read_request(HandoverRequest), tell)


def diagnose() -> None:
    """Send all that this host knows of a run."""
    from launch.agent.diagnosis.sections import diagnose as told  # loads what no other verb needs

    told(read_values, tell)


def flight() -> None:
    """Send the newest steps of this host's tasks."""
    from launch.agent.state import newest_spans  # loads what no other verb needs

    tell(to_values(newest_spans.of_host(read_request(FlightRequest))))


def board() -> None:
    """Serves summaries until the launcher goes."""
    from launch.agent.verbs import board  # loads what no other verb needs

    board.board(read_request(RunReference), tell)


def runs_here() -> None:
    """Report the runs of every name on this host."""
    from launch.agent.verbs.runs import runs as listed  # loads what no other verb needs

    tell(to_values(listed(read_request(RunsRequest))))


def run(verb: str) -> None:
    """Runs a verb of this host."""
    verbs: Dict[str, Callable[[], None]] = {
        "start": start,
        "return": return_to_run,
        "attach": lambda: local_socket.attach(read_request(RunReference), tell),
        "check": check,
        "status": lambda: tell(status.status(read_request(RunReference))),
        "build": build,
        "restart": lambda: tell(status.restart(read_request(RestartRequest))),
        "drain": lambda: tell(status.drain(read_request(DrainRequest))),
        "look": lambda: tell(to_values(down.look(read_request(RunReference)))),
        "find": lambda: tell(runs.find(read_request(RunReference))),
        "runs": runs_here,
        "down": lambda: tell(to_values(down.down(read_request(DownRequest)))),
        "sweep": sweep,
        "prune": prune,
        "logs": lambda: logs.logs(read_request(LogsRequest), tell, launcher_goes),
        "flight": flight,
        "board": board,
        "graph": graph,
        "export": export,
        "held": lambda: tell(resume.held(read_request(HeldRequest))),
        "take": take,
        "give": give,
        "diagnose": diagnose,
    }
    try:
        verbs[verb]()
    except NotUnderstood as error:
        tell({"error": str(error)})
    except BrokenPipeError:  # the launcher has gone
        os._exit(0)


if __name__ == "__main__":
    run(sys.argv[1])
