"""Every error that the package ``cluster`` raises.

    ClusterError
    ├── SpecError       the hosts file is wrong; nothing was started
    ├── TaskError       the environment of a task process is wrong (TF_CONFIG, settings)
    ├── JobError        the job's own code is wrong; a restart would not help
    │   └── MissingDataError   this host lacks the data that the job reads
    ├── DeltaError      a file of changes does not fit a served model; the model has not changed
    └── TrainingError   training cannot continue from here
        ├── CheckpointError   a checkpoint cannot be written or read
        └── NonFiniteError    a loss or a gradient is not a finite number

An error's text is for people: it names the object, the expected value, the value found, and the next step. Code tests
the class of an error, and its ``kind``.
"""

from typing import NamedTuple, Optional, Sequence


class ClusterError(Exception):
    """Base class of the errors that ``cluster`` raises.

    A task that ends with an error writes the error's ``kind`` into its outcome; "" for no kind.
    See ``cluster.protocol.failure_kinds``.
    """

    kind = ""


class Problem(NamedTuple):
    """One mistake in a hosts file. ``line`` and ``column`` count from 1, and are None for a mistake in ``--set``."""

    where: str  # "hosts.yaml" or "--set train.steps"
    line: Optional[int]
    column: Optional[int]
    key: str  # dotted path, "cluster.worker[0].port"; "" for the whole document
    expected: str
    found: str
    hint: str = ""  # the next step, often the nearest known key

    def __str__(self) -> str:
        place = self.where if self.line is None else f"{self.where}:{self.line}:{self.column}"
        key = f" {self.key}:" if self.key else ""
        hint = f" — {self.hint}" if self.hint else ""
        return f"{place}:{key} expected {self.expected}, found {self.found}{hint}"


class SpecError(ClusterError):
    """The hosts file cannot be used. The error lists every problem, not only the first."""

    def __init__(self, problems: Sequence[Problem]):
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class TaskError(ClusterError):
    """A task process was started with an environment that it cannot use."""


class JobError(ClusterError):
    """The job's own code is wrong. Failures that a restart may resolve are not job errors."""


class MissingDataError(JobError):
    """This host lacks the data that the job reads; another host may have them."""


class DeltaError(ClusterError):
    """A delta is damaged, or does not fit the served model that it is to change."""


class TrainingError(ClusterError):
    """Training cannot continue, and a restart would fail in the same way."""


class CheckpointError(TrainingError):
    """A checkpoint cannot be written or read, or another run writes into the folder of checkpoints."""

    kind = "checkpoint"


class NonFiniteError(TrainingError):
    """A loss or a gradient is not a finite number."""

    kind = "non-finite"
