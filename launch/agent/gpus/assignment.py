"""The GPUs of this host's tasks, reserved so that two runs never share a GPU by accident.

A reservation is an abstract Unix socket with the GPU's name. Only one process of the host, of any user, can bind it.
The kernel frees the socket however that process ends, and no file stays behind. A process that connects receives the
name of the holder.

Any user of the host can bind the name. So ``who_holds`` returns the pid and the user that the kernel reports. It
returns the holder's own text only if the holder belongs to this user or to root.
"""

import asyncio
import os
import pwd
import socket
import struct
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from cluster.protocol.outcome import one_line
from launch.agent.errors import AgentError
from launch.agent.linux import sockets

Wish = Union[str, Sequence[int]]  # "all", "share", or indices


def needs_list(wishes: Mapping[str, Wish]) -> bool:
    """Return whether any task asks for GPUs."""
    return any(wish for wish in wishes.values())


def allotted(found: Sequence[str], environ: Mapping[str, str]) -> List[int]:
    """Return the indices of the GPUs that this process may use: those of its Slurm step, or all outside Slurm.

    Where Slurm does not hide the GPUs of other jobs, only ``CUDA_VISIBLE_DEVICES`` shows the step's GPUs.

    Args:
      found: the UUIDs of the host's GPUs, by index.
    """
    named = environ.get("CUDA_VISIBLE_DEVICES") if "SLURM_STEP_ID" in environ else None
    if named is None:
        return list(range(len(found)))
    numbers = {
        **{str(index): index for index in range(len(found))},
        **{uuid: index for index, uuid in enumerate(found)},
    }
    return [numbers[word] for word in named.split(",") if word in numbers]


def give_allotted(wishes: Mapping[str, Wish], found: Sequence[str], environ: Mapping[str, str]) -> Dict[str, List[int]]:
    """Return {task: its GPUs}, with the indices that nvidia-smi uses.

    The indices in ``wishes`` count only the ``allotted`` GPUs, from 0.

    Raises:
      ValueError: as for ``give``.
    """
    usable = allotted(found, environ)
    return {task: [usable[number] for number in given] for task, given in give(wishes, len(usable)).items()}


def give(wishes: Mapping[str, Wish], available: int) -> Dict[str, List[int]]:
    """Return {task: the indices of its GPUs}, on a host with ``available`` GPUs.

    Tasks with the wish ``share`` get equally many of the GPUs that the other tasks leave. A remainder stays unused:
    every step waits for the slowest worker, so one more GPU for one worker would not help.

    Raises:
      ValueError: a task asks for a GPU that this host does not have.
    """
    given: Dict[str, List[int]] = {}
    for task, wish in wishes.items():
        if wish != "share":
            given[task] = list(range(available)) if wish == "all" else [int(i) for i in wish]
            missing = [index for index in given[task] if index >= available]
            if missing:
                raise ValueError(f"{task}: expected GPU {missing[0]}, found {available} GPU(s) on this host")
    sharing = [task for task, wish in wishes.items() if wish == "share"]
    free = [index for index in range(available) if not any(index in indices for indices in given.values())]
    each = len(free) // len(sharing) if sharing else 0
    for rank, task in enumerate(sharing):
        given[task] = free[rank * each : (rank + 1) * each]
    return given


ANSWER_S = 2.0
LONGEST = 200  # characters of a holder's description of itself
_NAME = "launch/gpu/"  # the beginning of a booking's name; the name of its GPU follows
_CREDENTIALS = struct.Struct("iII")  # of SO_PEERCRED: pid, user, group


class GpuTaken(AgentError):
    """The error that another run of this host has reserved a GPU."""


class Bookings:
    """The GPUs that an agent has reserved, until it ends or releases them.

    Args:
      identities: the UUID of each GPU of this host, by index.
      holder: the answer to processes that connect, as in ``digits-20261120-155902 (agent pid 4242)``.
    """

    def __init__(self, identities: Sequence[str], holder: str):
        self._identities, self._holder = identities, holder
        self._sockets: List[socket.socket] = []
        self._servers: List[Any] = []

    def book(self, given: Mapping[str, Sequence[int]]) -> None:
        """Reserve the GPUs of every task, ``given`` as {task: indices}.

        Raises:
          GpuTaken: a GPU is taken; the text names the task, the GPU and its holder. No GPU stays reserved.
        """
        for task, indices in given.items():
            for index in indices:
                self._book(task, index)

    def _book(self, task: str, index: int) -> None:
        booked = sockets.book(f"{_NAME}{self._identities[index]}")
        if booked is None:
            self.release()
            held = who_holds(self._identities[index]) or "another run"
            raise GpuTaken(f"GPU {index} of {task} is held by {held}; end that run or choose another GPU")
        booked.listen(16)
        self._sockets.append(booked)

    async def answer(self) -> None:
        """From now on, send the text ``holder`` to every process that connects to a reserved GPU's socket."""
        for booked in self._sockets:
            self._servers.append(await asyncio.start_unix_server(self._tell, sock=booked))

    async def _tell(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(self._holder.encode())
        writer.close()

    def release(self) -> None:
        """Release the GPUs, so that other runs can reserve them."""
        for server in self._servers:
            server.close()
        for booked in self._sockets:
            booked.close()
        self._servers, self._sockets = [], []


def who_holds(identity: str) -> Optional[str]:
    """Return a text about the process that has reserved a GPU; None for a free GPU."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(ANSWER_S)
        try:
            caller.connect(f"\0{_NAME}{identity}")
        except ConnectionRefusedError:
            return None
        except OSError:  # the holder's queue of callers is full
            return "a process that does not answer"
        pid, user, _ = _CREDENTIALS.unpack(caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        if user not in (0, os.getuid()):
            return f"pid {pid} of user {_name_of(user)}"
        return _said(caller) or f"pid {pid}, another run"


def _said(caller: socket.socket) -> str:
    """Return a holder's description of itself, on one line without control characters.

    The result is "" where the holder does not answer in time.
    """
    try:
        told = caller.recv(4 * LONGEST).decode(errors="replace")
    except OSError:
        return ""
    return one_line(told)[:LONGEST]


def _name_of(user: int) -> str:
    try:
        return f"{pwd.getpwuid(user).pw_name} (uid {user})"
    except KeyError:
        return f"with uid {user}"
