"""The size of a run, its last use, and whether it holds more than logs and records; links are never followed."""

import json
import os
import stat
from pathlib import Path
from typing import Callable

import pytest

from launch.agent.retention.measure import measure
from launch.agent.tasks import work_folder
from tests.launch.agent.retention.conftest import PastRuns

RUN = "a-20260101-120000"


def test_logs_and_records_are_no_results(past: PastRuns) -> None:
    folder = past.make(RUN, 10)
    for name in (
        "attempt_0.log.times",
        "progress.json",
        "outcome.json",
        "pulse.json",
        "stacks.txt",
        "spans.ring",
        ".outcome.room",
    ):
        (folder.task("worker:0") / name).write_text("x")
    assert not measure(folder.path).has_results


@pytest.mark.parametrize(
    "name",
    [
        "checkpoint/model-3.index", "hosts/h/checkpoint/model-3.index", "worker.0/work/model.h5", "trace/step_1.json",
        "worker.0/notes.txt", "notes.txt",
    ],
)  # fmt: skip
def test_anything_else_is_a_result(name: str, past: PastRuns) -> None:
    folder = past.make(RUN, 10)
    (folder.path / name).parent.mkdir(parents=True, exist_ok=True)
    (folder.path / name).write_text("x")
    assert measure(folder.path).has_results


def test_copies_of_the_job_are_results_once_a_task_has_changed_them(past: PastRuns, tmp_path: Path) -> None:
    (tmp_path / "job" / "data").mkdir(parents=True)
    (tmp_path / "job" / "data" / "a.txt").write_text("a")
    folder = past.make(RUN, 10)
    work_folder.fill(folder.task("worker:0"), tmp_path / "job")
    assert not measure(folder.path).has_results
    (folder.task("worker:0") / "work" / "data" / "a.txt").write_text("b")
    os.utime(str(folder.task("worker:0") / "work" / "data" / "a.txt"), (1, 1))
    assert measure(folder.path).has_results


def test_copies_in_the_folder_of_a_host_are_results_once_a_task_has_changed_them(
    past: PastRuns, tmp_path: Path
) -> None:
    (tmp_path / "job" / "data").mkdir(parents=True)
    (tmp_path / "job" / "data" / "a.txt").write_text("a")
    folder = past.make(RUN, 10)
    work_folder.fill(folder.own, tmp_path / "job")
    (folder.task("worker:0") / "work").symlink_to(folder.own / "work")
    assert not measure(folder.path).has_results
    (folder.own / "work" / "data" / "b.txt").write_text("b")
    assert measure(folder.path).has_results


def test_a_file_of_two_runs_counts_for_each_with_half_of_it(past: PastRuns) -> None:
    one, other = past.make(RUN, 10), past.make("a-20260102-120000", 9)
    before = measure(one.path).bytes
    (one.path / "big").write_bytes(b"x" * (1 << 20))
    assert measure(one.path).bytes - before == 1 << 20
    os.link(str(one.path / "big"), str(other.path / "big"))
    assert measure(one.path).bytes - before == 1 << 19


def test_a_link_is_neither_followed_nor_counted_with_what_it_leads_to(past: PastRuns, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "big").write_bytes(b"x" * (1 << 20))
    folder = past.make(RUN, 10)
    before = measure(folder.path).bytes
    (folder.path / "link").symlink_to(tmp_path / "elsewhere")
    (folder.path / "loop").symlink_to(folder.path)
    assert measure(folder.path).bytes - before < 1 << 16


def test_the_newest_modification_of_anything_is_the_last_use(past: PastRuns) -> None:
    folder = past.make(RUN, 10)
    assert past.now - measure(folder.path).used_at > 9 * 86400
    (folder.task("worker:0") / "progress.json").write_text(json.dumps({}))
    assert past.now - measure(folder.path).used_at < 100


@pytest.mark.parametrize(("is_of_another_disk", "is_mount"), [(os.path.isdir, True), (os.path.isfile, False)])
def test_a_folder_of_another_disk_is_one_and_a_file_is_not_as_in_an_overlay(
    past: PastRuns, monkeypatch: pytest.MonkeyPatch, is_of_another_disk: Callable[[str], bool], is_mount: bool
) -> None:
    folder, lstat = past.make(RUN, 10), os.lstat

    def of_disks(path: str) -> os.stat_result:
        status = list(lstat(path))
        status[stat.ST_DEV] += path != str(folder.path) and is_of_another_disk(path)
        return os.stat_result([*status, *([0.0] * 3), *([0] * 3), 4096, 0, 0][:19])

    monkeypatch.setattr(os, "lstat", of_disks)
    assert (measure(folder.path).mount is not None) == is_mount
