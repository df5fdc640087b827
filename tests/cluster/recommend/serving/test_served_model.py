"""A model in numpy that deltas change, beside dictionaries; what does not follow is refused, and changes nothing."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest

from cluster.protocol.checkpoint_files import NO_VERSION
from cluster.recommend.serving import DeltaError, ServedModel, next_delta
from cluster.recommend.serving.delta_file import Delta, TableDelta, read, write
from tests.cluster.recommend.tables import plain

WIDTH, INITIALIZER = 3, ("uniform", -1.0, 1.0, 3)
ENDS = [-(1 << 63), -1, 0, (1 << 63) - 1]
Rows = Dict[int, np.ndarray]


def version(number: int) -> str:
    return f"{number * 100}-{number:08x}" if number else NO_VERSION


def between(old: Rows, new: Rows, number: int) -> Delta:
    """The delta that makes ``old``, of the version before, to ``new``."""
    changed = sorted(each for each, row in new.items() if each not in old or not np.array_equal(old[each], row))
    rows = np.array([new[each] for each in changed], np.float32).reshape([-1, WIDTH])
    removed = np.array(sorted(set(old) - set(new)), np.int64)
    table = TableDelta(np.array(changed, np.int64), rows, removed, len(new), INITIALIZER)
    variables = {"dense/kernel": np.full([2, 2], number, np.float32), "night": np.float32(number)}
    return Delta(version(number - 1), version(number), {"a/b": table}, variables)


def history(seed: int, versions: int) -> List[Rows]:
    """A table at several versions: rows come, change, and go."""
    random = np.random.RandomState(seed)
    found: List[Rows] = [{}]
    for _ in range(versions):
        rows = dict(found[-1])
        for each in [*ENDS, *random.randint(0, 40, 30).tolist()]:
            if random.rand() < 0.3:
                rows.pop(each, None)
            elif random.rand() < 0.6:
                rows[each] = random.normal(size=WIDTH).astype(np.float32)
        found.append(rows)
    return found


def files(folder: Path, rows: List[Rows]) -> List[Path]:
    return [write(between(old, new, number + 1), folder) for number, (old, new) in enumerate(zip(rows, rows[1:]))]


def expected(rows: Rows, ids: np.ndarray) -> np.ndarray:
    first = [plain.first_row_of("a/b", WIDTH, INITIALIZER, int(each)) for each in ids]
    return np.array([rows.get(int(each), other) for each, other in zip(ids, first)], np.float32)


@pytest.mark.parametrize("seed", range(8))
def test_a_model_has_the_rows_of_each_version_and_first_values_for_other_ids(seed: int, tmp_path: Path) -> None:
    rows, asked = history(seed, 6), np.array([*ENDS, *range(45), 7, 7])
    paths = files(tmp_path, rows)
    model = ServedModel(paths[0])
    for number in range(1, len(rows)):
        np.testing.assert_allclose(model.rows("a/b", asked), expected(rows[number], asked), atol=1e-6)
        assert model.sizes == {"a/b": len(rows[number])} and model.version == version(number)
        np.testing.assert_array_equal(model.variables["dense/kernel"], np.full([2, 2], number))
        following = next_delta(tmp_path, model.version)
        assert following == (paths[number] if number < len(paths) else None)
        if following is not None:
            model.apply(following)


@pytest.mark.parametrize("kind", ["uniform", "normal", "constant"])
@pytest.mark.parametrize("width", [1, 4, 5])
def test_first_values_are_those_of_training(kind: str, width: int, tmp_path: Path) -> None:
    initializer, nothing = (kind, -0.5, 0.25, 9), np.zeros([0], np.int64)
    table = TableDelta(nothing, np.zeros([0, width], np.float32), nothing, 0, initializer)
    model = ServedModel(write(Delta(NO_VERSION, version(1), {"t": table}, {}), tmp_path))
    asked = np.array([*ENDS, *range(50)])
    wanted = [plain.first_row_of("t", width, initializer, int(each)) for each in asked]
    np.testing.assert_allclose(model.rows("t", asked), np.array(wanted, np.float32), atol=1e-6)


def test_a_lost_or_doubled_delta_is_refused_with_the_version_to_ask_for(tmp_path: Path) -> None:
    rows = history(1, 3)
    first, second, third = files(tmp_path, rows)
    model = ServedModel(first)
    with pytest.raises(DeltaError, match=f"expected a delta since {version(1)}, .*export with --since {version(1)}"):
        model.apply(third)
    model.apply(second)
    with pytest.raises(DeltaError, match=f"found one since {version(1)}"):
        model.apply(second)
    with pytest.raises(DeltaError, match="expected a delta since 0"):
        ServedModel(second)
    asked = np.arange(45)
    np.testing.assert_allclose(model.rows("a/b", asked), expected(rows[2], asked), atol=1e-6)


def _changed(delta: Delta, **fields: Any) -> Delta:
    return delta._replace(tables={"a/b": delta.tables["a/b"]._replace(**fields)})


WRONG: List[Tuple[str, Any]] = [
    ("rows of 'a/b' then, found", lambda each: _changed(each, size=each.tables["a/b"].size + 1)),
    ("to be removed, found none", lambda each: _changed(each, removed=np.array([999]))),
    ("tables and widths", lambda each: each._replace(tables={"other": each.tables["a/b"]})),
    ("tables and widths", lambda each: _changed(each, rows=np.zeros([len(each.tables["a/b"].ids), 2], np.float32))),
    ("do not fit", lambda each: _changed(each, rows=each.tables["a/b"].rows[1:])),
    ("do not fit", lambda each: _changed(each, ids=each.tables["a/b"].ids[::-1])),
    ("do not fit", lambda each: _changed(each, ids=each.tables["a/b"].ids.astype(np.int32))),
]


@pytest.mark.parametrize(("message", "change"), WRONG)
def test_a_delta_that_does_not_fit_changes_nothing(message: str, change: Any, tmp_path: Path) -> None:
    first, second = files(tmp_path, history(2, 2))
    model, asked = ServedModel(first), np.arange(45)
    before = model.rows("a/b", asked)
    with pytest.raises(DeltaError, match=message):
        model.apply(write(change(read(second)), tmp_path))
    np.testing.assert_array_equal(model.rows("a/b", asked), before)
    assert model.version == version(1) and model.variables["night"] == 1


def test_a_damaged_file_is_refused_at_any_byte(tmp_path: Path) -> None:
    first, second = files(tmp_path, history(3, 2))
    whole, model, asked = second.read_bytes(), ServedModel(first), np.arange(45)
    before = model.rows("a/b", asked)
    for place in range(0, len(whole), 37):
        second.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        try:
            model.apply(second)
        except DeltaError:
            assert model.version == version(1)
            np.testing.assert_array_equal(model.rows("a/b", asked), before)
        else:  # a byte that means nothing, such as a time
            assert model.sizes == {"a/b": len(history(3, 2)[2])}
            np.testing.assert_allclose(model.rows("a/b", asked), expected(history(3, 2)[2], asked), atol=1e-6)
            model = ServedModel(first)
    second.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DeltaError, match="fetch the file again"):
        model.apply(second)


def test_an_array_with_a_smaller_shape_and_a_variable_that_is_missing_are_damage(tmp_path: Path) -> None:
    (first,) = files(tmp_path, history(3, 1))
    whole = first.read_bytes()
    for old, new in ((b"(2, 2), }", b"(2, 1), }"), (b"variable/night", b"variable/nigh_")):
        assert len(old) == len(new) and old in whole
        first.write_bytes(whole.replace(old, new))
        with pytest.raises(DeltaError, match="fetch the file again"):
            ServedModel(first)
    for text in (b"", b"x" * 300, whole[:200]):
        first.write_bytes(text)
        with pytest.raises(DeltaError, match="fetch the file again"):
            ServedModel(first)
    with pytest.raises(TypeError):
        ServedModel(None)  # type: ignore[arg-type]


def test_of_two_files_that_follow_the_newest_counts(tmp_path: Path) -> None:
    """A run that went back: its delta of an earlier step is the newer file."""
    _, second = files(tmp_path, history(3, 2))
    other = write(read(second)._replace(version="150-000000ff"), tmp_path)
    os.utime(str(second), (1, 1))
    assert next_delta(tmp_path, version(1)) == other


def test_a_table_with_another_initializer_is_refused(tmp_path: Path) -> None:
    first, second = files(tmp_path, history(3, 2))
    model = ServedModel(first)
    with pytest.raises(DeltaError, match="'a/b' has another initializer"):
        model.apply(write(_changed(read(second), initializer=("constant", 0.0, 0.0, 0)), tmp_path))


def test_threads_see_whole_versions(tmp_path: Path) -> None:
    ids = np.arange(2000)
    rows: List[Rows] = [{}, *({int(each): np.full(WIDTH, number, np.float32) for each in ids} for number in (1, 2, 3))]
    paths, seen = files(tmp_path, rows), []  # type: Any, List[int]
    model, is_over = ServedModel(paths[0]), threading.Event()

    def look() -> None:
        while not is_over.is_set():
            seen.append(len(np.unique(model.rows("a/b", ids))))

    looking = threading.Thread(target=look)
    looking.start()
    for path in paths[1:]:
        model.apply(path)
    is_over.set()
    looking.join()
    assert set(seen) <= {1}


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cluster.recommend.serving.delta_file.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        files(tmp_path, history(1, 1))
    assert list(tmp_path.iterdir()) == []


def test_a_model_needs_numpy_alone() -> None:
    code = "import sys, cluster.recommend.serving; sys.exit(any(each.startswith('tensorflow') for each in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
