"""mnist and cifar_resnet read files in the real formats, train on them, and say which file is missing."""

import gzip
import struct
from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from cluster.task import Task
from jobs import cifar_resnet, mnist
from tests.support.training.alone import saved, train_alone

WORKER = Task("worker", 0, {"ps": ["a:1"], "worker": ["b:1", "c:1"]}, batch_size=8)
RANDOM = np.random.RandomState(0)


def write_idx(path: Path, values: Any) -> None:
    head = struct.pack(f">HBB{values.ndim}i", 0, 8, values.ndim, *values.shape)
    content = head + values.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_mnist(folder: Path, number: int = 64) -> Dict[str, Any]:
    """Pictures whose upper or lower half is bright, as the digit 0 or 1; the test part gzipped."""
    labels = (np.arange(number) % 2).astype(np.uint8)
    images = RANDOM.randint(0, 50, [number, 28, 28]).astype(np.uint8)
    for image, label in zip(images, labels.tolist()):
        image[14 * label : 14 * label + 14] += 150
    for part, suffix in (("train", ""), ("t10k", ".gz")):
        write_idx(folder / f"{part}-images-idx3-ubyte{suffix}", images)
        write_idx(folder / f"{part}-labels-idx1-ubyte{suffix}", labels)
    return {"x": images, "y": labels}


def write_cifar(folder: Path, number: int = 20) -> Any:
    """All six files with pictures that are bright in one channel, the class; returns the records of the first."""
    for name in (*cifar_resnet.TRAIN, *cifar_resnet.TEST):
        labels = np.arange(number, dtype=np.uint8) % 3
        records = RANDOM.randint(0, 60, [number, 3073]).astype(np.uint8)
        records[:, 0] = labels
        for record, label in zip(records, labels.tolist()):
            record[1 + 1024 * label : 1 + 1024 * (label + 1)] += 180
        (folder / name).write_bytes(records.tobytes())
    return np.frombuffer((folder / cifar_resnet.TRAIN[0]).read_bytes(), np.uint8).reshape(-1, 3073)


def batch_of(dataset: Any) -> Dict[str, Any]:
    batch = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        values: Dict[str, Any] = session.run(batch)
    return values


def test_mnist_reads_the_pictures_and_digits_of_idx_files_packed_or_not(tmp_path: Path) -> None:
    written = write_mnist(tmp_path)
    with tf.Graph().as_default():
        for part in ("train", "t10k"):
            read = batch_of(mnist.examples({"data_dir": str(tmp_path)}, part).batch(64))
            assert (read["x"] == written["x"]).all() and (read["y"] == written["y"]).all()


def test_mnist_learns_what_such_files_show(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    outcome = train_alone(mnist, tmp_path, {"data_dir": str(tmp_path), "hidden": 64}, steps=60, batch_size=16)
    assert outcome.succeeded, outcome
    assert outcome.metrics["accuracy"] > 0.9


def test_cifar_pictures_have_their_pixels_where_the_format_says(tmp_path: Path) -> None:
    first = write_cifar(tmp_path)
    with tf.Graph().as_default():
        read = batch_of(cifar_resnet.evaluate(WORKER, {"data_dir": str(tmp_path)}))
        records = np.frombuffer((tmp_path / cifar_resnet.TEST[0]).read_bytes(), np.uint8).reshape(-1, 3073)
        raw = read["x"] * cifar_resnet.DEVIATION + cifar_resnet.MEAN
        np.testing.assert_allclose(raw[1, 5, 7], records[1, [1 + 5 * 32 + 7 + 1024 * c for c in range(3)]], atol=1e-3)
        assert (read["y"] == records[:, 0]).all()
        batch = batch_of(cifar_resnet.inputs(WORKER, {"data_dir": str(tmp_path)}))
    assert batch["x"].shape == (8, 32, 32, 3) and set(batch["y"]) <= set(first[:, 0])


@pytest.mark.nightly
def test_cifar_resnet_is_resnet_20_and_learns_what_such_files_show(tmp_path: Path) -> None:
    write_cifar(tmp_path)
    args = {"data_dir": str(tmp_path), "learning_rate": 0.02}
    outcome = train_alone(cifar_resnet, tmp_path, args, steps=40, batch_size=8, towers=2)
    assert outcome.succeeded, outcome
    assert outcome.metrics["accuracy"] > 0.6  # by the moving averages; a third would be chance
    averages = ("/mean", "/variance")
    trained = [value for name, value in saved(outcome).items() if not name.endswith((*averages, "/Momentum"))]
    assert sum(value.size for value in trained) == 269_722 + 1  # "0.27 million" in the paper, and the global step


@pytest.mark.parametrize(("job", "name"), [(mnist, "train-images-idx3-ubyte"), (cifar_resnet, "data_batch_1.bin")])
def test_a_missing_folder_or_file_is_told_by_name_with_where_the_data_is_described(
    tmp_path: Path, job: Any, name: str
) -> None:
    (tmp_path / "other.txt").write_text("")
    told = [(None, "found None"), (str(tmp_path), "found other.txt"), (str(tmp_path / "no"), "found no such folder")]
    for folder, found in told:
        with pytest.raises(JobError) as caught:
            job.inputs(WORKER, {"data_dir": folder})
        for part in ("args.data_dir", name, found, f"described at {job.DESCRIBED_AT}"):
            assert part in str(caught.value)


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"<html>not found</html>")
    with pytest.raises(JobError, match=r"train-images-idx3-ubyte: expected an IDX file .* items of shape \[28, 28\]"):
        mnist.inputs(WORKER, {"data_dir": str(tmp_path)})
    write_cifar(tmp_path)
    (tmp_path / "data_batch_2.bin").write_bytes(bytes(3072))
    with pytest.raises(JobError, match=r"data_batch_2.bin: expected uncompressed records of 3073 bytes, found 3072"):
        cifar_resnet.inputs(WORKER, {"data_dir": str(tmp_path)})
