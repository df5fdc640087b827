"""Deltas between real checkpoints: a model in numpy and a SavedModel in TensorFlow become what the run has."""

import threading
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

import numpy as np
import pytest

from cluster.embedding import Table
from cluster.errors import CheckpointError, DeltaError
from cluster.job import Job
from cluster.recommend.serving import ServedModel, loaded_model, next_delta
from cluster.recommend.serving.changes import EMPTY, Version, changes
from cluster.recommend.serving.delta_file import Delta, TableDelta, read, write
from cluster.recommend.serving.loaded_model import LoadedModel
from cluster.runtime.tf_compat import tf
from cluster.serving.saved_model import export, export_delta
from tests.cluster.recommend.tables import plain
from tests.cluster.recommend.tables.test_checkpoints import rows_in
from tests.cluster.serving.test_export import ARGS, TASK, WIDTHS, fed
from tests.support.nightly import few
from tests.support.training.jobs import served
from tests.support.training.processes import Cluster
from tests.support.training.serving import predicted

JOB = Job.from_module(served)


class Run(NamedTuple):
    """A run that has checkpoints of two moments, and its examples; later ones have further ids."""

    early: str
    late: str


@pytest.fixture(scope="module")
def run(tmp_path_factory: Any) -> Run:
    folder = tmp_path_factory.mktemp("run")
    paths: List[str] = []
    for steps, servers in ((6, 2), (12, 1)):
        train = {"steps": steps, "batch_size": 4, "checkpoint": {"dir": str(folder / "kept")}}
        with Cluster(folder / str(steps), served.__name__, ps=servers, workers=1) as cluster:
            cluster.start_all(train, {**ARGS, "steps": steps})
            paths.append(str(cluster.finish().checkpoint))
    return Run(*paths)


def delta(run: Run, folder: Path, since: Optional[str], checkpoint: str) -> Path:
    folder.mkdir(exist_ok=True)
    report = export_delta(JOB, TASK, ARGS, checkpoint, since, str(folder))
    found = [path for path in folder.glob("*.npz") if path.name.endswith(f"..{report['version']}.npz")]
    assert report["tables"] == {name: len(each) for name, each in rows_in(checkpoint, WIDTHS).items()}
    return next(path for path in found if (path.name[:3] == "0..") is (since is None))


def assert_has(model: ServedModel, checkpoint: str) -> None:
    reader = tf.train.load_checkpoint(checkpoint)
    for table, rows in rows_in(checkpoint, WIDTHS).items():
        np.testing.assert_array_equal(model.rows(table, np.array([*rows])), np.array([*rows.values()]), table)
    for name in ("dense/kernel", "dense/bias", "night"):
        np.testing.assert_array_equal(model.variables[name], reader.get_tensor(name))


def test_a_model_in_numpy_becomes_what_the_run_has(run: Run, tmp_path: Path) -> None:
    model = ServedModel(delta(run, tmp_path, None, run.early))
    assert_has(model, run.early)
    small = delta(run, tmp_path, run.early, run.late)
    assert next_delta(tmp_path, model.version) == small
    model.apply(small)
    assert_has(model, run.late)
    assert_has(ServedModel(delta(run, tmp_path, None, run.late)), run.late)
    changed, early = read(small).tables, rows_in(run.early, WIDTHS)
    for name, rows in rows_in(run.late, WIDTHS).items():
        wanted = sorted(each for each, row in rows.items() if not np.array_equal(row, early[name].get(each)))
        assert changed[name].ids.tolist() == wanted, "no more than has changed"


def test_a_loaded_model_and_the_next_saved_one_predict_as_the_run(run: Run, tmp_path: Path) -> None:
    export(JOB, TASK, ARGS, run.early, str(tmp_path / "1"))
    export(JOB, TASK, ARGS, run.late, str(tmp_path / "whole"))
    inputs = fed(served.held_out())
    expected = predicted(tmp_path / "whole", "session", inputs)["score"]
    model = LoadedModel(tmp_path / "1")
    first = model.predict(**inputs)["score"]
    assert not np.allclose(first, expected)
    model.apply(delta(run, tmp_path, run.early, run.late))
    np.testing.assert_allclose(model.predict(**inputs)["score"], expected, atol=1e-6)
    model.save(tmp_path / "2")
    np.testing.assert_allclose(predicted(tmp_path / "2", "eager", inputs)["score"], expected, atol=1e-6)
    with pytest.raises(FileExistsError):
        model.save(tmp_path / "2")
    model.apply(delta(run, tmp_path / "back", run.late, run.early))  # a run that goes back to an earlier checkpoint
    np.testing.assert_array_equal(model.predict(**inputs)["score"], first)
    again = LoadedModel(tmp_path / "2")
    assert again.version.startswith("12-")
    with pytest.raises(DeltaError, match="found one since 6-"):
        again.apply(next_delta(tmp_path, model.version) or "")
    for each in (model, again):
        each.close()


@pytest.mark.parametrize("piece_bytes", few([1 << 30, 100], [100]))
def test_a_loaded_table_grows_shrinks_and_answers_meanwhile(run: Run, piece_bytes: int, tmp_path: Path) -> None:
    export(JOB, TASK, ARGS, run.early, str(tmp_path / "1"), piece_bytes)
    inputs = fed(served.held_out(8))
    loaded, mirror = LoadedModel(tmp_path / "1"), ServedModel(delta(run, tmp_path, None, run.early))
    random, now, is_over, failed = np.random.RandomState(0), rows_in(run.early, WIDTHS), threading.Event(), []

    def ask() -> None:
        while not is_over.is_set():
            if not np.isfinite(loaded.predict(**inputs)["score"]).all():
                failed.append("no number")

    asking = threading.Thread(target=ask)
    asking.start()
    for number in range(1, 5):
        tables: Dict[str, TableDelta] = {}
        for name, rows in now.items():
            width = len(next(iter(rows.values())))
            gone = random.permutation([*rows])[: len(rows) // 3].tolist()
            came = np.unique(random.randint(0, 40 * number, 60))
            came = came[~np.isin(came, gone)]
            values = random.normal(size=[len(came), width]).astype(np.float32)
            for each in gone:
                del rows[each]
            rows.update(zip(came.tolist(), values))
            initializer = read(next(tmp_path.glob("0..*"))).tables[name].initializer
            tables[name] = TableDelta(came, values, np.array(sorted(gone), np.int64), len(rows), initializer)
        path = write(Delta(loaded.version, f"{number}-{number:08x}", tables, {}), tmp_path)
        loaded.apply(path)
        mirror.apply(path)
        for name, rows in now.items():
            np.testing.assert_array_equal(mirror.rows(name, np.array([*rows])), np.array([*rows.values()]))
    is_over.set()
    asking.join()
    assert not failed
    examples = served.held_out(32)
    users = mirror.rows("user", examples["user"])
    kernel, bias, night = (mirror.variables[name] for name in ("dense/kernel", "dense/bias", "night"))
    terms = [mirror.rows("words", np.array(each)) for each in _words(examples)]
    bags = np.array([each.mean(0) if len(each) else np.zeros(4) for each in terms])
    tags = [[each for each in (user % 5, user % 3) if each] for user in examples["user"].tolist()]
    sums = np.array([mirror.rows("tags", np.array(each, np.int64)).sum(0) for each in tags])
    nights = np.array([{0: 1.0, 1: 2.0, 2: 3.0}.get(each, 0.0) for each in examples["hour"].tolist()])
    logits = np.concatenate([users, bags, sums], 1) @ kernel[:, 0] + bias[0] + night * nights
    np.testing.assert_allclose(loaded.predict(**fed(examples))["score"][:, 0], 1 / (1 + np.exp(-logits)), atol=1e-6)
    loaded.close()


def _words(examples: Dict[str, np.ndarray]) -> List[List[int]]:
    found = plain.identities(examples["words"]).tolist()
    return [row[: min(hour, 3)] for row, hour in zip(found, examples["hour"].tolist())]


def test_expired_rows_are_removed(run: Run) -> None:
    """A table whose rows expire after a step without their id."""
    early, late = (Version("1-00000000", tf.train.load_checkpoint(path)) for path in (run.early, run.late))
    table = Table("words", 4, ("normal", 0.0, 0.5, 0), expire=1)
    before, after = (changes(EMPTY, each, [table], {}).tables["words"] for each in (early, late))
    assert 0 < after.size < len(rows_in(run.late, WIDTHS)["words"])
    found = changes(early, late, [table], {}).tables["words"]
    assert found.size == after.size and len(found.removed)
    assert sorted({*before.ids.tolist()} - {*after.ids.tolist()}) == found.removed.tolist()


def test_a_checkpoint_of_another_model_makes_no_delta(run: Run, tmp_path: Path) -> None:
    def model(user: Any, words: Any, tags: Any, hour: Any, y: Any) -> Any:
        return served.model(user, words, tags, hour, y)[0] * tf.get_variable("more", [])

    def predict(user: Any, words: Any, tags: Any, hour: Any) -> Any:
        return served.logits(user, words, tags, hour) * tf.get_variable("more", [])

    other = Job(**{**vars(JOB), "model": model, "predict": predict})
    with pytest.raises(CheckpointError, match="Key more not found in checkpoint"):
        export_delta(other, TASK, ARGS, run.late, run.early, str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_predictions_go_on_after_an_interrupt_while_a_delta_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    turns = loaded_model._Turns()
    with monkeypatch.context() as patch:
        patch.setattr(turns._condition, "wait_for", interrupted)
        with pytest.raises(KeyboardInterrupt), turns.alone():
            pass
    asking = threading.Thread(target=lambda: turns.shared().__enter__(), daemon=True)
    asking.start()
    asking.join(10)
    assert not asking.is_alive()


def test_a_folder_that_is_no_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeltaError, match="expected a SavedModel of launch export"):
        LoadedModel(tmp_path)
