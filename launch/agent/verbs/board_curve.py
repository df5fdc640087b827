"""The program of ``launch board`` on the chief's host: it runs TensorBoard, and writes the learning curve as summaries.

    python board_curve.py STATUS FOLDER [options of TensorBoard]

STATUS is the run's ``status.json``. The program writes the points of its ``history`` to FOLDER, and adds new points
every few seconds. So a run without its own summaries has a curve, and a resumed run also has the earlier part of its
curve. The Python is the tasks' Python: the program needs only TensorBoard, and nothing of this project.
"""

import contextlib
import itertools
import json
import runpy
import sys
import threading
import time
from typing import Any, Dict, Iterable, Iterator, Set, Tuple

EVERY_S = 5.0
Point = Tuple[int, str, float]  # step, name, value


def points(status: Dict[str, Any]) -> Iterator[Point]:
    """Yield the points of a run's status, except the newest loss and speed while the run is running.

    These two points are means over a range of steps that still grows.
    """
    history, is_over = status["history"], status["state"] != "running"
    rows = list(zip(history["step"], history["loss"], history["steps_per_second"]))
    for step, loss, rate in rows if is_over else rows[:-1]:
        yield step, "loss", loss
        yield step, "steps per second", rate
    for each in history["evaluations"]:
        yield from ((each["step"], name, value) for name, value in each.items() if name != "step")


def writer_of(folder: str) -> Any:
    """Return a writer of summaries to ``folder``; None without TensorBoard, which reports it itself."""
    try:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError:
        return None
    return EventFileWriter(folder)


def follow(path: str, writer: Any, turns: Iterable[float]) -> None:
    """Write the points of the status at ``path``; in every turn, write only the new points.

    ``turns`` are the seconds to wait after each turn.
    """
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    written: Set[Point] = set()
    for seconds in turns:
        with contextlib.suppress(OSError, ValueError, LookupError):  # a status that is written, or damaged
            with open(path, encoding="utf-8") as file:
                found = {point for point in points(json.load(file)) if point[2] is not None}
            for step, name, value in sorted(found - written):
                summary = Summary(value=[Summary.Value(tag=f"curve/{name}", simple_value=value)])
                writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))
            writer.flush()
            written |= found
        time.sleep(seconds)


if __name__ == "__main__":
    sys.path.pop(0)  # this folder, whose modules have names that others may look for
    status, folder = sys.argv.pop(1), sys.argv.pop(1)
    # The writer loads TensorFlow. In a thread beside TensorBoard, which loads it too, each could wait for the other.
    writer = writer_of(folder)
    if writer is not None:
        threading.Thread(target=follow, args=(status, writer, itertools.repeat(EVERY_S)), daemon=True).start()
    runpy.run_module("tensorboard.main", run_name="__main__", alter_sys=True)
