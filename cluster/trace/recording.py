"""Trace one step into a file: ``train.trace`` in the hosts file.

Every worker traces the making of that step for itself; other steps cost nothing. What a worker's session did is
written beside its task's folder: ``trace/step_100.worker_1.json``.
"""

import contextlib
import json
import time
from pathlib import Path
from typing import Any, Iterator, List, Optional, Tuple

from cluster.protocol.shared_files import replace_file
from cluster.runtime.tf_compat import tf
from cluster.task import Train
from cluster.trace.chrome_format import Whole, trace
from cluster.trace.payload import Payload
from cluster.trace.spans import TraceSpan, clocks, count_unrecorded, on_one_clock, spans

TRIES = 5  # steps that are traced, at most, until TensorFlow has recorded all transfers of one


class Tracing:
    """Watch over one step of a worker, and over the next ones while TensorFlow has not recorded all of it.

    Args:
      task: the worker's name, ``worker:1``.
      folder: where to write; None for nowhere.
    """

    def __init__(self, task: str, settings: Train, folder: Optional[Path]):
        self._task, self._step, self._last, self._folder = task, settings.trace, settings.last_step, folder
        self._tries = 0  # that are left

    def begin(self, joined: int) -> None:
        """Prepare to trace, after this worker has joined at the global step ``joined``.

        If the step to trace is not to come, print why.
        """
        if self._step is None or self._folder is None:
            return
        to_come = joined < self._step <= self._last
        self._tries = TRIES if to_come else 0
        if not to_come:
            why = f"training ends at step {self._last}" if self._step > self._last else f"it joined at step {joined}"
            print(f"train.trace: {self._task} does not trace step {self._step}: {why}", flush=True)

    @contextlib.contextmanager
    def watch(self, session: Any, step: int, replica: Any) -> Iterator[Any]:
        """Yield the session for the step that follows ``step``; then write that step's trace.

        Where workers do not wait for each other, another worker may take the step that is to be traced. Then this
        worker traces its own next step.
        """
        if not self._tries or step + 1 < (self._step or 0):
            yield session
            return
        recorded = Recorded(session)
        yield recorded
        self._keep(step + 1, recorded, replica)

    def _keep(self, step: int, recorded: "Recorded", replica: Any) -> None:
        missing = count_unrecorded(recorded.devices)
        self._tries = self._tries - 1 if missing and step < self._last else 0
        whole = Whole(self._task, step, recorded.runs, missing)
        path = Path(str(self._folder)) / f"step_{whole.step}.{self._task.replace(':', '_')}.json"
        buckets = {bucket.name: bucket.names for bucket in replica.buckets}
        payload = Payload(replica.graph, replica.layout.sizes, buckets)
        try:
            self._write(path, whole, spans(recorded.devices, payload))
        except Exception as error:  # whatever a job's graph is like, or the disk: training goes on
            why = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            print(f"train.trace: {path} cannot be written: {why}", flush=True)
        else:
            lacks = f"; TensorFlow did not record {whole.unrecorded} of its transfers" if whole.unrecorded else ""
            more = ", so the next step is traced, too" if self._tries else ""
            print(f"train.trace: step {whole.step} is in {path}{lacks}{more}", flush=True)

    def _write(self, path: Path, whole: Whole, found: List[TraceSpan]) -> None:
        by_task = clocks(found, self._task)
        text = json.dumps(trace(whole, on_one_clock(found, by_task), by_task))
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text)


class Recorded:
    """A session that remembers what every ``run`` did.

    ``devices``: what TensorFlow measured on each device; ``runs``: (start, duration) of each in microseconds.
    """

    def __init__(self, session: Any):
        self._session = session
        self.devices: List[Any] = []
        self.runs: List[Tuple[int, int]] = []

    def run(self, fetches: Any, feed_dict: Any = None) -> Any:
        """``session.run``, measured."""
        measured = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        began_us = int(time.time() * 1e6)
        result = self._session.run(fetches, feed_dict, options=options, run_metadata=measured)
        self.runs.append((began_us, int(time.time() * 1e6) - began_us))
        self.devices.extend(measured.step_stats.dev_stats)
        return result
