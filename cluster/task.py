"""One task of a cluster: its identity, and its settings for training.

A *task* is one process of a run. Its *role* is ``ps`` (holds variables), ``worker`` (computes gradients), ``chief`` (a
worker that also initialises, saves and ends the run) or ``evaluator``. Without a ``chief`` in the cluster, ``worker:0``
is the chief.

A task reads its environment as in TensorFlow: ``TF_CONFIG`` names the cluster and the task. So a task of the launcher
can also be started by hand.
"""

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Dict, List, Mapping, Optional, Sequence, Type, TypeVar, Union

from cluster.errors import TaskError

TRAINERS = ("chief", "worker")  # they compute gradients
MEMBERS = (*TRAINERS, "ps")  # an evaluator follows a cluster, but does not belong to it
ROLES = (*MEMBERS, "evaluator")
RANK_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")  # of torchrun
UNFIT_FOR_STOCK = (
    "wire",
    "clip_norm",
    "accumulate",
    "replication",
    "table_staleness",
    "warm_start",
)  # sync: stock needs the defaults of these
NO_LIMIT = 1 << 62  # steps
_T = TypeVar("_T")


@dataclass(frozen=True)
class Checkpoint:
    """The settings of the chief's checkpoints.

    ``dir``: the folder of the checkpoints; None for a folder below the run's own folder. ``every_s``: seconds between
    checkpoints. ``keep``: the number of newest checkpoints that the chief keeps. ``replicas``: the number of further
    hosts on which the agents keep copies. ``delta_every_s``: seconds between checkpoints that write only the changed
    rows of embedding tables; None for no such checkpoints.
    """

    dir: Optional[str] = None
    every_s: float = 60
    keep: int = 5
    replicas: int = 0
    delta_every_s: Optional[float] = None


@dataclass(frozen=True)
class Best:
    """The metric on held-out data by which the chief compares checkpoints.

    ``max`` names a metric whose largest value is the best, ``min`` a metric whose smallest value is the best; at most
    one of them is set. Training ends after ``patience`` successive measurements without a better value; with None,
    measurements never end training.
    """

    max: Optional[str] = None
    min: Optional[str] = None
    patience: Optional[int] = None

    @property
    def metric(self) -> str:
        """Return the name of the metric; "" for no metric."""
        return self.max or self.min or ""

    @property
    def goal(self) -> str:
        """Return ``max`` if the largest value of the metric is the best, else ``min``."""
        return "max" if self.max else "min"


@dataclass(frozen=True)
class WarmStart:
    """Settings for the first values that a new run takes from the checkpoint of another model.

    ``checkpoint`` is the prefix of that checkpoint, or a folder of checkpoints, on the chief's host. ``only`` has names
    or patterns of the variables and tables of this model that take values; None for all of them. ``rename`` maps
    beginnings of names in this model to beginnings of names in the checkpoint.
    """

    checkpoint: str = ""
    only: Optional[Sequence[str]] = None
    rename: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Train:
    """The ``train`` section of a hosts file, as every task receives it.

    ``steps`` is the absolute global step to stop at; with None, training stops only at the end of the data. ``epochs``
    is how often each example of ``cluster.shards`` is trained, None for no limit. ``tower_batch_size`` is the number of
    examples in a tower's batch; its key is ``batch_size``. ``accumulate`` is the number of such batches whose gradients
    each tower sums in one step. ``towers`` is a number, or ``auto``: as many towers as the GPUs allow, and one tower
    without GPUs. ``stages`` is the number of devices of a tower.

    ``sync`` is the implementation of synchronous steps. ``overlapped`` and ``plain`` are this project's own:
    ``overlapped`` runs pushes and pulls at the same time where it can, and ``plain`` never does. ``stock`` is
    TensorFlow's own class. ``replication`` is ``between-graph``, where every worker has a graph of its own, or
    ``in-graph``, where the chief has one graph for all workers. ``local_steps`` is the number of steps that an
    asynchronous worker takes from one exchange with the servers to the next. ``evaluate_batches`` is the maximum number
    of held-out batches in an evaluation, None for all.

    In each step, the rows of embedding tables lack the ``table_staleness`` newest updates. ``trace`` is
    the global step that every worker traces, None for no step. ``warm_start`` has the settings for first values from
    another model's checkpoint, None for no such values. ``verify`` is not a key of a hosts file: ``launch verify`` sets
    it, and compares the run with one process after each step.
    """

    mode: str = "sync"
    sync: str = "overlapped"
    replication: str = "between-graph"
    steps: Optional[int] = 1000
    epochs: Optional[int] = None
    tower_batch_size: int = 64
    accumulate: int = 1
    towers: Union[str, int] = "auto"
    stages: int = 1
    backup_workers: int = 0
    local_steps: int = 1
    wire: str = "float32"
    clip_norm: Optional[float] = None
    on_nan: str = "stop"
    evaluate_batches: Optional[int] = None
    table_staleness: int = 0
    trace: Optional[int] = None
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    best: Best = field(default_factory=Best)
    warm_start: Optional[WarmStart] = None
    verify: bool = False

    @property
    def last_step(self) -> int:
        """Return the step to stop at; if only the end of the data ends the run, a step that no run reaches."""
        return NO_LIMIT if self.steps is None else self.steps

    @property
    def may_overlap(self) -> bool:
        """Return whether a step may apply some gradients while others are still missing."""
        if self.mode == "async":
            return True
        return self.sync == "overlapped" and not self.backup_workers and self.clip_norm is None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Train":
        """Return the settings in ``values``, a parsed JSON or YAML mapping; missing keys have their defaults.

        If ``values`` has ``epochs``, the default of ``steps`` is None.

        Raises:
          TaskError: a key is unknown.
        """
        values = dict(values)
        if values.get("epochs") is not None:
            values.setdefault("steps", None)
        checkpoint = _accept(Checkpoint, values.pop("checkpoint", None) or {}, "train.checkpoint")
        best = _accept(Best, values.pop("best", None) or {}, "train.best")
        warm = values.pop("warm_start", None)
        given = {key: value for key, value in (warm or {}).items() if value is not None}
        warm_start = None if warm is None else _accept(WarmStart, given, "train.warm_start")
        return _accept(cls, {**values, "checkpoint": checkpoint, "best": best, "warm_start": warm_start}, "train")

    def to_dict(self) -> Dict[str, Any]:
        """Return the mapping from which ``from_dict`` reads these settings."""
        return {_key(name): value for name, value in asdict(self).items()}


def tf_config(cluster: str, role: str, index: int) -> str:
    """Return the value of ``TF_CONFIG`` for one task; ``cluster`` is already JSON, since all tasks share it.

    The chief's task type is ``master`` if ``cluster`` has that role, else ``chief``. The environment is "cloud", the
    only one in which contrib.learn starts its servers.
    """
    name = "master" if role == "chief" and '"master": [' in cluster else role
    return f'{{"cluster": {cluster}, "task": {{"type": "{name}", "index": {index}}}, "environment": "cloud"}}'


def _accept(cls: Type[_T], values: Mapping[str, Any], where: str) -> _T:
    names = {_key(f.name): f.name for f in fields(cls)}  # type: ignore[arg-type]
    unknown = sorted(set(values) - set(names))
    if unknown:
        raise TaskError(f"{where}: expected keys among {', '.join(names)}; found {unknown[0]!r}")
    return cls(**{names[key]: value for key, value in values.items()})


def _key(name: str) -> str:
    """Return the key of a field in a hosts file.

    Users write ``batch_size`` for the field ``tower_batch_size``.
    """
    return "batch_size" if name == "tower_batch_size" else name


@dataclass(frozen=True)
class Task:
    """One process of a cluster.

    ``cluster`` maps a role to the addresses (``host:port``) of its tasks; the evaluator is left out. ``batch_size`` is
    the worker's batch size, the number of examples that it gives to one step: the batch size of a tower, times its
    towers, times the accumulated batches. A job's ``inputs`` batches by this number.
    """

    role: str
    index: int
    cluster: Mapping[str, List[str]]
    batch_size: int = 1

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "Task":
        """Return the task that ``TF_CONFIG`` in ``environ`` describes.

        Raises:
          TaskError: ``TF_CONFIG`` is missing, not JSON, or names a task outside the cluster.
        """
        text = environ.get("TF_CONFIG")
        example = '{"cluster": {"ps": ["host:2222"], "worker": ["host:2223"]}, "task": {"type": "worker", "index": 0}}'
        if not text:
            raise TaskError(
                f"TF_CONFIG: expected JSON such as {example}, found nothing; set it or start with `launch up`"
            )
        try:
            config: Dict[str, Any] = json.loads(text)
            cluster = {role: list(addresses) for role, addresses in config["cluster"].items()}
            role, index = config["task"]["type"], int(config["task"]["index"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TaskError(f"TF_CONFIG: expected JSON such as {example}, found {text!r} ({error!r})") from error
        return cls(role, index, cluster)._checked()

    def _checked(self) -> "Task":
        if self.role not in ROLES:
            raise TaskError(f"TF_CONFIG: expected a task type among {', '.join(ROLES)}, found {self.role!r}")
        size = len(self.cluster.get(self.role, ()))
        if self.role != "evaluator" and not 0 <= self.index < size:
            raise TaskError(
                f"TF_CONFIG: the task {self.name} is not in the cluster, which has {size} {self.role} task(s)"
            )
        return self

    @property
    def name(self) -> str:
        """Return the name of the task, such as ``worker:1``."""
        return f"{self.role}:{self.index}"

    @property
    def chief_role(self) -> str:
        """Return the role whose first task is the chief: ``chief`` or ``worker``."""
        return "chief" if self.cluster.get("chief") else "worker"

    @property
    def is_chief(self) -> bool:
        """Return whether this task initialises, saves and ends the run."""
        return (self.role, self.index) == (self.chief_role, 0)

    @property
    def num_workers(self) -> int:
        """Return the number of tasks that compute gradients, including the chief."""
        return sum(len(self.cluster.get(role, ())) for role in TRAINERS)

    @property
    def worker_index(self) -> int:
        """Return this task's rank among the ``num_workers`` tasks that compute gradients; the chief has rank 0.

        The rank is also the index of the data shard that this worker reads:
        ``dataset.shard(task.num_workers, task.worker_index)``.
        """
        return self.index + (len(self.cluster.get("chief", ())) if self.role == "worker" else 0)
