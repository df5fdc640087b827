"""Packages arrive whole or not at all, and once."""

import hashlib
import io
import os
import time
from pathlib import Path

import pytest

from launch.agent.environments.wheel_store import CHUNK, UNUSED_S, Broken, WheelStore
from launch.agent.wire.verb_requests import WheelFile

DATA = os.urandom(2 * CHUNK + 7)


def file_of(data: bytes, name: str = "tiny-1.0-py3-none-any.whl") -> WheelFile:
    return WheelFile(name, hashlib.sha256(data).hexdigest(), len(data))


def test_a_file_that_was_received_is_not_missing_any_more(tmp_path: Path) -> None:
    store, file = WheelStore(tmp_path), file_of(DATA)
    assert store.missing([file]) == [file]
    store.receive(file, io.BytesIO(DATA).read)
    assert store.missing([file]) == []


def test_no_more_than_a_piece_is_asked_for_at_a_time(tmp_path: Path) -> None:
    asked = []
    stream = io.BytesIO(DATA + b"what comes after it")

    def read(size: int) -> bytes:
        asked.append(size)
        return stream.read(size)

    WheelStore(tmp_path).receive(file_of(DATA), read)
    assert asked == [CHUNK, CHUNK, 7]
    assert stream.read() == b"what comes after it"


@pytest.mark.parametrize(("came", "error"), [(DATA[:-1], EOFError), (DATA[::-1], Broken)], ids=["half", "another"])
def test_half_a_file_or_another_one_leaves_nothing(tmp_path: Path, came: bytes, error: type) -> None:
    store = WheelStore(tmp_path)
    with pytest.raises(error):
        store.receive(file_of(DATA), io.BytesIO(came).read)
    assert [path for path in store.path.rglob("*") if path.is_file()] == []


def test_pip_sees_the_files_of_one_build_in_one_folder_under_their_names(tmp_path: Path) -> None:
    store, files = WheelStore(tmp_path), [file_of(b"one", "one-1.whl"), file_of(b"two", "two-1.whl")]
    for file, data in zip(files, (b"one", b"two")):
        store.receive(file, io.BytesIO(data).read)
    store.link(files, tmp_path / "seen")
    assert {path.name: path.read_bytes() for path in (tmp_path / "seen").iterdir()} == {
        "one-1.whl": b"one",
        "two-1.whl": b"two",
    }


def test_files_that_no_build_has_used_for_a_month_are_removed(tmp_path: Path) -> None:
    store, old, young = WheelStore(tmp_path), file_of(b"old"), file_of(b"young")
    store.receive(old, io.BytesIO(b"old").read)
    store.receive(young, io.BytesIO(b"young").read)
    then = time.time() - UNUSED_S - 60
    os.utime(str(store.path / old.sha256), (then, then))
    store.remove_unused()
    assert store.missing([old, young]) == [old]
