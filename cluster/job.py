"""A job: what is trained, as three to five plain functions in one file.

inputs(task, args)    -> tf.data.Dataset of {name: tensor}; this worker's shard, repeated, batched by task.batch_size
model(**batch)        -> loss per example [batch], or (loss, {metric: value per example [batch]}), whose means are
                         reported; a metric may also be one of ``cluster.metrics``, or a pair (label, score), which
                         is ``metrics.auc`` of them; a model with a parameter ``args`` gets the job's args in it,
                         and one with a parameter ``training`` whether it trains (True) or is evaluated (False)
optimizer(args)       -> tf.train.Optimizer
evaluate(task, args)  -> optional; a finite dataset of held-out examples, batched
predict(**batch)      -> optional; {name: tensor} of a batch without labels, for ``cluster.serving``

The batch of ``model`` is one part of a step's: of one tower of one worker, in one of its accumulated batches. The loss
of an example must not depend on the others, as with negatives from the same batch, weights that are divided by their
sum, or the batch's mean. With more than one part it is another loss than in one process; docs/jobs.md has remedies.
"""

import contextlib
import errno
import functools
import importlib
import importlib.util
import inspect
import linecache
import operator
import re
import sys
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from cluster.errors import ClusterError, JobError
from cluster.metrics import Metric

_FUNCTIONS = ("inputs", "model", "optimizer")
_OPTIMIZER = "/python/training/optimizer.py"  # TensorFlow's file of it
_LONGEST = 100  # characters of a line that an error quotes


@dataclass(frozen=True)
class Job:
    """The functions of a job and the file they are from."""

    path: str
    inputs: Callable[..., Any]
    model: Callable[..., Any]
    optimizer: Callable[..., Any]
    evaluate: Optional[Callable[..., Any]] = None
    predict: Optional[Callable[..., Any]] = None

    @classmethod
    def from_module(cls, module: ModuleType) -> "Job":
        """Return the job that ``module`` defines.

        Raises:
          JobError: a function is missing.
        """
        path = str(module.__file__)
        missing = [name for name in _FUNCTIONS if not callable(getattr(module, name, None))]
        if missing:
            script = "; a script that trains by itself goes under `command:`" if "inputs" in missing else ""
            found = f"found no {', '.join(missing)}{script}"
            raise JobError(f"{path}: expected the functions {', '.join(_FUNCTIONS)}; {found}")
        evaluate, predict = (getattr(module, name, None) for name in ("evaluate", "predict"))
        return cls(path, module.inputs, module.model, module.optimizer, evaluate, predict)

    @contextlib.contextmanager
    def blame(self) -> Iterator[None]:
        """Turn an exception inside the job's code into a ``JobError`` that names file and line."""
        try:
            yield
        except ClusterError:
            raise
        except Exception as error:
            raise JobError(self.blamed(error)) from error

    def blamed(self, error: Exception) -> str:
        """Return an error of building the graph with the place in this job that is at fault.

        Without a line of its own it is that of the function that was called wrongly, or whose optimizer failed.
        """
        place = _place(self.path, error)
        if place == self.path:
            called = [name for name in (*_FUNCTIONS, "evaluate") if str(error).startswith(f"{name}() ")]
            called += ["optimizer"] if _is_of_optimizer(error) else []
            place = self.place(called[0]) if called else place
        return _told(place, error)

    def line_that_raised(self, error: Any) -> Optional[str]:
        """Return ``file:line`` of this job whose Python, run by a session, raised ``error``, else None."""
        lines = re.findall(rf'File "{re.escape(self.path)}", line (\d+)', str(error.message))
        return f"{self.path}:{lines[-1]}" if lines else None

    def line_that_made(self, error: Any, graph: Any, task: str = "") -> Optional[str]:
        """Return ``file:line`` of this job that made an operation named by ``error``, else None.

        Args:
          error: an error of a session.
          task: only operations on devices of it count; "" for those of any task.
        """
        ops = [op for op in _ops_named_by(error, graph) if op.device.startswith(task)]
        lines = [line for op in ops for line in _lines_of_op(self.path, op)[-1:]]
        return f"{self.path}:{lines[0]}" if lines else None

    def place(self, function: str) -> str:
        """``file:line`` where one of the job's functions begins."""
        found = inspect.unwrap(getattr(self, function))
        while isinstance(found, functools.partial):
            found = found.func
        code = getattr(found, "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code else self.path

    def with_args(self, args: Mapping[str, Any]) -> "Job":
        """Return this job, for training, with ``args`` bound to its model if that has such a parameter."""
        return self._bound(args=args, training=True)

    def for_evaluation(self) -> "Job":
        """Return this job with ``training`` False for its model, if that has such a parameter."""
        return self._bound(training=False)

    def _bound(self, **values: Any) -> "Job":
        asked = inspect.signature(self.model).parameters
        values = {name: value for name, value in values.items() if name in asked}
        return replace(self, model=functools.partial(self.model, **values)) if values else self

    def check(self, function: str, expected: str, found: Any, ok: bool) -> None:
        """Refuse ``found``, which one of the job's functions returned, unless ``ok``.

        Raises:
          JobError: ``ok`` is false.
        """
        if not ok:
            raise JobError(f"{self.place(function)}: {function} returned {found}; expected {expected}")

    def losses(self, output: Any) -> Tuple[Any, Dict[str, Any]]:
        """Return the output of ``model`` as loss and metrics per example, [batch] each.

        Several losses by name are trained on their sum, and each is a metric. A metric may be one of
        ``cluster.metrics`` instead, or a pair of such tensors, a label and a score. It may also be what ``tf.metrics``
        returns: a value of no dimensions, its update.

        Raises:
          JobError: the output is neither losses nor a pair of losses and a mapping, or not one value per example.
        """
        loss, metrics = output if isinstance(output, tuple) and len(output) == 2 else (output, {})
        self.check(
            "model", "a loss, {name: loss}, or a pair of one and {metric: tensor}", output, isinstance(metrics, dict)
        )
        named = loss if isinstance(loss, dict) else {"loss": loss}
        self.check("model", "losses and metrics by names", output, all(isinstance(n, str) for n in [*named, *metrics]))
        self.check("model", "losses and metrics of different names", [*named, *metrics], not set(named) & set(metrics))
        self.check("model", "losses of names other than 'loss'", [*named], named is not loss or "loss" not in named)
        plain = {name: value for name, value in metrics.items() if not isinstance(value, Metric)}
        for name, value in {**plain, **named}.items():
            self._check_per_example(name, value)
        for name, value in named.items():
            self.check("model", f"a {name} of a type like float32", value, value.dtype.is_floating)
        sliced = tuple(f"{name}/" for name in metrics if name not in plain)
        taken = [name for name in {**metrics, **named} if name.startswith(sliced)]
        self.check("model", "names that are none of a metric's slices", taken, not taken)
        if named is loss:
            self.check("model", "at least one loss", output, bool(named))
            return functools.reduce(operator.add, named.values()), {**named, **metrics}
        return loss, metrics

    def _check_per_example(self, name: str, value: Any) -> None:
        is_pair = isinstance(value, tuple) and len(value) == 2
        if is_pair and _rank(value[0]) == 0:  # of tf.metrics
            return
        for part in value if is_pair else (value,):
            mean = "; leave the mean to the cluster" if _rank(part) == 0 else ""
            self.check("model", f"one {name} per example, of shape [batch]{mean}", part, _rank(part) in (None, 1))


def _rank(value: Any) -> Optional[int]:
    """Return a tensor's number of dimensions; None where unknown, -1 for anything else."""
    found: Optional[int] = getattr(getattr(value, "shape", None), "ndims", -1)
    return found


def load(name: str, folder: Path) -> Job:
    """Return the job called ``name``: a path to a .py file, a dotted module, or a bare name in ``folder``.

    Raises:
      JobError: there is no such job, or importing it fails; names file and line.
    """
    if name.endswith(".py") or "/" in name:
        return Job.from_module(_from_file(Path(name)))
    if "." in name:
        return Job.from_module(_from_module(name))
    path = folder / f"{name}.py"
    if not path.is_file():
        raise JobError(f"job {name!r}: expected a file {path}, found none; jobs there: {', '.join(_jobs_in(folder))}")
    return Job.from_module(_from_file(path))


def _jobs_in(folder: Path) -> List[str]:
    """Return the sorted names of the files in ``folder`` that define a model.

    Other files there are no jobs.
    """
    return sorted(path.stem for path in folder.glob("*.py") if "\ndef model(" in path.read_text())


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise JobError(f"job {path}: expected a Python file, found none; the path is relative to {Path.cwd()}")
    path = path.resolve()
    spec = importlib.util.spec_from_file_location(f"job_{path.stem}", str(path))
    if spec is None or spec.loader is None:
        raise JobError(f"job {path}: expected a Python file, found a name that does not end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    sys.path.append(str(path.parent))  # so that a job may import what lies beside it
    with _import_blamed(str(path)):
        spec.loader.exec_module(module)
    return module


def _from_module(name: str) -> ModuleType:
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        raise JobError(f"job {name}: {error}; a dotted job is a module that Python can import") from error
    if found is None or found.origin is None:
        raise JobError(f"job {name}: expected a module that Python can import, found none")
    with _import_blamed(found.origin):
        return importlib.import_module(name)


@contextlib.contextmanager
def _import_blamed(path: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise JobError(_told(_place(path, error), error)) from error


def _told(place: str, error: BaseException) -> str:
    """Return an error with its place in the job, and the text of that line."""
    return f"{place}: {_described(error)}{quote_line(place)}{_advice(error)}"


def quote_line(place: str) -> str:
    """Return the text of the line at ``file:line`` as the end of a sentence; "" where there is none."""
    path, _, line = place.rpartition(":")
    text = linecache.getline(path, int(line)).strip() if path and line.isdigit() else ""
    return f", in `{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}`" if text else ""


def _place(path: str, error: BaseException) -> str:
    """Return ``file:line`` of an error in the job's file, or only the file.

    The line is that of the innermost frame in the file, else of the code that made the operation at fault.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    lines = _lines_of_frames(path, error) or _lines_of_op(path, getattr(error, "op", None))
    return f"{path}:{lines[-1]}" if lines else path


def _lines_of_frames(path: str, error: Optional[BaseException]) -> List[Optional[int]]:
    """Return the lines of a file in which an error was raised, or that which it followed; the innermost last."""
    if error is None:
        return []
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines or _lines_of_frames(path, error.__context__)


def _is_of_optimizer(error: BaseException) -> bool:
    """Return whether TensorFlow's optimizer was at work."""
    return any(frame.filename.endswith(_OPTIMIZER) for frame in traceback.extract_tb(error.__traceback__))


def _lines_of_op(path: str, op: Any) -> List[Optional[int]]:
    """Return the lines of a file that made an operation, the innermost last.

    For a gradient's operation, the lines that made the differentiated operation follow.
    """
    made = [op, getattr(op, "_original_op", None)]
    return [frame[1] for each in made for frame in getattr(each, "traceback", None) or () if frame[0] == path]


def _ops_named_by(error: Any, graph: Any) -> Iterator[Any]:
    """Yield the operations that a session's ``error`` names.

    Some of its names are those of copies over the network, which end in ``_S`` or ``_G`` and a number.
    """
    for name in re.findall(r"\[\[(?:\{\{)?(?:node )?([^\s}\]]+)", str(error.message)):
        with contextlib.suppress(KeyError, ValueError):
            yield graph.get_operation_by_name(re.sub(r"_[SG]\d+$", "", name))


def _described(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}".rstrip(":. ")


def _advice(error: BaseException) -> str:
    """Return the next step after an error that authors meet often, as the end of a sentence; "" for any other."""
    # numpy and pandas have errors of their own without an error number.
    missing = isinstance(error, OSError) and (error.errno == errno.ENOENT or str(error).endswith("not found."))
    return "; put the file beside the job, whose folder each task works in a copy of" if missing else ""
