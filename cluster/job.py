"""A job: the model and its data, as three to five plain functions in one file.

inputs(task, args)    -> tf.data.Dataset of {name: tensor}; this worker's shard, repeated, batched by task.batch_size
model(**batch)        -> loss per example [batch], or (loss, {metric: value per example [batch]}), whose means are
                         reported; a metric may also be one of ``cluster.metrics``, or a pair (label, score), which
                         becomes their ``metrics.auc``; a model with a parameter ``args`` receives the job's args in it;
                         a parameter ``training`` is True for training and False for evaluation
optimizer(args)       -> tf.train.Optimizer
evaluate(task, args)  -> optional; a finite dataset of held-out examples, batched
predict(**batch)      -> optional; {name: tensor} of a batch without labels, for ``cluster.serving``

The batch of ``model`` is one part of a step's batch: the part of one tower of one worker, in one of its accumulated
batches. The loss of an example must not depend on other examples. Negatives from the same batch, weights divided by
their sum, and the batch's mean break this rule. With more than one part, such a loss differs from that of one process;
docs/jobs.md has remedies.
"""

import contextlib
import functools
import importlib
import importlib.util
import inspect
import operator
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from cluster.errors import ClusterError, JobError
from cluster.metrics import Metric
from cluster.runtime.code_lines import described_at, is_of_optimizer, place_of, place_of_function

_FUNCTIONS = ("inputs", "model", "optimizer")


@dataclass(frozen=True)
class Job:
    """The functions of a job and their file."""

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
        """Turn an exception inside the context into a ``JobError`` that names the file and line of the job."""
        try:
            yield
        except ClusterError:
            raise
        except Exception as error:
            raise JobError(self.blamed(error)) from error

    def blamed(self, error: Exception) -> str:
        """Return the place in this job that caused ``error``, raised while the graph was built, and the error's text.

        The place is the line of the job's file that raised the error. For an error that no line of this file raised,
        the place is the function that was called with wrong arguments, or ``optimizer`` if the optimizer failed.
        Otherwise, the place is the file without a line.
        """
        place = place_of(self.path, error)
        if place == self.path:
            called = [name for name in (*_FUNCTIONS, "evaluate") if str(error).startswith(f"{name}() ")]
            called += ["optimizer"] if is_of_optimizer(error) else []
            place = self.place(called[0]) if called else place
        return described_at(place, error)

    def place(self, function: str) -> str:
        """Return ``file:line`` of the beginning of the job's function with the name ``function``.

        For a callable that is no Python function, the result is only the job's file.
        """
        return place_of_function(getattr(self, function)) or self.path

    def with_args(self, args: Mapping[str, Any]) -> "Job":
        """Return this job for training: the model gets ``args`` and ``training=True`` if it has these parameters."""
        return self._bound(args=args, training=True)

    def for_evaluation(self) -> "Job":
        """Return this job for evaluation: the model gets ``training=False`` if it has this parameter."""
        return self._bound(training=False)

    def _bound(self, **values: Any) -> "Job":
        asked = inspect.signature(self.model).parameters
        values = {name: value for name, value in values.items() if name in asked}
        return replace(self, model=functools.partial(self.model, **values)) if values else self

    def check(self, function: str, expected: str, found: Any, ok: bool) -> None:
        """Refuse ``found``, the result of the job's function with the name ``function``, unless ``ok``.

        Raises:
          JobError: ``ok`` is false; the error names the place of the function, and ``expected``.
        """
        if not ok:
            raise JobError(f"{self.place(function)}: {function} returned {found}; expected {expected}")

    def losses(self, output: Any) -> Tuple[Any, Dict[str, Any]]:
        """Return the loss and the metrics by name in ``output``, the result of ``model``.

        The loss has the shape [batch]. If ``output`` has several losses by name, the result has their sum as the loss,
        and each of them as a metric. A metric is a tensor [batch], one of ``cluster.metrics``, a pair of a label and a
        score, [batch] each, or a result of ``tf.metrics``: a scalar and its update.

        Raises:
          JobError: ``output`` has another form, a loss or metric has another shape, or two of them have the same name.
        """
        loss, metrics = output if isinstance(output, tuple) and len(output) == 2 else (output, {})
        self.check(
            "model", "a loss, {name: loss}, or a pair of either and {metric: tensor}", output, isinstance(metrics, dict)
        )
        named = loss if isinstance(loss, dict) else {"loss": loss}
        self.check("model", "names that are strings", output, all(isinstance(n, str) for n in [*named, *metrics]))
        self.check("model", "losses and metrics of different names", [*named, *metrics], not set(named) & set(metrics))
        self.check("model", "losses of names other than 'loss'", [*named], named is not loss or "loss" not in named)
        plain = {name: value for name, value in metrics.items() if not isinstance(value, Metric)}
        for name, value in {**plain, **named}.items():
            self._check_per_example(name, value)
        for name, value in named.items():
            self.check("model", f"a {name} of a type like float32", value, value.dtype.is_floating)
        sliced = tuple(f"{name}/" for name in metrics if name not in plain)
        taken = [name for name in {**metrics, **named} if name.startswith(sliced)]
        self.check("model", "names that no slice of a metric has", taken, not taken)
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
    """Return a tensor's number of dimensions; None where it is unknown, -1 for any other value."""
    found: Optional[int] = getattr(getattr(value, "shape", None), "ndims", -1)
    return found


def load(name: str, folder: Path) -> Job:
    """Return the job ``name``: the path of a .py file, a dotted module, or a file's name in ``folder`` without .py.

    Raises:
      JobError: the job does not exist, its import fails, or it lacks a function; the error names the file, and the line
        at which the import failed.
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

    Other files in the folder are not jobs.
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
    sys.path.append(str(path.parent))  # so that a job may import modules next to it
    with _import_blamed(str(path)):
        spec.loader.exec_module(module)
    return module


def _from_module(name: str) -> ModuleType:
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        raise JobError(f"job {name}: {error}; a name with a dot must be an importable module") from error
    if found is None or found.origin is None:
        raise JobError(f"job {name}: expected a module that Python can import, found none")
    with _import_blamed(found.origin):
        return importlib.import_module(name)


@contextlib.contextmanager
def _import_blamed(path: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise JobError(described_at(place_of(path, error), error)) from error
