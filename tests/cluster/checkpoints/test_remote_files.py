"""A checkpoint of another task's host is copied file by file, all of it and nothing else."""

from pathlib import Path

from cluster.checkpoints.finished_files import ChiefFiles, Noticeboard
from cluster.runtime.devices import worker_device
from cluster.runtime.tf_compat import tf
from cluster.task import Task
from tests.cluster.steps.test_sync_worker import servers_of

FILES = ("model-5.index", "model-5.data-00000-of-00002", "model-5.data-00001-of-00002")


def test_all_files_of_the_newest_checkpoint_arrive_and_no_others(tmp_path: Path) -> None:
    (target,) = servers_of([("worker", 1)])
    for name in (*FILES, "model-50.index", "model-5.index.unreadable"):
        (tmp_path / name).write_bytes(name.encode() * 1000)
    (tmp_path / "model-5.partial").mkdir()
    (tmp_path / "here").mkdir()
    chief = ChiefFiles(Task("evaluator", 0, {"worker": [target[len("grpc://") :]]}))
    assert chief.newest() is None
    with tf.Graph().as_default(), tf.Session(target) as session:
        Noticeboard(worker_device("worker", 0)).show(session, str(tmp_path / "model-5"))
    fetched = chief.fetch(str(chief.newest()), str(tmp_path / "here"))
    assert fetched == str(tmp_path / "here" / "model-5")
    found = {path.name: path.read_bytes() for path in (tmp_path / "here").iterdir()}
    assert found == {name: name.encode() * 1000 for name in FILES}
