"""The link between a member and the lead: only who knows the token gets one, and silence is noticed."""

import asyncio
import json
from typing import Any, Awaitable, Callable, List, Optional, Tuple, Union

import pytest

from launch.agent.linux.sockets import free_ports
from launch.agent.protocol import links
from launch.agent.protocol.links import Greeting, Link, LinkError
from launch.agent.protocol.messages import Advanced, Ping, Start, Started, encode
from launch.agent.protocol.sealed import PIECE
from tests.support.waiting import PATIENCE_S

TOKEN = "a0" * 16
Streams = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[Any]]
ME = Greeting("gpu02", "member-1")


def with_server(serve: Streams, act: Callable[[Tuple[str, int]], Awaitable[Any]]) -> None:
    """Runs ``act`` against a server on loopback; whatever either does must end in time."""

    async def both() -> None:
        serving: List[asyncio.Future[Any]] = []

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            serving.append(asyncio.ensure_future(serve(reader, writer)))
            await asyncio.wait(serving)
            writer.close()

        server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=PIECE)
        try:
            await asyncio.wait_for(act(server.sockets[0].getsockname()), PATIENCE_S)
            await asyncio.wait_for(asyncio.gather(*serving), PATIENCE_S)
        finally:
            server.close()
            await server.wait_closed()

    asyncio.run(both())


def linked(lead: Callable[[Link], Awaitable[Any]], member: Callable[[Link], Awaitable[Any]]) -> None:
    """The two ends of one link, each in the hands of a coroutine."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await lead(await links.answer(reader, writer, TOKEN, "lead-1"))

    async def act(address: Tuple[str, int]) -> None:
        link = await links.dial(address, ME, TOKEN, PATIENCE_S)
        await member(link)
        await link.close()

    with_server(serve, act)


async def nothing(_: Link) -> None:
    """This side says nothing."""


def dial_error(serve: Streams, token: str = TOKEN) -> str:
    """Why a member does not get a link from this server."""
    errors: List[str] = []

    async def act(address: Tuple[str, int]) -> None:
        with pytest.raises(LinkError) as caught:
            await links.dial(address, ME, token, PATIENCE_S)
        errors.append(str(caught.value))

    with_server(serve, act)
    return errors[0]


def answer_error(say: Union[bytes, Callable[[bytes], bytes]]) -> str:
    """Why the lead refuses a caller that answers its greeting so."""
    errors: List[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with pytest.raises(LinkError) as caught:
            await links.answer(reader, writer, TOKEN, "lead-1")
        errors.append(str(caught.value))

    async def act(address: Tuple[str, int]) -> None:
        reader, writer = await asyncio.open_connection(*address)
        greeting = await reader.readline()
        writer.write(say(greeting) if callable(say) else say)
        await reader.read()  # until the lead hangs up
        writer.close()

    with_server(serve, act)
    return errors[0]


# -- with the token


def test_who_knows_the_token_gets_a_link_that_names_the_host_and_carries_messages_both_ways() -> None:
    start, started = Start("worker:1", 0), Started("worker:1", 0, 42, [], "log")

    async def lead(link: Link) -> None:
        assert link.peer.host == "gpu02"
        link.send(start)
        assert [await link.receive(PATIENCE_S), await link.receive(PATIENCE_S)] == [started, Ping()]

    async def member(link: Link) -> None:
        assert await link.receive(PATIENCE_S) == start
        link.send(started)
        link.send(Ping())

    linked(lead, member)


def test_a_ping_is_echoed_and_so_its_sender_knows_until_when_it_was_heard() -> None:
    async def member(link: Link) -> None:
        began = asyncio.get_event_loop().time()
        assert link.confirmed_at <= began  # from the handshake
        beating = asyncio.ensure_future(link.keep_alive(PATIENCE_S))
        echo = await link.receive(PATIENCE_S)
        beating.cancel()
        assert isinstance(echo, Ping) and link.confirmed_at == echo.echo >= began

    async def lead(link: Link) -> None:
        assert isinstance(await link.receive(PATIENCE_S), Ping)
        with pytest.raises(LinkError):
            await link.receive(PATIENCE_S)  # an echo is not echoed

    linked(lead, member)


def test_an_end_that_says_nothing_is_noticed() -> None:
    async def lead(link: Link) -> None:
        with pytest.raises(LinkError, match="no message for 0 s"):
            await link.receive(0.05)

    async def member(link: Link) -> None:
        with pytest.raises(LinkError, match="closed"):
            await link.receive(PATIENCE_S)

    linked(lead, member)


def test_an_end_that_is_gone_is_noticed_and_sending_to_it_is_no_error() -> None:
    async def member(link: Link) -> None:
        with pytest.raises(LinkError, match="the connection was closed"):
            await link.receive(PATIENCE_S)
        await link.close()
        link.send(Ping())

    linked(nothing, member)


def test_a_line_that_is_no_message_ends_the_link() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await links.answer(reader, writer, TOKEN, "lead-1")
        writer.write(b"hello\n")

    async def act(address: Tuple[str, int]) -> None:
        link = await links.dial(address, ME, TOKEN, PATIENCE_S)
        with pytest.raises(LinkError):
            await link.receive(PATIENCE_S)
        await link.close()

    with_server(serve, act)


def test_a_message_of_some_megabytes_arrives() -> None:
    told = Advanced("worker:1", 0, {"text": "x" * 3_000_000})

    async def lead(link: Link) -> None:
        assert await link.receive(PATIENCE_S) == told

    async def member(link: Link) -> None:
        link.send(told)
        with pytest.raises(LinkError):
            await link.receive(PATIENCE_S)

    linked(lead, member)


# -- without it


def test_a_conversation_that_was_recorded_is_of_no_use_in_another() -> None:
    recorded: List[bytes] = []

    async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kept = asyncio.StreamReader()
        passing = asyncio.ensure_future(keep(reader, kept))
        link = await links.answer(kept, writer, TOKEN, "lead-1")
        assert await link.receive(PATIENCE_S) == Started("worker:1", 0, 42, [], "log")
        passing.cancel()

    async def keep(source: asyncio.StreamReader, target: asyncio.StreamReader) -> None:
        while True:
            recorded.append(await source.readline())
            target.feed_data(recorded[-1])

    async def act(address: Tuple[str, int]) -> None:
        link = await links.dial(address, ME, TOKEN, PATIENCE_S)
        link.send(Started("worker:1", 0, 42, [], "log"))
        with pytest.raises(LinkError):
            await link.receive(PATIENCE_S)
        await link.close()

    with_server(lead, act)
    assert len(recorded) == 2
    assert answer_error(b"".join(recorded)) == "the caller does not know the run's token"


def test_who_sits_between_a_member_and_the_lead_can_add_nothing_after_their_handshake() -> None:
    async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = await links.answer(reader, writer, TOKEN, "lead-1")
        writer.write(encode(Start("worker:1", 0)) + b"\n")
        with pytest.raises(LinkError, match="forged, repeated or changed"):
            await link.receive(PATIENCE_S)

    async def act(address: Tuple[str, int]) -> None:
        link = await links.dial(address, ME, TOKEN, PATIENCE_S)
        with pytest.raises(LinkError, match="forged, repeated or changed"):
            await link.receive(PATIENCE_S)
        link.streams.writer.write(encode(Ping()) + b"\n")
        await link.close()

    with_server(lead, act)


def test_a_member_with_another_token_is_refused_by_the_lead() -> None:
    errors = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with pytest.raises(LinkError) as caught:
            await links.answer(reader, writer, TOKEN, "lead-1")
        errors.append(str(caught.value))

    assert "no handshake" in dial_error(serve, token="b1" * 16)
    assert errors == ["the caller does not know the run's token"]


@pytest.mark.parametrize("proof", ["0" * 64, "", "ä", "\ud800"])
def test_a_lead_that_does_not_know_the_token_is_refused_by_the_member(proof: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'{"nonce": "00"}\n')
        await reader.readline()
        writer.write(json.dumps({"incarnation": "lead-1", "proof": proof}).encode() + b"\n")

    assert dial_error(serve).endswith("not the lead of this run")


def test_a_members_own_proof_sent_back_to_it_does_not_make_a_lead() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'{"nonce": "00"}\n')
        writer.write(await reader.readline())

    assert dial_error(serve).endswith("not the lead of this run")


def test_both_sides_learn_which_life_of_the_other_they_speak_with_and_whose_tasks_a_member_has() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = await links.answer(reader, writer, TOKEN, "lead-2")
        assert link.peer == Greeting("gpu02", "member-1", serves="lead-1")

    async def act(address: Tuple[str, int]) -> None:
        link = await links.dial(address, ME._replace(serves="lead-1"), TOKEN, PATIENCE_S)
        assert link.peer.incarnation == "lead-2"
        await link.close()

    with_server(serve, act)


def test_an_incarnation_that_was_changed_on_the_way_is_refused() -> None:
    def changed(greeting: bytes) -> bytes:
        theirs = json.loads(greeting.decode())["nonce"]
        proof = links._proof(TOKEN, "member", theirs, "00", *ME)
        return json.dumps({**ME._asdict(), "incarnation": "other", "nonce": "00", "proof": proof}).encode() + b"\n"

    assert answer_error(changed) == "the caller does not know the run's token"


def test_neither_side_ever_sends_the_token() -> None:
    sent: List[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'{"nonce": "00"}\n')
        sent.append(await reader.readline())

    def caller(greeting: bytes) -> bytes:
        sent.append(greeting)
        return b"\n"

    dial_error(serve)
    answer_error(caller)
    assert len(sent) == 2 and all(TOKEN.encode() not in line for line in sent)


@pytest.mark.parametrize(
    "line",
    [b"GET / HTTP/1.1\r\n", b"[]\n", b"{}\n", b"\xff\n", b'{"host": "a", "nonce": "1", "proof": null}\n',
     b'{"host": "a", "nonce": {"a": []}, "proof": "\xc3\xa4"}\n',
     b"[" * 4000 + b"\n", b"x" * 5000, b"[" * 100_000 + b"\n"], ids=lambda line: repr(line[:20]),
)  # fmt: skip
def test_a_caller_that_speaks_another_language_is_refused(line: bytes) -> None:
    assert answer_error(line)


@pytest.mark.parametrize(
    "line", [b"SSH-2.0-OpenSSH_9.2\r\n", b"[]\n", b"{}\n", b"\xff\n", b"", b"[" * 4000 + b"\n", b"x" * 100_000]
)
def test_what_answers_on_the_leads_port_but_is_no_lead_is_refused_with_its_address(line: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(line)

    error = dial_error(serve)
    assert error.startswith("127.0.0.1:") and "no handshake" in error


def test_a_caller_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "HANDSHAKE_S", 0.05)
    assert "no handshake" in answer_error(b"")


def test_a_server_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "HANDSHAKE_S", 0.05)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    assert "no handshake" in dial_error(serve)


def test_where_nobody_listens_the_error_names_the_address() -> None:
    error: Optional[LinkError] = None
    port = free_ports(1)[0]
    try:
        asyncio.run(links.dial(("127.0.0.1", port), ME, TOKEN, PATIENCE_S))
    except LinkError as caught:
        error = caught
    assert f"127.0.0.1:{port}" in str(error)
