"""A checkpoint arrives as it was or not at all, and what has not arrived is none."""

import asyncio
import os
from pathlib import Path
from typing import Any, Callable, List, Optional, Tuple, Union

from launch.agent.checkpoints import stored, transfer
from launch.agent.protocol.sealed import Keys, Sealed
from tests.support.agent.saved import save, save_in_pieces, steps

KEY = b"sender"
LARGE = 3 * transfer.CHUNK + 7
Result = Union[int, None, transfer.CopyError]
Meddle = Callable[[bytes], Optional[bytes]]


def copied(
    source: Path, target: Path, meddle: Optional[Meddle] = None, keep: int = 5, key: bytes = KEY
) -> List[Result]:
    """What the sender and the receiver say of a copy of the newest checkpoint.

    Args:
      meddle: what becomes of bytes on their way; None for an end of the connection.
    """
    return asyncio.run(asyncio.wait_for(_copied(source, target, meddle, keep, key), 60))


async def _copied(source: Path, target: Path, meddle: Optional[Meddle], keep: int, key: bytes) -> List[Result]:
    received: asyncio.Future[Result] = asyncio.get_event_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        changed = asyncio.StreamReader() if meddle else reader
        passing = asyncio.ensure_future(_pass(reader, changed, meddle)) if meddle else None
        streams = Sealed(changed, writer, Keys(b"receiver", key))
        received.set_result(await _tried(transfer.receive(streams, target, keep, lambda moved: None)))
        if passing is not None:
            passing.cancel()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    checkpoint = stored.checkpoints(source)[-1]
    sent = await _tried(transfer.send(Sealed(reader, writer, Keys(KEY, b"receiver")), checkpoint, lambda moved: None))
    writer.close()
    result = await received
    server.close()
    return [sent, result]


async def _pass(reader: asyncio.StreamReader, changed: asyncio.StreamReader, meddle: Meddle) -> None:
    """Feeds one stream with what ``meddle`` makes of another."""
    while True:
        data = await reader.read(1000)
        passed = meddle(data) if data else None
        if passed is None:
            changed.feed_eof()
            return
        changed.feed_data(passed)


async def _tried(work: Any) -> Result:
    try:
        step: Optional[int] = await work
    except transfer.CopyError as error:
        return error
    return step


def folders(tmp_path: Path) -> Tuple[Path, Path]:
    """A folder that holds a large checkpoint of step 10, and one to copy into that holds an older one."""
    save(tmp_path / "source", 10)
    (tmp_path / "source" / "model-10.data-00000-of-00001").write_bytes(os.urandom(LARGE))
    save(tmp_path / "target", 5)
    return tmp_path / "source", tmp_path / "target"


def test_a_checkpoint_arrives_byte_by_byte_and_is_listed(tmp_path: Path) -> None:
    source, target = folders(tmp_path)
    assert copied(source, target) == [None, 10]
    assert steps(target) == [5, 10]
    for path in stored.checkpoints(source)[-1].files():
        assert (target / path.name).read_bytes() == path.read_bytes()
    assert (target / "checkpoint").read_text().startswith('model_checkpoint_path: "model-10"')
    assert not (target / transfer.PARTIAL).exists()


def test_what_is_there_already_is_not_sent_again(tmp_path: Path) -> None:
    source, target = folders(tmp_path)
    copied(source, target)
    passed: List[int] = []

    def count(data: bytes) -> bytes:
        passed.append(len(data))
        return data

    assert copied(source, target, count) == [None, 10]
    assert sum(passed) < 1000


def test_a_checkpoint_saved_anew_under_the_same_step_is_sent_again(tmp_path: Path) -> None:
    source, target = folders(tmp_path)
    copied(source, target)
    index = source / "model-10.index"
    index.write_text("another")
    copied(source, target)
    assert (target / "model-10.index").read_text() == "another"


def test_one_in_hundreds_of_pieces_arrives_in_place_of_one_of_that_step_in_others(tmp_path: Path) -> None:
    save_in_pieces(tmp_path / "source", 10, 512)
    save_in_pieces(tmp_path / "target", 10, 3)
    assert copied(tmp_path / "source", tmp_path / "target") == [None, 10]
    expected = {path.name: path.read_bytes() for path in (tmp_path / "source").iterdir()}
    found = {path.name: path.read_bytes() for path in (tmp_path / "target").glob("model*")}
    assert found == expected and len(found) == 513


def test_only_the_newest_stay(tmp_path: Path) -> None:
    source, target = folders(tmp_path)
    assert copied(source, target, keep=1) == [None, 10]
    assert steps(target) == [10]


def cut_after(size: int) -> Meddle:
    """Ends a connection after so many bytes."""
    passed: List[int] = []

    def cut(data: bytes) -> Optional[bytes]:
        passed.append(len(data))
        return data if sum(passed) < size else None

    return cut


def test_of_a_copy_that_was_cut_off_nothing_is_left(tmp_path: Path) -> None:
    source, target = folders(tmp_path)
    before = sorted(path.name for path in target.iterdir())
    sent, received = copied(source, target, cut_after(LARGE // 2))
    assert isinstance(sent, transfer.CopyError) and "the connection broke" in str(received)
    assert sorted(path.name for path in target.iterdir()) == before
    assert copied(source, target) == [None, 10]


def test_bytes_that_changed_on_their_way_are_noticed(tmp_path: Path) -> None:
    source, target = folders(tmp_path)
    passed: List[int] = []

    def flip(data: bytes) -> bytes:
        passed.append(len(data))
        return data[:-1] + bytes([data[-1] ^ 1]) if sum(passed) // transfer.CHUNK == 1 and len(data) > 1 else data

    sent, received = copied(source, target, flip)
    assert str(received) == "model-10.data-00000-of-00001 arrived damaged"
    assert str(sent) == "the other side: model-10.data-00000-of-00001 arrived damaged"
    assert steps(target) == [5] and not (target / transfer.PARTIAL).exists()


FORGED = "expected the other side's next message, found one that is forged, repeated or changed"


def test_a_sender_without_the_key_is_refused(tmp_path: Path) -> None:
    source, target = folders(tmp_path)
    sent, received = copied(source, target, key=b"another")
    assert str(received) == FORGED and str(sent) == f"the other side: {FORGED}" and steps(target) == [5]


def test_names_that_were_changed_on_their_way_are_noticed(tmp_path: Path) -> None:
    source, target = folders(tmp_path)

    def rename(data: bytes) -> bytes:
        return data.replace(b'"model-10.index"', b'"model-11.index"')

    assert str(copied(source, target, rename)[1]) == FORGED and steps(target) == [5]


def test_nothing_is_written_outside_the_folder(tmp_path: Path, monkeypatch: Any) -> None:
    source, target = folders(tmp_path)
    opened = transfer._opened

    def leading_out(*arguments: Any) -> Any:
        return [(file._replace(name=f"../{file.name}"), content) for file, content in opened(*arguments)]

    monkeypatch.setattr(transfer, "_opened", leading_out)
    _, received = copied(source, target)
    assert str(received) == "expected a checkpoint's file, found '../model-10.data-00000-of-00001'"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]


def test_a_folder_that_cannot_be_written_is_named_to_both(tmp_path: Path) -> None:
    source, _ = folders(tmp_path)
    (tmp_path / "file").touch()
    sent, received = copied(source, tmp_path / "file" / "target")
    assert str(received) == f"{tmp_path / 'file' / 'target' / transfer.PARTIAL}: Not a directory"
    assert str(sent) == f"the other side: {received}"


def test_a_disk_that_could_not_hold_it_is_not_filled(tmp_path: Path, monkeypatch: Any) -> None:
    source, target = folders(tmp_path)
    monkeypatch.setattr(transfer, "SPARE_BYTES", 1 << 60)
    _, received = copied(source, target)
    assert "too little for a checkpoint of 3 MiB" in str(received) and steps(target) == [5]
    assert not (target / transfer.PARTIAL).exists()
