"""Local callers reach an agent through a socket in the run's own folder."""

import asyncio
import os
import socket
import stat
from pathlib import Path
from typing import Any, AsyncIterator, Callable, Dict

import pytest

from launch.agent.protocol import local_socket
from launch.agent.service.agent import Clients
from tests.support.waiting import PATIENCE_S


async def answer(request: Dict[str, Any]) -> AsyncIterator[Dict[str, Any]]:
    """Counts as far as it is asked to."""
    for number in range(int(request["count"])):
        yield {"number": number}


def with_agent(folder: Path, act: Callable[[], Any], answers: Any = answer) -> Any:
    """What ``act`` returns, called in a thread while an agent answers."""

    async def both() -> Any:
        served = Clients(folder / "agent.sock", answers)
        await served.open()
        try:
            return await asyncio.wait_for(asyncio.get_event_loop().run_in_executor(None, act), PATIENCE_S)
        finally:
            await served.close()

    return asyncio.run(both())


def exchange(folder: Path, text: bytes, lines: int) -> bytes:
    """What comes back for ``text``: so many lines, or what there is when the agent hangs up."""
    with local_socket.connect(folder, PATIENCE_S) as line, line.makefile("rb") as replies:
        line.sendall(text)
        return b"".join(replies.readline() for _ in range(lines))


def test_a_request_is_answered(tmp_path: Path) -> None:
    assert with_agent(tmp_path, lambda: local_socket.ask_agent(tmp_path, {"count": 1}, PATIENCE_S)) == {"number": 0}


def test_one_caller_may_ask_more_than_once_and_an_answer_may_have_many_lines(tmp_path: Path) -> None:
    got = with_agent(tmp_path, lambda: exchange(tmp_path, b'{"count": 2}\n{"count": 1}\n', 3))
    assert sorted(got.splitlines()) == [b'{"number": 0}', b'{"number": 0}', b'{"number": 1}']


def test_a_folder_may_be_deeper_than_the_path_of_a_socket_can_be(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100) / ("y" * 100)
    deep.mkdir(parents=True)
    here = os.getcwd()
    assert with_agent(deep, lambda: local_socket.ask_agent(deep, {"count": 1}, PATIENCE_S)) == {"number": 0}
    assert os.getcwd() == here


def test_the_socket_is_there_while_the_agent_is(tmp_path: Path) -> None:
    sock = tmp_path / "agent.sock"
    assert with_agent(tmp_path, lambda: stat.S_ISSOCK(sock.stat().st_mode))
    assert not sock.exists()
    with pytest.raises(OSError):
        local_socket.ask_agent(tmp_path, {"count": 1})


def test_where_an_agent_died_nobody_answers(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "agent.sock"))
    with pytest.raises(ConnectionRefusedError):
        local_socket.ask_agent(tmp_path, {"count": 1})


def test_an_agent_that_does_not_answer_is_waited_for_so_long_and_no_longer(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "agent.sock"))
        listener.listen(1)
        with pytest.raises(socket.timeout):
            local_socket.ask_agent(tmp_path, {"count": 1}, timeout_s=0.05)


def test_an_agent_that_hangs_up_is_no_answer(tmp_path: Path) -> None:
    async def hang_up(request: Dict[str, Any]) -> AsyncIterator[Dict[str, Any]]:
        for _ in ():
            yield {}

    def act() -> None:
        with local_socket.connect(tmp_path, PATIENCE_S) as line:
            line.sendall(b'{"count": 0}\n')
            line.shutdown(socket.SHUT_WR)
            assert line.recv(1) == b""

    with_agent(tmp_path, act, hang_up)


@pytest.mark.parametrize("line", [b"hello\n", b"[]\n", b"\xff\n", b"{}\n"])
def test_a_caller_that_makes_no_sense_is_told_so_and_others_are_answered(tmp_path: Path, line: bytes) -> None:
    def act() -> bytes:
        assert b'"error"' in exchange(tmp_path, line, 1)
        return exchange(tmp_path, b'{"count": 1}\n', 1)

    assert with_agent(tmp_path, act) == b'{"number": 0}\n'


def test_an_agent_that_closes_lets_replies_under_way_end(tmp_path: Path) -> None:
    async def slow(request: Dict[str, Any]) -> AsyncIterator[Dict[str, Any]]:
        yield {"number": 1}
        await asyncio.sleep(0.05)
        yield {"number": 2}

    async def both() -> bytes:
        served = Clients(tmp_path / "agent.sock", slow)
        await served.open()
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "agent.sock"))
        writer.write(b"{}\n")
        first = await asyncio.wait_for(reader.readline(), PATIENCE_S)
        await served.close()
        second = await asyncio.wait_for(reader.readline(), PATIENCE_S)
        writer.close()
        return first + second

    assert asyncio.run(both()) == b'{"number": 1}\n{"number": 2}\n'
