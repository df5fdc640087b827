"""Trace one step into a file: ``train.trace`` in the hosts file.

Every worker traces the same step separately; other steps cost nothing. A worker's trace is written next to its task's
folder: ``trace/step_100.worker_1.json``.

A transfer between a worker and a ps has the names of the variables whose values, or gradients, it contains. The module
finds these variables in the graph around the transferred tensor.
"""

import contextlib
import json
import re
import time
from pathlib import Path
from typing import Any, Container, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from cluster.protocol.shared_files import replace_file
from cluster.runtime.tf_compat import tf
from cluster.steps.exchange import is_outbox
from cluster.task import Train
from cluster.trace.chrome_format import Whole, trace
from cluster.trace.spans import DevicePlace, TraceSpan, Transfer, clocks, count_unrecorded, on_one_clock, spans
from cluster.variables.masters import author_name

_ACCUMULATES = "AccumulatorApplyGradient"  # its first input is the accumulator
_CHANGES = re.compile(r"Apply|Scatter|Assign")  # the first input of these operations is the variable
_GRADIENTS = re.compile(r"gradient|grad|delta|indices|updates|value")  # other inputs are rates, steps and the like
_SHAPES = ("Reshape", "StridedSlice")
_TASK = re.compile(r"/job:(\w+)/(?:replica:\d+/)?task:(\d+)")
Step = Tuple[Set[str], List[Any]]  # variables that an operation leads to, and the operations to search next
TRIES = 5  # the largest number of traced steps until TensorFlow has recorded all transfers of one


class Tracing:
    """The tracing of a worker's step, and of the next ones until a whole step is recorded: at most ``TRIES`` steps.

    Args:
      task: the worker's name, ``worker:1``.
      folder: the folder of the file; None writes no file.
    """

    def __init__(self, task: str, settings: Train, folder: Optional[Path]):
        self._task, self._step, self._last, self._folder = task, settings.trace, settings.last_step, folder
        self._tries = 0  # the number of tries that are left

    def begin(self, joined: int) -> None:
        """Prepare to trace, after this worker has joined at the global step ``joined``.

        If this worker will not take the step to trace, print the reason.
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
        """Yield the session for the step after ``step``; then write its trace, if it is the step to be traced.

        If workers do not wait for each other, another worker may take the step to be traced. Then this worker traces
        its own next step.
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
        except Exception as error:  # training continues whatever fails here: the job's graph, or the disk
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
    """A session that records every ``run``.

    ``devices``: TensorFlow's measurements on each device; ``runs``: (start, duration) of each call in microseconds.
    """

    def __init__(self, session: Any):
        self._session = session
        self.devices: List[Any] = []
        self.runs: List[Tuple[int, int]] = []

    def run(self, fetches: Any, feed_dict: Any = None) -> Any:
        """Call ``session.run`` and measure the call."""
        measured = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        began_us = int(time.time() * 1e6)
        result = self._session.run(fetches, feed_dict, options=options, run_metadata=measured)
        self.runs.append((began_us, int(time.time() * 1e6) - began_us))
        self.devices.extend(measured.step_stats.dev_stats)
        return result


class Payload:
    """A function that names the variables, or slices, whose values or gradients are in a transfer.

    Transfers that only coordinate the tasks have no names: steps, counts, tokens, numbers of rows.

    Args:
      variables: the names of the model's variables.
      buckets: the names of the variables in each bucket, by the bucket's name. The names of the servers' accumulators
        and outboxes begin with the bucket's name.
    """

    def __init__(self, graph: Any, variables: Container[str], buckets: Mapping[str, Sequence[str]]):
        self._graph, self._variables, self._buckets = graph, variables, buckets

    def __call__(self, transfer: Transfer) -> List[str]:
        try:
            op = self._graph.get_operation_by_name(transfer.tensor)
        except (KeyError, ValueError):  # made by TensorFlow itself
            return []
        if transfer.source.is_ps:
            return self._made_of(op)
        return self._made_into(op, transfer.target) if transfer.target.is_ps else []

    def _made_of(self, op: Any) -> List[str]:
        """Return the variables on its own task from which a tensor was computed."""
        here = _task_of(op)
        seen, left = {op}, [op]
        while left:
            new = {taken.op for taken in left.pop().inputs} - seen
            left += [each for each in new if _task_of(each) == here]
            seen |= new
        return sorted(name for each in seen for name in self._held_by(each))

    def _held_by(self, op: Any) -> Sequence[str]:
        """Return the variables that an operation is, or whose values the operation holds for sending."""
        if op.type == "VariableV2" and is_outbox(op):
            return self._buckets.get(_push_of(op), [])
        name = author_name(op)
        return [name] if name in self._variables else []

    def _made_into(self, op: Any, target: DevicePlace) -> List[str]:
        """Return the variables that a tensor changes with the fewest operations.

        Through the norm that clips gradients, a tensor changes every variable.
        """
        seen, level = {op}, [op]
        while level:
            steps = [self._used_by(each, target) for each in level]
            names = {name for found, _ in steps for name in found}
            if names:
                return sorted(names)
            level = list(dict.fromkeys(each for _, ops in steps for each in ops if each not in seen))
            seen.update(level)
        return []

    def _used_by(self, op: Any, target: DevicePlace) -> Step:
        """Return the variables that the users of an operation change, and these users.

        The users are on the ``target``, and then, where gradients are clipped, on another ps.
        """
        travelled = _task_of(op).startswith("ps:")
        names, further = set(), []
        for user, position in _users(op):
            task = _task_of(user)
            if task == target.task or (task.startswith("ps:") if travelled else user.type == "Identity"):
                names.update(self._changed(user, position))
                further.append(user)
        return names, further

    def _changed(self, op: Any, position: int) -> Set[str]:
        """Return the variables whose gradients an operation applies or collects.

        The gradient is the input at ``position`` among the operation's inputs.
        """
        is_change = _CHANGES.search(op.type) and _GRADIENTS.match(op.op_def.input_arg[position].name)
        if is_change and op.type.endswith(_ACCUMULATES):
            push = _push_of(op.inputs[0].op)
            return set(self._buckets.get(push, [push]))
        name = author_name(op.inputs[0].op) if is_change else ""
        return {name} if name in self._variables else set()


def _push_of(op: Any) -> str:
    """Return the name of the push that an accumulator collects, or that an outbox holds."""
    name: str = op.get_attr("shared_name").decode()
    return name.rpartition("/")[0]


def _users(op: Any) -> Iterator[Tuple[Any, int]]:
    """Yield the users of an operation's outputs, whatever their shape, each with the position among its inputs."""
    for output in op.outputs:
        for user in output.consumers():
            if user.type in _SHAPES and user.inputs[0] is output:
                yield from _users(user)
            else:
                yield from ((user, at) for at, taken in enumerate(user.inputs) if taken is output)


def _task_of(op: Any) -> str:
    found = _TASK.search(op.device)
    return f"{found[1]}:{found[2]}" if found else ""
