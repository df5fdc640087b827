"""The archive: what to read first in front, a folder a host, closed to others; and what is said of it."""

import stat
import tarfile
from pathlib import Path

import pytest

from launch.diagnosis.collect import HostReport
from launch.diagnosis.summary import as_values, pack, spoken, text
from launch.diagnosis.symptoms import Diagnosis
from launch.errors import UsageError
from tests.launch.diagnosis.evidence import RUN, status, told


@pytest.fixture
def found() -> Diagnosis:
    """A run that failed, on two hosts that told and one that did not."""
    words = ["1. at 3.0 s worker:0@a: killed by SIGKILL"]
    lead = told("a", status=status("a", cause="worker:0@a: killed by SIGKILL"), report={"words": words})
    lead.files["tasks/worker.0/attempt_0.log"] = "up\n"
    lead.missing["gpus"] = "not done within 9 s"
    return Diagnosis("r", [lead, told("b"), told("c"), HostReport("d", problem="is off")])


def test_what_to_read_first_is_in_front_and_nobody_else_may_read_it(tmp_path: Path, found: Diagnosis) -> None:
    path = tmp_path / "x.tar.gz"
    size = pack(path, found, {"python": "3"})
    assert size == path.stat().st_size and stat.S_IMODE(path.stat().st_mode) == 0o600
    with tarfile.open(str(path)) as archive:
        names = archive.getnames()
    assert names[:2] == ["x/summary.txt", "x/README.txt"]
    assert {"x/hosts/a/tasks/worker.0/attempt_0.log", "x/hosts/a/missing.json", "x/hosts/d/missing.json"} <= set(names)
    assert [each.name for each in tmp_path.iterdir()] == ["x.tar.gz"]


def test_where_it_cannot_be_written_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write .*: No such file or directory; choose another place with -o"):
        pack(tmp_path / "none" / "x.tar.gz", Diagnosis("r", []), {})


def test_the_summary_tells_the_run_what_looks_wrong_and_every_host(found: Diagnosis) -> None:
    assert text(found, "now").splitlines() == [
        f"{RUN}, at now",
        "",
        "# The run",
        "state: running",
        "step: 7 of 9, last checkpoint at 5",
        "cause: worker:0@a: killed by SIGKILL",
        "1. at 3.0 s worker:0@a: killed by SIGKILL",
        "",
        "# Symptoms",
        "a: its answer lacks section gpus: not done within 9 s",
        "d: incomplete answer: is off",
        "",
        "# Hosts",
        "a: its agent runs, 1 task runs; 1 symptom",
        "b,c: its agent runs, 1 task runs; no symptom",
        "d: no answer: is off",
    ]


def test_the_summary_of_a_run_to_the_end_of_its_data_names_no_last_step() -> None:
    endless = Diagnosis("r", [told("a", status=status("a", steps=None))])
    assert "step: 7, last checkpoint at 5" in text(endless, "now").splitlines()


def test_a_summary_of_no_run_says_so() -> None:
    of_none = text(Diagnosis("r", [HostReport("a")]), "now")
    assert "no run of this name has been on these hosts" in of_none and of_none.startswith("r, at now")


def test_what_is_said_names_the_archive_and_who_told_nothing(found: Diagnosis) -> None:
    assert spoken(found, "x.tar.gz", 1_500_000)[-1] == (
        "x.tar.gz: 3 of 4 hosts answered, 1.5 MB; no answer from d; start with its summary.txt"
    )


def test_the_json_has_every_host_and_what_looks_wrong_there(found: Diagnosis) -> None:
    values = as_values(found, "x.tar.gz", 9)
    assert (values["run"], values["archive"], values["bytes"]) == (RUN, "x.tar.gz", 9)
    assert [host["error"] for host in values["hosts"]] == [None, None, None, "is off"]
    assert values["hosts"][0]["looks_wrong"] == ["its answer lacks section gpus: not done within 9 s"]
