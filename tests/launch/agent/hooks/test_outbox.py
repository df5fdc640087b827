"""Deliveries go on side by side, are tried again, and are bounded in number and time; nobody waits for them."""

import asyncio
from pathlib import Path
from typing import Any, Awaitable, Callable, Dict, List

import pytest

from launch.agent.hooks import outbox as module
from launch.agent.hooks.outbox import AT_ONCE, MOST, Delivery, Outbox
from launch.agent.hooks.receivers import Receiver, Result
from launch.agent.protocol.links import now
from launch.status.hook_event import HookEvent

TAKEN, REFUSED, LATER = Result(True), Result(False, "404", again=False), Result(False, "no answer")
CHAT, PAGER, DEAD, OTHER = (
    Receiver(event, label, (), {}, Path())
    for event, label in [("failed", "chat"), ("failed", "pager"), ("failed", "dead"), ("started", "other")]
)
FAILED = HookEvent(id="r/failed", event="failed")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds become milliseconds."""
    for name in ("FIRST_PAUSE_S", "LONGEST_PAUSE_S", "LAST_PAUSE_S", "GIVE_UP_S", "LAST_S", "HURRIED_S", "LOOK_S"):
        monkeypatch.setattr(module, name, getattr(module, name) / 1000)


class Sent:
    """Tries, each with the answers that its receiver has left; after these, it never answers."""

    def __init__(self, **answers: List[Result]):
        self.tries: List[str] = []
        self.at_once = self.most_at_once = self.changes = 0
        self._answers: Dict[str, List[Result]] = answers

    async def __call__(self, receiver: Receiver, event: HookEvent) -> Result:
        self.tries.append(receiver.label)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(0.0 if self._answers.get(receiver.label) else 1000.0)
            return self._answers[receiver.label].pop(0)
        finally:
            self.at_once -= 1

    def changed(self) -> None:
        self.changes += 1


def run(sent: Sent, course: Callable[[Outbox], Awaitable[Any]], *receivers: Receiver) -> Any:
    """What a course of events comes to, in a loop of its own."""

    async def whole() -> Any:
        return await course(Outbox(receivers or (CHAT, PAGER, OTHER), sent, sent.changed))

    return asyncio.run(whole())


async def to_the_end(outbox: Outbox) -> Outbox:
    outbox.add([FAILED])
    while outbox.pending:
        await asyncio.sleep(0)
    return outbox


def test_each_receiver_of_its_kind_gets_an_event_once() -> None:
    sent = Sent(chat=[TAKEN], pager=[TAKEN], other=[TAKEN])
    assert run(sent, to_the_end).problem is None
    assert sorted(sent.tries) == ["chat", "pager"] and sent.changes == 2


def test_what_was_not_taken_is_tried_again_until_it_is_and_then_there_is_no_problem_any_more() -> None:
    sent = Sent(chat=[LATER, LATER, TAKEN], pager=[TAKEN])
    assert run(sent, to_the_end).problem is None
    assert sent.tries.count("chat") == 3


def test_what_is_refused_for_good_is_not_tried_again_and_is_the_problem(capsys: pytest.CaptureFixture[str]) -> None:
    sent = Sent(chat=[REFUSED, TAKEN], pager=[TAKEN])
    assert run(sent, to_the_end).problem == "chat: 404"
    assert sent.tries.count("chat") == 1
    assert capsys.readouterr().err == "hook chat: 404; gave up after 1 try\n"


def test_what_is_never_taken_is_given_up_after_a_time_and_the_log_has_two_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sent = Sent(dead=[LATER] * 1000)
    assert run(sent, to_the_end, DEAD).problem == "dead: no answer"
    first, last = capsys.readouterr().err.splitlines()
    assert first == "hook dead: no answer; trying again"
    assert last == f"hook dead: no answer; gave up after {len(sent.tries)} tries"
    assert 5 < len(sent.tries) < 1000


def test_pauses_double_up_to_a_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: List[float] = []

    async def pause(outbox: Outbox, seconds: float) -> None:
        pauses.append(round(1000 * seconds))

    monkeypatch.setattr(Outbox, "_pause", pause)
    run(Sent(chat=[*[LATER] * 8, TAKEN], pager=[TAKEN]), to_the_end)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]


def events(number: int) -> List[HookEvent]:
    return [HookEvent(id=f"r/{each}", event="failed") for each in range(number)]


def test_only_so_many_tries_run_at_the_same_time() -> None:
    async def begin(outbox: Outbox) -> None:
        outbox.add(events(20))
        await asyncio.sleep(0.01)

    sent = Sent()
    run(sent, begin, CHAT)
    assert sent.most_at_once == AT_ONCE == len(sent.tries)


def test_of_too_many_deliveries_the_oldest_are_given_up() -> None:
    async def begin(outbox: Outbox) -> List[str]:
        outbox.add(events(MOST + 3))
        await asyncio.sleep(0.01)
        assert outbox.problem == f"chat: more than {MOST} events wait for receivers"
        return [delivery.event.id for delivery in outbox.pending]

    assert run(Sent(), begin, CHAT) == [f"r/{each}" for each in range(3, MOST + 3)]


def test_at_the_end_of_a_run_a_pause_is_cut_short_and_the_last_event_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    async def course(outbox: Outbox) -> List[Delivery]:
        outbox.add([FAILED])
        while len(sent.tries) < 1:
            await asyncio.sleep(0)
        outbox.finish()
        await outbox.settle()
        return outbox.pending

    for name, seconds in (("FIRST_PAUSE_S", 1000.0), ("LAST_PAUSE_S", 0.0), ("LAST_S", 100.0)):
        monkeypatch.setattr(module, name, seconds)
    sent = Sent(chat=[LATER, LATER, TAKEN])
    assert run(sent, course, CHAT) == [] and len(sent.tries) == 3


@pytest.mark.parametrize(("kill", "bound_s"), [(False, 0.010), (True, 0.001)])
def test_a_receiver_that_never_answers_costs_the_end_a_bounded_time(kill: bool, bound_s: float) -> None:
    async def course(outbox: Outbox) -> float:
        outbox.add([FAILED])
        await asyncio.sleep(0.001)
        if kill:
            outbox.hurry()
        began = now()
        outbox.finish()
        await outbox.settle()
        assert outbox.pending == [] and sent.at_once == sent.changes == 0
        assert (outbox.problem or "").startswith("chat: it did not end within ")
        return now() - began

    sent = Sent()
    taken_s = run(sent, course, CHAT)
    assert taken_s >= bound_s and (not kill or taken_s < 5.0)


def test_a_delivery_of_the_agent_before_goes_on() -> None:
    async def course(outbox: Outbox) -> None:
        outbox.begin(Delivery(1, FAILED))
        while outbox.pending:
            await asyncio.sleep(0)

    sent = Sent(chat=[TAKEN], pager=[TAKEN])
    run(sent, course)
    assert sent.tries == ["pager"]


def test_of_two_receivers_with_one_name_each_has_its_own_problem() -> None:
    async def course(outbox: Outbox) -> None:
        outbox.add([FAILED])
        while len(outbox.pending) == 2 or not outbox.problem:
            await asyncio.sleep(0)
        assert outbox.problem == "chat: 404"

    run(Sent(chat=[REFUSED, TAKEN]), course, CHAT, CHAT)


def test_the_last_event_does_not_wait_for_tries_that_do_not_end() -> None:
    async def course(outbox: Outbox) -> None:
        outbox.add(HookEvent(id=f"r/{each}", event="started") for each in range(AT_ONCE))
        while sent.at_once < AT_ONCE:
            await asyncio.sleep(0)
        outbox.add([FAILED])
        outbox.finish()
        while "chat" not in sent.tries:
            await asyncio.sleep(0)

    sent = Sent(chat=[TAKEN])
    run(sent, lambda outbox: asyncio.wait_for(course(outbox), 60.0), CHAT, OTHER)
