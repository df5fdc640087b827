"""FILE may be left out; what is no hosts file is a task, a folder, or a mistake with what to type."""

from pathlib import Path
from typing import Any, Dict, List

import pytest
from click.testing import CliRunner

from launch.cli import cli, load
from launch.verbs.options import complete_hosts_file


@pytest.mark.parametrize(
    ("verb", "words", "expected"),
    [
        ("status", [], {"file": "hosts.yaml"}),
        ("status", ["--json", "r.yaml"], {"file": "r.yaml", "as_json": True}),
        ("status", ["digits"], {"file": "digits"}),  # the error of a missing file follows
        ("logs", [], {"file": "hosts.yaml", "patterns": ()}),
        ("logs", ["worker:1", "-f", "ps:*"], {"file": "hosts.yaml", "patterns": ("worker:1", "ps:*"), "follow": True}),
        ("logs", ["r.yml", "worker:1"], {"file": "r.yml", "patterns": ("worker:1",)}),
        ("logs", ["my-hosts", "gpu02"], {"file": "my-hosts", "patterns": ("gpu02",)}),  # a file without a suffix
        ("restart", ["worker:1"], {"file": "hosts.yaml", "patterns": ("worker:1",)}),
        ("export", ["served"], {"file": "hosts.yaml", "folder": "served"}),
        ("export", ["r.yaml", "served"], {"file": "r.yaml", "folder": "served"}),
    ],
)
def test_file_is_hosts_yaml_where_no_word_means_a_file(
    verb: str, words: List[str], expected: Dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-hosts").touch()
    found = load(verb).make_context(verb, list(words)).params
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize("words", [["restart"], ["export", "r.yaml"]])
def test_a_task_or_folder_that_is_missing_is_refused(words: List[str]) -> None:
    assert "Missing argument" in CliRunner().invoke(cli, words).output


START = "name a file, or write a first job with `launch init NAME`"
FIND = "name the run's file, or any file with the same hosts: `launch runs FILE` lists every run there"


@pytest.mark.parametrize(
    ("verb", "step"),
    [("up", START), ("plan", START), ("check", START), ("status", FIND), ("logs", FIND), ("runs", FIND)],
)
def test_without_any_hosts_file_the_next_step_is_named(
    verb: str, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    error = CliRunner().invoke(cli, [verb]).exception
    assert str(error) == f"FILE: expected a hosts file, or hosts.yaml in this folder, found neither; {step}"


def test_a_job_in_the_place_of_its_hosts_file_is_answered_with_what_to_type() -> None:
    error = CliRunner().invoke(cli, ["up", "houses/job.py"]).exception
    assert str(error).splitlines() == [
        "FILE: expected a hosts file, found the Python file houses/job.py",
        "for a job, type `launch up houses/hosts.yaml`, once that file has the lines",
        "  job: job.py",
        "  cluster: {ps: [localhost], worker: [localhost, localhost]}",
        "for a script that trains by itself, type `launch run -H localhost -- python houses/job.py`",
    ]


@pytest.mark.parametrize(
    ("verb", "expected"), [("restart", ["w.yaml", "worker:0", "worker:1", "worker:*"]), ("status", ["w.yaml"])]
)
def test_the_tab_key_offers_tasks_where_file_may_be_left_out(
    verb: str, expected: List[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.yaml").touch()
    (tmp_path / "hosts.yaml").write_text("job: digits\ncluster: {ps: [a], worker: [b, c]}\n")
    context = load(verb).make_context(verb, [], resilient_parsing=True)
    assert complete_hosts_file(context, context.command.params[0], "w") == expected
