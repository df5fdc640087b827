"""The GPUs that each task of this host gets, booked so that two runs never share one by accident.

A booking is an abstract Unix socket named after the GPU. The kernel lets one process of the host bind this socket,
of whatever user. The kernel frees the socket when that process ends, however it ends, so that no file stays behind.
A process that connects receives the name of the holder.

Any user of the host can bind such a name. So ``who_holds`` returns the pid and the user that the kernel reports. It
returns the holder's own description only for a process of our own user or of root.
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
    """Return whether any task wishes for GPUs at all."""
    return any(wish for wish in wishes.values())


def allotted(found: Sequence[str], environ: Mapping[str, str]) -> List[int]:
    """Return the indices of the GPUs that this process may use: in a step of Slurm those of the step, else all.

    Where Slurm does not hide the GPUs of other jobs, ``CUDA_VISIBLE_DEVICES`` alone has the step's.

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
    """The GPUs of each task as nvidia-smi counts them; wishes count the ``allotted`` ones. Raises as ``give``."""
    usable = allotted(found, environ)
    return {task: [usable[number] for number in given] for task, given in give(wishes, len(usable)).items()}


def give(wishes: Mapping[str, Wish], available: int) -> Dict[str, List[int]]:
    """The GPUs of each task: {task: indices}, none of them given twice.

    ``share`` is an equal share of what the explicit wishes leave; what does not divide
    stays free, since unequal workers make every step wait for the slowest.

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
LONGEST = 200  # characters of what a holder says of itself
_NAME = "launch/gpu/"  # of a booking's socket, before that of its GPU
_CREDENTIALS = struct.Struct("iII")  # of SO_PEERCRED: pid, user, group


class GpuTaken(AgentError):
    """A GPU is booked by another run of this host."""


class Bookings:
    """The GPUs that one agent holds until it ends.

    Args:
      identities: a name of each GPU of this host, by index.
      holder: the answer to others: ``digits-20261120-155902 (agent pid 4242)``.
    """

    def __init__(self, identities: Sequence[str], holder: str):
        self._identities, self._holder = identities, holder
        self._sockets: List[socket.socket] = []
        self._servers: List[Any] = []

    def book(self, given: Mapping[str, Sequence[int]]) -> None:
        """Books the GPUs of every task: {task: indices}.

        Raises:
          GpuTaken: names the task, the GPU and who holds it; nothing stays booked.
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
        """Answer everyone who connects from now on with the holder of these GPUs."""
        for booked in self._sockets:
            self._servers.append(await asyncio.start_unix_server(self._tell, sock=booked))

    async def _tell(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(self._holder.encode())
        writer.close()

    def release(self) -> None:
        """Release these GPUs, so that others may book them again."""
        for server in self._servers:
            server.close()
        for booked in self._sockets:
            booked.close()
        self._servers, self._sockets = [], []


def who_holds(identity: str) -> Optional[str]:
    """Return the holder of a GPU, in words; None where nobody holds the GPU."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(ANSWER_S)
        try:
            caller.connect(f"\0{_NAME}{identity}")
        except ConnectionRefusedError:
            return None
        except OSError:  # its queue of callers is full
            return "a process that does not answer"
        pid, user, _ = _CREDENTIALS.unpack(caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        if user not in (0, os.getuid()):
            return f"pid {pid} of user {_name_of(user)}"
        return _said(caller) or f"pid {pid}, another run"


def _said(caller: socket.socket) -> str:
    """Return a holder's description of itself, on one line without control characters.

    The result is "" where the holder sends nothing in time.
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
