"""The launcher's connection to an agent, for as long as both are there."""

import os
import select
from typing import Any, Callable, Dict

from launch.agent.protocol import local_client
from launch.agent.state.run_folder import RunFolder, expand
from launch.agent.wire.verb_requests import RunReference

CHUNK = 65536


def attach(reference: RunReference, send: Callable[[Dict[str, Any]], None]) -> None:
    """Copy lines both ways between the launcher, on stdin and stdout, and the agent until either ends.

    ``send`` gets {"error"} where no agent of the run answers.
    """
    folder = RunFolder(expand(reference.workdir), reference.run or "", reference.host)
    try:
        agent = local_client.connect(folder.own, timeout_s=10.0)
    except OSError as error:
        send({"error": f"no agent of {reference.run} answers on this host: {error}"})
        return
    agent.settimeout(None)
    with agent:
        while True:
            for ready in select.select([0, agent], [], [])[0]:
                data = os.read(0, CHUNK) if ready == 0 else agent.recv(CHUNK)
                if not data:
                    return
                if ready == 0:
                    agent.sendall(data)
                else:
                    _write_all(data)


def _write_all(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
