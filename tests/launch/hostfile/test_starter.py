"""``launch init``: a folder that is new, whole and right, or none."""

import csv
from pathlib import Path

import pytest

from cluster.spec import load
from launch.errors import UsageError
from launch.hosts.bundle import find_job
from launch.verbs import init


def test_the_hosts_file_is_right_and_names_the_job_beside_it(tmp_path: Path) -> None:
    init.write(tmp_path / "houses-2")
    spec = load(tmp_path / "houses-2" / "hosts.yaml")
    assert (spec.name, [task.name for task in spec.tasks]) == ("houses-2", ["ps:0", "worker:0", "worker:1"])
    assert spec.job is not None
    assert find_job(spec.job, tmp_path / "houses-2").folder == (tmp_path / "houses-2").resolve()
    assert len((tmp_path / "houses-2" / "README.md").read_text().splitlines()) <= 10


@pytest.mark.parametrize("name", ["job.py", "predict.py"])
def test_the_programs_are_python_with_lines_that_fit_an_editor(name: str, tmp_path: Path) -> None:
    text = init.write(tmp_path / "houses")[name]
    compile(text, name, "exec")
    assert text == (tmp_path / "houses" / name).read_text() and "NAME" not in text
    assert max(map(len, text.splitlines())) <= 120


def test_the_table_has_a_number_in_every_cell_and_is_always_the_same(tmp_path: Path) -> None:
    first, second = (init.write(tmp_path / name)["data.csv"] for name in ("one", "two"))
    head, *rows = csv.reader(first.splitlines())
    assert head == ["area", "rooms", "age", "price"] and first == second
    assert {len([float(cell) for cell in row]) for row in rows} == {4} and len(rows) == 500


def test_a_folder_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "houses").mkdir()
    (tmp_path / "houses" / "job.py").write_text("mine")
    with pytest.raises(UsageError, match=r"^launch init: expected a folder .*, found .*/houses; name another folder$"):
        init.write(tmp_path / "houses")
    assert [path.read_text() for path in (tmp_path / "houses").iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["-x", "my houses", "é", "a" * 101])
def test_a_name_that_no_run_may_have_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a name of letters, digits"):
        init.write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_none_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write .*/no/houses: No such file or directory"):
        init.write(tmp_path / "no" / "houses")
