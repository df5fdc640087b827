"""The start of an agent: by the verb ``start``, or by a systemd unit after a boot.

The agent outlives the process of the verb. After a boot, the unit of ``boot_unit`` restarts the agent of a detached
run. The network, or a folder that is mounted late, may not be available yet. So systemd retries a failed start.
"""

import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict

from launch.agent import leftovers
from launch.agent.linux.daemonize import fork_away
from launch.agent.linux.open_files import readable
from launch.agent.linux.processes import Process
from launch.agent.service.located import folder_of
from launch.agent.state import locks
from launch.agent.state.log import say as write_log
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest

START_S = 60.0
ENDED_S, LOOK_S = 15.0, 0.01  # for the end of an agent that refused to start, and of its keeper
DONE, AGAIN = 0, 1  # exit codes for systemd

Begin = Callable[[RunRequest], Dict[str, Any]]


def start(request: RunRequest) -> Dict[str, Any]:
    """Start the agent as a separate process, and return the agent's first answer: ready or an error."""
    folder = folder_of(request)
    serving = leftovers.make_way(folder) if request.again else None
    if serving is not None:
        return {"ready": True, "pid": serving, "lives": True}
    if request.again and _has_ended(folder):
        return {"error": f"expected a run that has not ended, but {folder.run} has ended"}
    ready, says = os.pipe()
    try:
        folder.create(again=request.again)
        log = folder.own / "agent.log"
        agent = fork_away(lambda: serve(request, says), log, says, f"launch agent of {folder.run} on {folder.host}")
    except FileExistsError:  # two runs of the same second, which is part of a run's name
        held = locks.lock_holder(folder.workdir, request.name, folder.host)
        second = f"another {folder.run} started in the same second; start the run again"
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


def _has_ended(folder: RunFolder) -> bool:
    from launch.status.run import ENDED  # as in ``serve``

    return (folder.read_whole("status.json") or {}).get("state") in ENDED


def _wait_for_end(agent: int) -> None:
    """Wait for the end of an agent that refused to start, and of its keeper.

    So nothing of the start is left when the launcher receives the refusal.
    """
    until = time.monotonic() + ENDED_S
    while time.monotonic() < until and os.waitpid(agent, os.WNOHANG)[0] == 0:
        time.sleep(LOOK_S)


def serve(request: RunRequest, says: int) -> int:
    """Run the agent and its keeper, and return the exit code; ``says`` is the pipe for the answer to ``start``."""
    from launch.agent.service import daemon, keeper, keeping  # only here: the verb itself needs none of them

    if request.run_plan is not None:  # before any agent is forked: later the files of the code may have changed
        from launch.agent.service import lead  # noqa: F401

    def say(values: Dict[str, Any]) -> None:
        os.write(says, json.dumps(values).encode() + b"\n")
        os.close(says)

    def note(values: Dict[str, Any]) -> None:
        write_log(f"the agent cannot start: {values['error']}" if "error" in values else "the agent has started again")

    again = replace(request, again=True)

    def serve_again(own: Process, pulse: keeper.Pulse) -> int:
        if not goes_on(folder_of(request), request):
            return keeping.OVER
        return daemon.serve(again, note, own, pulse)

    service = keeper.Service(
        first=lambda own, pulse: daemon.serve(request, say, own, pulse),
        next=serve_again,
        restarts=request.detached,
        release=lambda: os.close(says),
        patience_s=keeping.patience_s(request.lost_after_s),
    )
    return keeper.keep(folder_of(request), service)


def goes_on(folder: RunFolder, request: RunRequest) -> bool:
    """Return whether an agent of the run must restart although the launcher has not requested it.

    A member is always restarted. A lead is restarted where the launcher has left, and the run has not ended and was not
    about to end.
    """
    if request.run_plan is None:
        return True
    from launch.agent.service import recovery  # of the lead alone
    from launch.status.run import is_over

    return folder.has(recovery.DETACHED) and not is_over(folder.read_whole("status.json"))


def return_to_run() -> None:
    """Restart the agent of a detached run after a boot; ``sys.argv`` has the path of the agent's folder."""
    sys.exit(start_again(Path(sys.argv[2])))


def start_again(own: Path, begin: Begin = start) -> int:
    """Restart the agent whose folder is ``own``; return an exit code for systemd."""
    from launch.agent.state import boot_unit  # as in ``serve``

    os.umask(0o077)
    folder = RunFolder(own.parents[3], own.parents[1].name, own.name)
    kept = boot_unit.read(folder)
    if kept is None:  # a user or a successor has ended the run, or the folder is not mounted yet
        if folder.has(boot_unit.BOOT):
            print(f"{own / boot_unit.BOOT}: this file is damaged, so no agent of the run starts here", flush=True)
        return DONE if own.is_dir() else AGAIN
    request = kept.request
    if not goes_on(folder, request):
        boot_unit.remove(folder)
        return DONE
    os.environ.clear()
    os.environ.update(kept.environment)
    answer = begin(request)
    if "error" in answer:
        print(f"the agent cannot start after a boot: {answer['error']}", flush=True)
    return AGAIN if "error" in answer else DONE
