"""Criteo's click logs: read as they are published, shared out over workers, and learnt from."""

import gzip
import re
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from cluster.task import Task
from jobs import criteo
from tests.support.training.processes import Cluster

LINE = "\t".join(["1", "3", "", "-2", *["0"] * 10, "68fd1e64", "", *["80e26c9b"] * 24])


def written(folder: Path, name: str, lines: List[str]) -> None:
    opened: Any = gzip.open if name.endswith(".gz") else open
    folder.mkdir(exist_ok=True)
    with opened(str(folder / name), "wt") as file:
        file.write("".join(line + "\n" for line in lines))


def read(folder: Path, workers: int, index: int, held_out: bool = False) -> List[str]:
    task = Task("worker", index, {"worker": ["host:1"] * workers})
    with tf.Graph().as_default(), tf.Session() as session:
        data = criteo.lines(task, {"data_dir": str(folder)}, held_out).batch(10000)
        return [line.decode() for line in session.run(tf.data.make_one_shot_iterator(data).get_next())]


def test_a_line_is_a_label_numbers_and_categories_and_what_is_not_known_is_empty_or_0() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        parsed: Dict[str, Any] = session.run(criteo.parse(tf.constant([LINE, LINE])))
    assert parsed["label"].tolist() == [1, 1]
    np.testing.assert_allclose(parsed["numbers"][1], [np.log(4), *[0] * 12], rtol=1e-6)
    assert parsed["categories"].shape == (2, 26)
    assert parsed["categories"][0, :3].tolist() == [b"0:68fd1e64", b"1:", b"2:80e26c9b"]


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_workers_share_out_the_files_or_else_the_lines_and_none_is_held_out(tmp_path: Path, workers: int) -> None:
    lines = criteo.made_up(600, 1)
    for index, name in enumerate(["day_0.gz", "day_1", "day_2.gz"]):
        written(tmp_path, name, lines[index::3])
    shares = [read(tmp_path, workers, index) for index in range(workers)]
    held_out = read(tmp_path, workers, 0, held_out=True)
    assert sorted(sum(shares, held_out)) == sorted(lines)
    assert min(map(len, shares)) > 0.7 * max(map(len, shares))
    assert 0.05 < len(held_out) / len(lines) < 0.15


def test_a_worker_opens_its_own_files_only_where_they_divide_evenly(tmp_path: Path) -> None:
    for index in range(4):
        written(tmp_path, f"day_{index}.gz", [f"{index}-{line}" for line in range(50)])
    assert {line[0] for line in read(tmp_path, 2, 1)} == {"1", "3"}
    assert {line[0] for line in read(tmp_path, 3, 1)} == {"0", "1", "2", "3"}


def test_a_folder_without_files_is_refused_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=rf"args.data_dir: expected files of Criteo's format.*{tmp_path}.*found none"):
        criteo.files_in(str(tmp_path))


def test_made_up_examples_are_in_the_format_and_the_same_for_the_same_seed() -> None:
    lines = criteo.made_up(200, 1)
    form = re.compile(r"[01](\t\d*){13}(\t([0-9a-f]{8})?){26}")
    assert all(form.fullmatch(line) for line in lines)
    assert lines == criteo.made_up.__wrapped__(200, 1) != criteo.made_up(200, 2)
    clicked = np.mean([line[0] == "1" for line in lines])
    assert 0.2 < clicked < 0.8


@pytest.mark.nightly
def test_recommend_learns_from_gzipped_files_which_advertisements_are_clicked(tmp_path: Path) -> None:
    lines = criteo.made_up(20000, 1)
    for index in range(2):
        written(tmp_path / "data", f"day_{index}.gz", lines[index::2])
    with Cluster(tmp_path / "run", "recommend", ps=2) as cluster:
        args = {"data_dir": str(tmp_path / "data")}
        cluster.start_all({"steps": 200, "batch_size": 64, "towers": 2}, args)
        assert cluster.finish().metrics["auc"] > 0.74
