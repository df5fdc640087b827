"""A new run's first values are, bit by bit, those of a checkpoint that plain TensorFlow wrote; all others stay."""

import re
import socket
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np
import pytest

from cluster.checkpoints import pieces_of_variables, streamed_saver
from cluster.checkpoints.warm_start import ModelNames, find_checkpoint
from cluster.errors import CheckpointError, JobError, TrainingError
from cluster.job import Job
from cluster.model.device_pool import PoolMember
from cluster.runtime import server
from cluster.runtime.devices import worker_device
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train, WarmStart
from cluster.training.graph_builder import Builder
from cluster.training.joining import FirstValues
from cluster.variables.masters import saved_variables
from launch.agent.linux.sockets import free_ports
from tests.support.training.jobs import warm

SEEDS = range(6)
OTHERS = ("adam", "slow", "sgd", "momentum")
Values = Dict[str, np.ndarray]


def write(values: Values, path: str, step: int = 7) -> str:
    """A checkpoint of plain TensorFlow: these variables of one process, and a global step."""
    with tf.Graph().as_default(), tf.Session() as session:
        for name, value in values.items():
            tf.get_variable(name, initializer=tf.constant(value), use_resource=False)
        tf.get_variable("global_step", initializer=tf.constant(1234, tf.int64), trainable=False)
        session.run(tf.global_variables_initializer())
        return str(tf.train.Saver().save(session, path, global_step=step))


class Draw(NamedTuple):
    """What is drawn for a model: its settings, the checkpoint's content, and the values to expect here."""

    only: Any
    rename: Dict[str, str]
    there: Values
    here: Values


def draw(seed: int) -> Draw:
    random = np.random.RandomState(seed + 100)
    model = warm.variables(seed)
    scopes = sorted({name.split("/")[0] for name in model})
    chosen_scopes = [scope for scope in scopes if random.randint(2)] or scopes[:1]
    single = [name for name in model if random.randint(4) == 0]
    only = [*(f"{scope}/*" for scope in chosen_scopes), *single] if seed % 3 else None
    is_chosen = {name: only is None or name in single or name.split("/")[0] in chosen_scopes for name in model}
    moved = {scope: f"old_{scope}" for scope in chosen_scopes if random.randint(2)}
    rename = {f"{scope}/": f"{other}/" for scope, other in moved.items()}
    there = {name: f"{moved[scope]}/{leaf}" if scope in moved else name
             for name, (scope, leaf) in ((each, each.split("/")) for each in model)}  # fmt: skip
    special = next(name for name in model if is_chosen[name])
    rename[special], there[special] = "apart", "apart"
    if special == warm.CUT or seed % 2:
        del rename[special]
        there[special] = f"{moved.get(special.split('/')[0], special.split('/')[0])}/{special.split('/')[1]}"
    values = {name: np.array(random.randn(*shape), np.float32) for name, (shape, _) in model.items()}
    here = {name: values[name] if is_chosen[name] else np.full(shape, first, np.float32)
            for name, (shape, first) in model.items()}  # fmt: skip
    extra = {"unused/w": np.array(random.randn(3), np.float32)}
    return Draw(only, rename, {**{there[name]: values[name] for name in model if is_chosen[name]}, **extra}, here)


def begun(args: Dict[str, Any], settings: Train, servers: int) -> Tuple[Values, Values]:
    """All variables of a new run's servers, whole, and those of the chief's own graph, before the first step."""
    ports = free_ports(servers + 1)
    cluster = {"ps": [f"127.0.0.1:{port}" for port in ports[:servers]], "worker": [f"127.0.0.1:{ports[-1]}"]}
    tasks = [Task(role, index, cluster) for role in cluster for index in range(len(cluster[role]))]
    model = warm.variables(int(args["seed"]))
    running = [server.start(each) for each in tasks]
    task = replace(tasks[-1], batch_size=settings.tower_batch_size)
    replica = Builder(
        Job.from_module(warm).with_args(args), task, settings, args, [PoolMember(task, ["CPU:0"])]
    ).build()
    with replica.graph.as_default():
        first = FirstValues(task, replica, worker_device("worker", 0), settings.warm_start)
    session = server.connect(task, running[-1], replica.graph)
    for given in (replica.model.prepare, replica.model.start_input):
        session.run(given)
    first.begin(session)
    assert not first.are_complete(session)
    first.give(session)
    first.end(session)
    assert first.are_complete(session)
    found = _whole(session, replica.variables)
    replica.stepper.close(session)
    replica.stepper.open(session, 1, first.are_the_chiefs)
    # Rows stay on the servers, and TensorFlow names the parts that an author cut.
    own = [each for each in replica.graph.get_collection("variables") if each.op.name in set(model) - {warm.ROWS}]
    return found, _whole(session, own)


def _whole(session: Any, variables: List[Any]) -> Values:
    found: Values = {}
    for each, value in zip(saved_variables(variables), session.run([each.read_value() for each in variables])):
        full = found.setdefault(each.name, np.zeros(each.full_shape, value.dtype))
        full[tuple(slice(begin, begin + size) for begin, size in zip(each.offset, each.shape))] = value
    return found


def _joined(values: Values) -> Values:
    """The same, with the parts of what was cut joined: TensorFlow names slots by the parts."""
    names = dict.fromkeys(re.sub(r"/part_\d", "", name) for name in values)
    return {name: np.concatenate([values[each] for each in sorted(values) if "/part_" in each])
            if name not in values else values[name] for name in names}  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_chosen_variables_have_the_checkpoints_bits_and_all_else_its_first_value(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed in (0, 3, 4):  # variables of any size are held in slices
        monkeypatch.setattr("cluster.variables.placement.SMALLEST_SLICE", 1)
    drawn, optimizer = draw(seed), OTHERS[seed % len(OTHERS)]
    path = write(drawn.there, str(tmp_path / "model"))
    warm_start = WarmStart(str(tmp_path) if seed % 2 else path, drawn.only, drawn.rename)
    settings = Train(tower_batch_size=4, towers=1, mode="async" if seed == 5 else "sync", warm_start=warm_start)
    servers, chiefs = begun({"seed": seed, "optimizer": optimizer, "rate": 0.1}, settings, 1 + seed % 3)
    for name, expected in drawn.here.items():
        np.testing.assert_array_equal(servers.pop(name), expected, err_msg=name)
        np.testing.assert_array_equal(chiefs.get(name, expected), expected, err_msg=name)
    assert set(chiefs) == set(drawn.here) - {warm.ROWS, warm.CUT}
    assert servers.pop("global_step") == 0
    for name, found in _joined(servers).items():  # the optimizer's
        owner = name.rpartition("/")[0]
        first = drawn.here[owner] if name.endswith("/slow") else {"beta1_power": 0.9, "beta2_power": 0.999}.get(name, 0)
        np.testing.assert_array_equal(found, np.full_like(found, first), err_msg=name)
    assert bool(servers) == (optimizer != "sgd")


def test_large_variables_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = draw(3)
    monkeypatch.setattr(streamed_saver.StreamedSaver.__init__, "__defaults__", (16, None, False))
    monkeypatch.setattr(streamed_saver, "largest_file", lambda path: 0)  # else pieces are as long as a file
    pieces: List[int] = []
    original = pieces_of_variables.LargeVariable.feeds

    def counted(variable: Any, piece_bytes: int) -> Any:
        found = list(original(variable, piece_bytes))
        pieces.append(len(found))
        return iter(found)

    monkeypatch.setattr(pieces_of_variables.LargeVariable, "feeds", counted)
    path = write(drawn.there, str(tmp_path / "model"))
    settings = Train(tower_batch_size=4, towers=1, warm_start=WarmStart(path, drawn.only, drawn.rename))
    servers, _ = begun({"seed": 3, "optimizer": "sgd", "rate": 0.1}, settings, 2)
    assert sum(pieces) > 20 and max(pieces) > 1
    for name, expected in drawn.here.items():
        np.testing.assert_array_equal(servers[name], expected, err_msg=name)


def warm_start(path: Any, **more: Any) -> Train:
    return Train(tower_batch_size=4, towers=1, warm_start=WarmStart(str(path), **more))


@lru_cache(maxsize=None)
def variables_of_model() -> Any:
    """The servers' variables of the model of seed 0, in a graph that nobody runs."""
    task, args = Task("worker", 0, {"ps": ["-"], "worker": ["-"]}, 4), {"seed": 0, "optimizer": "adam", "rate": 0.1}
    job = Job.from_module(warm).with_args(args)
    return Builder(job, task, Train(tower_batch_size=4, towers=1), args, [PoolMember(task, ["CPU:0"])]).build().of_model


def cause(settings: Train, error: Any) -> str:
    """The words with which a run of the model of seed 0 is refused before it begins."""
    assert settings.warm_start is not None
    with pytest.raises(error) as refused:
        ModelNames(settings.warm_start, variables_of_model(), None).source()
    return str(refused.value)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A checkpoint of the model of seed 0."""
    return write({name: np.zeros(shape, np.float32) for name, (shape, _) in warm.variables(0).items()},
                 str(tmp_path / "model"))  # fmt: skip


def test_a_name_that_is_none_of_the_models_is_refused_with_the_nearest(path: str) -> None:
    assert cause(warm_start(path, only=["deep/*", "norm/maen"]), TrainingError) == (
        "train.warm_start.only: expected names or patterns of this model's variables and tables, found 'norm/maen',"
        " which matches none of them; the nearest is norm/mean"
    )
    assert cause(warm_start(path, only=["global_step"]), TrainingError).startswith("train.warm_start.only: expected")
    assert cause(warm_start(path, only=["norm/*"], rename={"deep/": "x/"}), TrainingError) == (
        "train.warm_start.rename: expected prefixes of the names of this model's chosen variables and tables, found"
        " 'deep/', which is a prefix of none; chosen are norm/mean"
    )


def test_a_variable_that_the_checkpoint_lacks_is_refused_with_the_nearest(path: str) -> None:
    assert cause(warm_start(path, only=["norm/*"], rename={"norm/m": "norm/n"}), CheckpointError) == (
        f"train.warm_start: expected 'norm/nean' (in this model 'norm/mean') in the checkpoint {path}, found none;"
        " the nearest is norm/mean; correct train.warm_start.rename, or choose other names in train.warm_start.only"
    )


def test_another_shape_or_type_is_refused_with_both(tmp_path: Path) -> None:
    shape = warm.variables(0)[warm.ROWS][0]
    for number, (value, found) in enumerate([
        (np.zeros([2, 2], np.float32), "float32 of shape [2, 2]"), (np.zeros(shape), f"float64 of shape {shape}"),
    ]):  # fmt: skip
        path = write({"rows/all": value}, str(tmp_path / f"model{number}"))
        assert cause(warm_start(path, only=["rows/*"]), CheckpointError) == (
            f"train.warm_start: 'rows/all' in the checkpoint {path}: expected float32 of shape {shape}, like 'rows/all'"
            f" in this model, found {found}; choose other names in train.warm_start.only, or change the model"
        )


def test_a_place_without_a_checkpoint_is_refused(path: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for place, found in [(tmp_path / "model-8", "nothing"), (empty, "a folder without a checkpoint"),
                         (f"{path}.index", "another file")]:  # fmt: skip
        assert cause(warm_start(place), CheckpointError) == (
            f"train.warm_start.checkpoint: expected a checkpoint such as …/model-800, or a folder with checkpoints, at"
            f" {place} on {socket.gethostname()}, which runs the chief; found {found}; correct the path, or copy the"
            " checkpoint there"
        )


@pytest.mark.parametrize("what", ["model-7.index", "model-7.data-00000-of-00001"])
def test_a_damaged_checkpoint_is_refused(what: str, path: str, tmp_path: Path) -> None:
    (tmp_path / what).write_bytes(b"nonsense")
    with pytest.raises(CheckpointError) as refused:
        begun({"seed": 0, "optimizer": "sgd", "rate": 0.1}, warm_start(path), 1)
    words = f"train.warm_start.checkpoint: expected a checkpoint that can be read at {path}, found one that cannot be"
    assert str(refused.value).startswith(words)


def test_a_checkpoint_without_a_step_and_the_home_folder_are_found(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "alone"
    folder.mkdir()
    for each in tmp_path.glob("model-7.*"):
        each.rename(folder / each.name.replace("model-7", "weights"))
    assert find_checkpoint("~/alone") == find_checkpoint("~/alone/weights") == str(folder / "weights")
    write({"w": np.zeros(1, np.float32)}, str(folder / "model"), 30)
    write({"w": np.zeros(1, np.float32)}, str(folder / "model"), 4)
    assert find_checkpoint("~/alone") == str(folder / "model-30")


class Beside(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """It makes a variable while it computes gradients: with the model's value, or without."""

    copies = True

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        pairs = super().compute_gradients(*args, **kwargs)
        first = pairs[0][1].initialized_value() if self.copies else tf.zeros([])
        with tf.variable_scope("beside", reuse=tf.AUTO_REUSE):
            tf.get_variable("copy", initializer=first, trainable=False)
        return pairs


def test_an_optimizer_whose_variables_would_be_copies_of_cold_values_is_refused(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(warm.OPTIMIZERS, "beside", Beside)
    with pytest.raises(JobError) as refused:
        begun({"seed": 0, "optimizer": "beside", "rate": 0.1}, warm_start(path), 1)
    assert str(refused.value).endswith(
        "optimizer returned one whose 'beside/copy' begins as a copy of the model's values; expected variables that do"
        " not begin as copies of the model's, with train.warm_start"
    )
    monkeypatch.setattr(Beside, "copies", False)
    servers, _ = begun({"seed": 0, "optimizer": "beside", "rate": 0.1}, warm_start(path), 1)
    assert servers[warm.MOVING] == servers["beside/copy"] == 0
