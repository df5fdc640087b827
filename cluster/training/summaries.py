"""Write the values of a run that TensorBoard shows.

The chief writes these values into ``summaries`` in the run's folder, every few seconds, for its step at that time.

    tag                     value
    loss                    the loss of the chief's own batch
    steps_per_second        the rate since the last values; and examples_per_second of all workers
    learning_rate           the learning rate of that step
    gradient_norm           before clipping: of the mean gradient of all workers, or in async of the chief's gradient
    step_time_ms/worker_1   the newest reported step time of each worker
    training/auc            metrics of the newest examples of all workers
    (any other)             ``tf.summary`` operations of the job's own model, of the chief's first tower

The chief fetches due values together with a step. So other steps cost no more, and no example is used twice.
"""

import contextlib
import math
import os
import socket
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional

from cluster.runtime.tf_compat import tf
from cluster.training.callbacks import Callback, Step
from cluster.training.run_steps import TrainingMetrics

EVERY_S = 5.0


class Summaries(Callback):
    """The callback that fetches the values that are due, and writes them into a TensorBoard event file.

    Args:
      folder: the folder of the file; None writes nothing.
      scalars: tensors by their tags, which are fetched when they are due.
      steps: the last step of the run, whose values are always written.
      global_batch_size: the number of examples in a step of all workers.
      metrics: the metrics of the newest examples; None where the model has no metrics.
    """

    def __init__(
        self,
        folder: Optional[Path],
        scalars: Mapping[str, Any],
        steps: int,
        global_batch_size: int,
        metrics: Optional[TrainingMetrics] = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._file = None if folder is None else EventFile(folder)
        self._tags, self._tensors = list(scalars), list(scalars.values())
        self._steps, self._global_batch_size, self._metrics, self._clock = steps, global_batch_size, metrics, clock
        self._own = tf.get_collection(tf.GraphKeys.SUMMARIES)
        self._step: Optional[int] = None  # that was written last, at _at
        self._at = 0.0
        self._grown_at = 0.0  # when that step was written first

    def fetches(self, step: int) -> List[Any]:
        """Return the fetches for the step that follows ``step``: [] unless values are due."""
        due = self._step is None or self._clock() - self._at >= EVERY_S or step + 1 >= self._steps
        return [self._tensors, *self._own] if due and self._file else []

    def note(self, session: Any, step: Step, fetched: List[Any]) -> None:
        """Write ``fetched``, the values from ``step``, and the newest metrics; skip a step without examples."""
        if not fetched or not step.examples or self._file is None:
            return
        metrics = self._metrics.latest if self._metrics else {}
        defined = {f"training/{name}": each for name, each in metrics.items() if math.isfinite(each)}
        scalars = dict(zip(self._tags, map(float, fetched[0])))
        values = {**defined, "loss": step.loss, **scalars, **self._rates(step.number)}
        began = self._step is None or step.number <= self._step
        self._at = self._clock()
        if step.number != self._step:
            self._step, self._grown_at = step.number, self._at
        self._file.write(step.number, values, fetched[1:], began)

    def _rates(self, step: int) -> Dict[str, float]:
        if self._step is None or step <= self._step:
            return {}
        rate = (step - self._step) / max(self._clock() - self._grown_at, 1e-9)
        return {"steps_per_second": rate, "examples_per_second": rate * self._global_batch_size}


class EventFile:
    """A file of events as TensorBoard reads them; the first event creates it.

    ``tf.summary.FileWriter`` writes in a thread. A full disk ends that thread, and the writer then waits for it for
    ever. This class writes every event at once, and training continues if that fails.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._path: Optional[Path] = None  # of the newest file
        self._writer: Any = None
        self._failed = False

    def write(self, step: int, values: Mapping[str, float], more: List[bytes], began: bool) -> None:
        """Append one event of scalars and ready-made summaries; print an error of the disk, and never raise it.

        Args:
          step: the global step of the event.
          values: the scalars, by their tags.
          more: serialized summaries.
          began: whether TensorBoard must drop earlier events of this step and later ones. An attempt wrote these events
            before the run was restored to an earlier step.
        """
        summary = tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()])
        for each in more:
            summary.MergeFromString(each)
        events = [tf.Event(session_log=tf.SessionLog(status=tf.SessionLog.START))] if began else []
        try:
            self._append([*events, tf.Event(summary=summary)], step)
        except (OSError, tf.errors.OpError) as error:
            if not self._failed:
                print(f"summaries not written into {self._folder}: {error}", flush=True)
            self._failed, self._writer = True, None
            self._remove_empty()

    def _append(self, events: List[Any], step: int) -> None:
        if self._writer is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            name = f"events.out.tfevents.{time.time():.0f}.{socket.gethostname()}.{os.getpid()}"
            self._path = self._folder / name
            self._writer = tf.python_io.TFRecordWriter(str(self._path))
            self._writer.write(tf.Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
        for event in events:
            event.wall_time, event.step = time.time(), step
            self._writer.write(event.SerializeToString())
        self._writer.flush()  # what has been written survives a process that is killed

    def _remove_empty(self) -> None:
        """Remove the newest file if it is empty, as on a full disk; every try begins a new one."""
        with contextlib.suppress(OSError):
            if self._path is not None and self._path.stat().st_size == 0:
                self._path.unlink()
