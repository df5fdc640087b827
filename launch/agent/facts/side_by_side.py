"""Sections that run side by side under one deadline.

Every section is a thread of its own, since a section may hang on a machine in trouble: in a file server, in a driver.
Nobody waits for a section beyond the deadline.
"""

import queue
import threading
import time
from typing import Any, Callable, Iterator, Mapping, Tuple, Union

from launch.agent.gpus.nvidia_smi import NoAnswer
from launch.agent.linux.kernel_log import Unreadable
from launch.agent.wire.host_facts import Gap

Piece = Tuple[str, Any]  # the name of a fact or a file, and its text or what becomes JSON
Section = Callable[[], Iterator[Piece]]


def pieces(sections: Mapping[str, Section], within_s: float) -> Iterator[Union[Piece, Gap]]:
    """Yield the pieces of all sections as they come, and a gap for each section that fails or is late."""
    until = time.monotonic() + within_s
    found: queue.Queue[Tuple[str, Union[Piece, Gap, None]]] = queue.Queue()
    running = dict.fromkeys(sections)
    for name, section in sections.items():
        threading.Thread(target=_run, args=(name, section, found), name=name, daemon=True).start()
    while running:
        try:
            name, piece = found.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            yield from (Gap(late, f"not done within {within_s:.0f} s", late=True) for late in running)
            return
        if piece is None:
            del running[name]
        else:
            yield piece


def _run(name: str, section: Section, found: "queue.Queue[Tuple[str, Union[Piece, Gap, None]]]") -> None:
    try:
        for piece in section():
            found.put((name, piece))
    except (Unreadable, NoAnswer) as why:
        found.put((name, Gap(name, str(why))))
    except Exception as error:  # one section must not keep the others from being reported
        found.put((name, Gap(name, f"{type(error).__name__}: {error}")))
    finally:
        found.put((name, None))
