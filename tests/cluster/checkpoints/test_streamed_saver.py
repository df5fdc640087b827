"""Checkpoints that pass through the chief piece by piece are ordinary ones, and need little of its memory.

Two servers and a worker inside this process; what travels between them is copied, as between hosts.
"""

import os
import resource
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import pytest

from cluster.checkpoints import streamed_saver
from cluster.checkpoints.finished_files import NOT_IN_CHECKPOINT
from cluster.checkpoints.pieces_of_variables import boxes
from cluster.checkpoints.streamed_saver import StreamedSaver
from cluster.protocol.checkpoint_files import PARTIAL
from cluster.runtime.devices import ps_device, worker_device
from cluster.runtime.tf_compat import tf
from cluster.runtime.tf_errors import line_of
from cluster.variables.layout import Saved
from cluster.variables.profile import Shape, elements
from tests.cluster.checkpoints.damage import flipped, truncated
from tests.cluster.steps.test_sync_worker import servers_of

HOST = worker_device("worker", 0)
PIECE = 80  # bytes: fewer than a row of "wide", and more than "b"
SHAPES: Dict[str, Shape] = {"w": (21, 6), "wide": (2, 3, 25), "long": (50,), "b": (7,), "step": (), "none": (0, 3)}
CUT = {"w": 10}  # where the second server's rows begin
Values = Dict[str, Any]


@pytest.fixture(scope="module")
def target() -> str:
    """The chief's server."""
    return servers_of([("ps", 2), ("worker", 1)])[0]


def zeros(shapes: Dict[str, Shape] = SHAPES) -> Values:
    return {name: np.zeros(shape, np.int64 if name == "step" else np.float32) for name, shape in shapes.items()}


def some(seed: int = 1, shapes: Dict[str, Shape] = SHAPES) -> Values:
    random = np.random.RandomState(seed)
    return {name: (random.normal(size=value.shape) * 100).astype(value.dtype) for name, value in zeros(shapes).items()}


class Chief:
    """Variables on servers that have lost all, and what saves them; those of ``cut`` are in two slices."""

    def __init__(
        self,
        target: str,
        resources: bool = False,
        shapes: Dict[str, Shape] = SHAPES,
        cut: Dict[str, int] = CUT,
        piece_bytes: int = PIECE,
    ):
        self.like, self.resources = zeros(shapes), resources
        self.saved: List[Saved] = []
        with tf.Graph().as_default() as graph, tf.container(uuid.uuid4().hex):
            for name, shape in shapes.items():
                edges = [0, cut[name], shape[0]] if name in cut else [0, *shape[:1]]
                self._make(name, edges)
            self.saver = StreamedSaver(self.saved, HOST, piece_bytes)
            with tf.device(HOST):
                self.plain = tf.train.Saver([each.variable for each in self.saved], sharded=False)
            self._new = [tf.placeholder(each.dtype, each.shape) for each in self.saved]
            self._load = [tf.assign(each.variable, new).op for each, new in zip(self.saved, self._new)]
            graph.finalize()
        self.session = tf.Session(target, graph=graph)

    def _make(self, name: str, edges: List[int]) -> None:
        whole = self.like[name]
        for part, (begin, end) in enumerate(zip(edges, edges[1:] or [0])):
            shape = (end - begin, *whole.shape[1:]) if whole.shape else ()
            offset = (begin, *(0 for _ in shape[1:])) if shape else ()
            with tf.device(ps_device(part)):
                own = name if shape == whole.shape else f"{name}/part_{part}"
                kept = tf.get_variable(own, shape, whole.dtype, use_resource=self.resources)
            if shape != whole.shape:
                kept._set_save_slice_info(tf.Variable.SaveSliceInfo(name, list(whole.shape), list(offset), list(shape)))
            self.saved.append(Saved(name, kept, whole.shape, offset))

    def assign(self, values: Values) -> "Chief":
        """Gives all variables values, as training would."""
        parts = [values[each.name][self._place(each)] for each in self.saved]
        self.session.run(self._load, dict(zip(self._new, parts)))
        return self

    def values(self) -> Values:
        """What the servers hold, slices together."""
        found = {name: value.copy() for name, value in self.like.items()}
        for each, part in zip(self.saved, self.session.run([each.variable for each in self.saved])):
            found[each.name][self._place(each)] = part
        return found

    def _place(self, saved: Saved) -> Tuple[slice, ...]:
        return tuple(slice(begin, begin + length) for begin, length in zip(saved.offset, saved.shape))


def assert_same(found: Values, expected: Values) -> None:
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])


def names(folder: Path) -> List[str]:
    return sorted(path.name for path in folder.iterdir())


# -- what it writes, and what it reads


@pytest.mark.parametrize("resources", [False, True])
def test_what_it_saves_is_an_ordinary_checkpoint_and_it_restores_it(
    target: str, tmp_path: Path, resources: bool
) -> None:
    path = str(tmp_path / "model-1")
    chief = Chief(target, resources).assign(some())
    chief.saver.save(chief.session, path)
    reader = tf.train.load_checkpoint(path)
    assert_same({name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}, some())
    for again in (Chief(target, resources), chief.assign(some(2))):
        again.saver.restore(again.session, path)
        assert_same(again.values(), some())


@pytest.mark.parametrize("cut", [{}, {"w": 10}, {"w": 3, "long": 30}])
def test_tensorflows_own_saver_and_this_one_read_each_others_however_variables_are_cut(
    target: str, tmp_path: Path, cut: Dict[str, int]
) -> None:
    chief, other = Chief(target, cut=cut).assign(some()), Chief(target)
    chief.plain.save(chief.session, str(tmp_path / "plain-1"))
    other.saver.restore(other.session, str(tmp_path / "plain-1"))
    assert_same(other.values(), some())
    other.assign(some(2)).saver.save(other.session, str(tmp_path / "model-1"))
    chief.plain.restore(chief.session, str(tmp_path / "model-1"))
    assert_same(chief.values(), some(2))


def test_pieces_are_no_larger_than_asked_and_together_are_the_whole() -> None:
    for shape, most in [((7,), 3), ((4, 5), 10), ((4, 5), 7), ((4, 5), 3), ((2, 3, 25), 20), ((), 1), ((0, 3), 4)]:
        covered = np.zeros(shape, int)
        for begin, size in boxes(shape, most):
            assert elements(size) <= most
            covered[tuple(slice(first, first + length) for first, length in zip(begin, size))] += 1
        assert (covered == 1).all()


def test_the_graph_is_as_large_for_many_pieces_as_for_few(target: str) -> None:
    shapes: Dict[str, Shape] = {"w": (1000, 10)}
    graphs = [Chief(target, shapes=shapes, cut={"w": 500}, piece_bytes=size).session.graph for size in (100, 10000)]
    few, many = (len(graph.get_operations()) for graph in graphs)
    assert few == many


def test_of_a_very_large_model_pieces_are_larger_so_that_there_are_not_too_many_files(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed_saver, "MOST_PIECES", 4)
    chief = Chief(target, shapes={"w": (1000, 10)}, cut={}).assign(some(1, {"w": (1000, 10)}))
    chief.saver.save(chief.session, str(tmp_path / "model-1"))
    assert names(tmp_path) == [*(f"model-1.data-0000{part}-of-00004" for part in range(4)), "model-1.index"]


def test_a_checkpoint_in_place_of_one_of_more_pieces_leaves_none_of_them(target: str, tmp_path: Path) -> None:
    for piece_bytes in (PIECE, 1 << 20):
        chief = Chief(target, piece_bytes=piece_bytes).assign(some())
        chief.saver.save(chief.session, str(tmp_path / "model-1"))
    assert names(tmp_path) == ["model-1.data-00000-of-00001", "model-1.index"]
    chief.assign(some(2)).saver.restore(chief.session, str(tmp_path / "model-1"))
    assert_same(chief.values(), some())


def test_the_chiefs_memory_grows_by_some_pieces_and_not_by_the_model(target: str, tmp_path: Path) -> None:
    shapes: Dict[str, Shape] = {"w": (1 << 14, 1000)}  # 64 MB
    model = 4 * elements(shapes["w"])
    chief = Chief(target, shapes=shapes, cut={"w": 1 << 13}, piece_bytes=1 << 20).assign(zeros(shapes))
    chief.saver.save(chief.session, str(tmp_path / "model-1"))
    assert grown(lambda: chief.saver.save(chief.session, str(tmp_path / "model-2"))) < model / 2
    assert grown(lambda: chief.saver.restore(chief.session, str(tmp_path / "model-2"))) < model / 2


def grown(action: Callable[[], None]) -> int:
    """How many bytes of memory this process held at most while it acted, above what it held before.

    Servers are in it too, and threads of earlier tests. So it is the least of two measurements.
    """
    found = []
    for _ in range(2):
        Path("/proc/self/clear_refs").write_text("5")
        before = held("VmRSS")
        action()
        found.append(held("VmHWM") - before)
    return min(found)


def held(field: str) -> int:
    (line,) = [line for line in Path("/proc/self/status").read_text().split("\n") if line.startswith(field)]
    return int(line.split()[1]) << 10


# -- what it refuses


def raised(action: Callable[[], None]) -> BaseException:
    with pytest.raises((tf.errors.OpError, ValueError)) as caught:
        action()
    error: BaseException = caught.value
    return error


@pytest.mark.parametrize("shapes", [{**SHAPES, "other": (3,)}, {**SHAPES, "w": (22, 6)}, {**SHAPES, "long": (51,)}])
def test_a_checkpoint_of_other_variables_is_refused_as_tensorflow_does_and_nothing_is_assigned(
    target: str, tmp_path: Path, shapes: Dict[str, Shape]
) -> None:
    path = str(tmp_path / "model-1")
    chief = Chief(target).assign(some())
    chief.saver.save(chief.session, path)
    other = Chief(target, shapes=shapes, cut={}).assign(some(2, shapes))
    found = raised(lambda: other.saver.restore(other.session, path))
    assert (NOT_IN_CHECKPOINT in line_of(found)) == ("other" in shapes)
    assert_same(other.values(), some(2, shapes))
    plain = raised(lambda: other.plain.restore(other.session, path))
    assert type(found) is type(plain) and ("other" not in shapes or NOT_IN_CHECKPOINT in str(plain))


def emptied(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("end", [".index", ".data-00000-of"])
@pytest.mark.parametrize("damage", [flipped, truncated, emptied, Path.unlink])
def test_a_damaged_checkpoint_is_refused_as_tensorflow_does(
    target: str, tmp_path: Path, end: str, damage: Callable[[Path], None]
) -> None:
    path = str(tmp_path / "model-1")
    chief = Chief(target).assign(some())
    chief.saver.save(chief.session, path)
    damage(next(tmp_path.glob(f"model-1{end}*")))
    found = raised(lambda: chief.saver.restore(chief.session, path))
    assert type(found) is type(raised(lambda: chief.plain.restore(chief.session, path)))
    assert NOT_IN_CHECKPOINT not in line_of(found)


# -- all of it or nothing


def test_a_save_that_fails_leaves_nothing_and_an_older_checkpoint_of_that_name_stays(
    target: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "model-1")
    chief, lost = Chief(target).assign(some()), Chief(target)
    chief.saver.save(chief.session, path)
    before = names(tmp_path)
    with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized"):
        lost.saver.save(lost.session, path)
    with pytest.raises(tf.errors.FailedPreconditionError):
        lost.saver.save(lost.session, str(tmp_path / "model-2"))
    assert names(tmp_path) == before
    lost.saver.restore(lost.session, path)
    assert_same(lost.values(), some())


def test_a_disk_with_no_room_fails_the_save_and_nothing_is_left_on_it(target: str, tmp_path: Path) -> None:
    shapes: Dict[str, Shape] = {"w": (1 << 18,)}  # 1 MiB
    chief = Chief(target, shapes=shapes, cut={}, piece_bytes=1 << 19).assign(zeros(shapes))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, limits[1]))
    try:
        with pytest.raises(tf.errors.OpError, match="File too large"):
            chief.saver.save(chief.session, str(tmp_path / "model-1"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(tmp_path) == []


def test_a_folder_that_is_not_there_or_is_a_file_fails_the_save(target: str, tmp_path: Path) -> None:
    chief = Chief(target).assign(some())
    (tmp_path / "file").touch()
    for folder in ("missing", "file"):
        with pytest.raises(OSError):
            chief.saver.save(chief.session, str(tmp_path / folder / "model-1"))
    assert names(tmp_path) == ["file"]


def test_what_a_chief_left_that_was_killed_while_it_saved_is_replaced(target: str, tmp_path: Path) -> None:
    (tmp_path / f"model-1{PARTIAL}").mkdir()
    (tmp_path / f"model-1{PARTIAL}" / "piece-0.index").touch()
    chief = Chief(target).assign(some())
    chief.saver.save(chief.session, str(tmp_path / "model-1"))
    assert not os.path.exists(str(tmp_path / f"model-1{PARTIAL}"))
    chief.assign(some(2)).saver.restore(chief.session, str(tmp_path / "model-1"))
    assert_same(chief.values(), some())
