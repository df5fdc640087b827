"""The processors of this host's tasks, each reserved for one task of one run; and the memory of NUMA nodes.

A run reserves a processor like a GPU: by an abstract Unix socket. Only one process can bind the socket, and the kernel
frees it when that process ends. A run that finds a processor reserved takes another one.

The C library has no function that binds memory, and libnuma is not on every host. So this module makes the system call
by its number.
"""

import ctypes
import os
import platform
import re
import socket
from pathlib import Path
from typing import Callable, Dict, List, Mapping, Sequence, Set, Tuple

from cluster.protocol.quantity import quantity
from cluster.protocol.settings import Limits
from launch.agent.errors import AgentError
from launch.agent.linux import sockets
from launch.agent.linux.procfs import names_in, text_of

NODES = Path("/sys/devices/system/node")
_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237, "ppc64le": 261}  # the number of the system call, by machine
_MPOL_BIND = 2
_MOST_NODES = 1024
_libc = ctypes.CDLL(None, use_errno=True)


def numa_nodes(folder: Path = NODES) -> Dict[int, Set[int]]:
    """Return {NUMA node: its processors}; {} on a kernel without NUMA."""
    found = (re.fullmatch(r"node(\d+)", name) for name in names_in(folder))
    return {int(each.group(1)): processors_in(text_of(folder / each.group() / "cpulist")) for each in found if each}


def processors_in(text: str) -> Set[int]:
    """Return the numbers in a list in the kernel's notation, such as ``0-3,8``."""
    ranges = (part.partition("-") for part in text.strip().split(",") if part)
    return {number for first, _, last in ranges for number in range(int(first), int(last or first) + 1)}


def bind_memory(node: int) -> None:
    """Bind the memory of this process and its children to one NUMA node. Raises OSError."""
    number = _SET_MEMPOLICY.get(platform.machine())
    if number is None:
        raise OSError(f"the launcher cannot bind memory to a NUMA node on {platform.machine()}")
    bits = 8 * ctypes.sizeof(ctypes.c_ulong)
    mask = (ctypes.c_ulong * (_MOST_NODES // bits))()
    mask[node // bits] = 1 << node % bits
    # One more than the number of bits: the kernel subtracts one.
    if _libc.syscall(number, _MPOL_BIND, mask, ctypes.c_ulong(_MOST_NODES + 1)):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


_NAME = "launch/processor/"
_SOCKETS = Path("/proc/net/unix")


class ImpossibleLimit(AgentError):
    """The error that this host cannot enforce a limit. Its text has the expected and the found values."""


class Booked:
    """The processors that an agent has reserved, until it ends or releases them."""

    def __init__(self) -> None:
        self._sockets: List[socket.socket] = []

    def take(self, processor: int) -> bool:
        """Reserve a processor; return False where another process has it."""
        booking = sockets.book(f"{_NAME}{processor}")
        if booking is not None:
            self._sockets.append(booking)
        return booking is not None

    def release(self) -> None:
        """Release the processors, so that other runs can reserve them."""
        for booking in self._sockets:
            booking.close()
        self._sockets = []


def booked(table: Path = _SOCKETS) -> Set[int]:
    """Return the processors of this host that any run has reserved."""
    return {int(number) for number in re.findall(rf" @{_NAME}(\d+)$", text_of(table), re.MULTILINE)}


def give(
    wishes: Mapping[str, Limits], usable: Set[int], nodes: Mapping[int, Set[int]], take: Callable[[int], bool]
) -> Dict[str, Tuple[int, ...]]:
    """Return the processors of each task with a limit on processors: {task: processors}.

    Tasks with a NUMA node choose first, since the other tasks may take any processor. A task with the limit
    ``numa_node`` but without ``processors`` gets all processors of its node, and shares them with other tasks.

    Args:
      usable: the processors that this process may use.
      nodes: the processors of each NUMA node.
      take: reserves a processor, and returns False where another run has it.

    Raises:
      ImpossibleLimit: too few processors are free, or the node does not exist.
    """
    given: Dict[str, Tuple[int, ...]] = {}
    free = sorted(usable)
    for task, limits in sorted(wishes.items(), key=lambda wish: wish[1].numa_node is None):
        near = usable if limits.numa_node is None else _of_node(task, limits.numa_node, usable, nodes)
        if limits.processors is not None:
            given[task] = _first(task, limits.processors, [each for each in free if each in near], take)
            free = [each for each in free if each not in given[task]]
        elif limits.numa_node is not None:
            given[task] = tuple(sorted(near))
    return given


def _of_node(task: str, node: int, usable: Set[int], nodes: Mapping[int, Set[int]]) -> Set[int]:
    near = nodes.get(node, set()) & usable
    if not near:
        known = ", ".join(str(each) for each in sorted(nodes) if nodes[each] & usable) or "none"
        raise ImpossibleLimit(
            f"limits.numa_node of {task}: expected a NUMA node with processors ({known}), found {node}"
        )
    return near


def _first(task: str, count: int, free: Sequence[int], take: Callable[[int], bool]) -> Tuple[int, ...]:
    """Take the first free processors."""
    taken: List[int] = []
    for processor in free:
        if len(taken) < count and take(processor):
            taken.append(processor)
    if len(taken) < count:
        found = f"{len(taken)} that no other task or run has"
        raise ImpossibleLimit(f"limits.processors of {task}: expected {quantity(count, 'processor')}, found {found}")
    return tuple(taken)
