"""A SavedModel comes whole into its folder, or not at all; no name leads out of the folder."""

import base64
import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

from launch.agent.wire.verb_requests import ExportRequest
from launch.errors import LaunchError
from launch.verbs.export_files import fetch, fetch_delta
from tests.launch.hosts.good_conversations import EXPORTED, HOST, READY
from tests.support.agent.requested import run_request
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of

Lines = List[Dict[str, Any]]


def file(name: str, content: bytes, size: int = -1) -> Lines:
    """A file in chunks of 3 bytes."""
    data = [content[start : start + 3] for start in range(0, len(content), 3)]
    chunks = [{"data": base64.b64encode(each).decode()} for each in data]
    return [{"file": name, "bytes": len(content) if size < 0 else size}, *chunks]


def fetched(folder: Path, lines: Lines) -> Dict[str, Any]:
    said = (json.dumps(each).encode() + b"\n" for each in [READY, *lines])
    with fleet_of({HOST: FakeHost(HOST, FakeChannel(*said))}) as fleet:
        return fetch(fleet, ExportRequest(run_request(host=HOST)), folder, lambda line: None)


def test_files_come_with_their_bytes_and_folders(tmp_path: Path) -> None:
    content = {"saved_model.pb": bytes(range(256)), "variables/variables.index": b"", "assets/a/b": b"0123456"}
    lines = [line for name, each in content.items() for line in file(name, each)]
    assert fetched(tmp_path / "served", [{"stage": "builds"}, *lines, EXPORTED]) == EXPORTED
    found = [path for path in (tmp_path / "served").rglob("*") if path.is_file()]
    assert {path.relative_to(tmp_path / "served").as_posix(): path.read_bytes() for path in found} == content
    assert [path.name for path in tmp_path.iterdir()] == ["served"]


NAMES = ["../a", "/a", "a/../../a", "", ".."]
CASES: List[Lines] = [
    *([*file(name, b"x"), EXPORTED] for name in NAMES),
    file("a", b"0123"),
    [*file("a", b"0123", size=5), EXPORTED],
    [*file("a", b"0123", size=3), EXPORTED],
    [{"data": "aGk="}, EXPORTED],
    [{"file": "a", "bytes": 2}, {"data": "?"}, EXPORTED],
    [*file("a", b"x"), *file("a", b"y"), EXPORTED],
    [{"error": "expected a checkpoint of step 7, found none"}],
]


@pytest.mark.parametrize("lines", CASES, ids=range(len(CASES)))
def test_anything_else_leaves_nothing(lines: Lines, tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    with pytest.raises(LaunchError):
        fetched(tmp_path / "inside" / "served", lines)
    assert [path.name for path in tmp_path.rglob("*")] == ["inside"]


DELTA = "7-00000000..3-1f3a9c0d.npz"


def fetched_delta(folder: Path, lines: Lines) -> Path:
    said = (json.dumps(each).encode() + b"\n" for each in [READY, *lines])
    request = ExportRequest(run_request(host=HOST), since="7-00000000")
    with fleet_of({HOST: FakeHost(HOST, FakeChannel(*said))}) as fleet:
        return fetch_delta(fleet, request, folder, lambda line: None)[1]


def test_a_delta_comes_into_its_folder_beside_others(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "new"):
        path = fetched_delta(folder, [*file(DELTA, b"0123"), EXPORTED])
        assert path == folder / DELTA and path.read_bytes() == b"0123"
    assert {each.name for each in tmp_path.iterdir()} == {DELTA, "new"}


@pytest.mark.parametrize(
    "lines",
    [
        [*file("other.npz", b"x"), EXPORTED],
        [*file(f"{DELTA}/x", b"x"), EXPORTED],
        [*file(DELTA, b"x"), *file("more", b"x"), EXPORTED],
        [*file(DELTA, b"x"), {**EXPORTED, "done": {**EXPORTED["done"], "version": "../3-1f3a9c0d"}}],
        [EXPORTED],
        [{"error": "no such version"}],
    ],
    ids=range(6),
)
def test_anything_but_the_delta_leaves_nothing(lines: Lines, tmp_path: Path) -> None:
    with pytest.raises(LaunchError):
        fetched_delta(tmp_path / "new", lines)
    assert list(tmp_path.iterdir()) == []
