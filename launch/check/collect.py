"""The conversations with all hosts: side by side, one connection each, under one deadline."""

import time
from typing import Any, Dict, List, Mapping, Tuple

from launch.check.requests import Question
from launch.errors import HostProblem
from launch.fleet import Fleet
from launch.hosts.answer_shapes import LOOK, OPENED, TIME
from launch.hosts.channel import Host
from launch.hosts.conversation import Conversation

OPENING_SHARE = 0.5  # of the deadline: for every host to connect and listen
CLOCK_READINGS = 5

Answers = Tuple[Dict[str, Dict[str, Any]], List[HostProblem]]


def interview(fleet: Fleet, asked: Mapping[str, Question], deadline_s: float) -> Answers:
    """Ask all hosts within the deadline; return their answers and the problems of the others.

    The hosts that listen in time do not wait for those that do not. Listeners are closed
    only when every host has knocked.

    Raises:
      Interrupted: a signal came.
    """
    until = time.monotonic() + deadline_s
    facts: Dict[str, Dict[str, Any]] = {}
    talking: Dict[str, Conversation] = {}

    def begin(host: Host) -> Dict[str, Any]:
        host.connect()
        talking[host.name] = conversation = fleet.contact(host.name, "check", asked[host.name].opening)
        left_s = until - time.monotonic()
        opened = conversation.answer(left_s, OPENED)
        return {**opened, "clock": read_clock(conversation, left_s)}

    def look(host: Host) -> Dict[str, Any]:
        left_s = max(0.0, until - time.monotonic())
        conversation = talking[host.name]
        conversation.send({**asked[host.name].look, "within_s": 0.8 * left_s})
        return conversation.answer(left_s, LOOK)

    try:
        facts, late = fleet.each(begin, list(asked), timeout_s=OPENING_SHARE * deadline_s)
        looks, later = fleet.each(look, list(facts), timeout_s=until - time.monotonic())
    finally:
        for conversation in list(talking.values()):
            conversation.close()
    return {host: {**facts[host], **looks[host]} for host in looks}, [*late, *later]


def read_clock(conversation: Conversation, timeout_s: float) -> Dict[str, float]:
    """Measure by how much a host's clock is ahead of ours: {"offset_s", "error_s"}.

    As in NTP, the host reads its clock some time between our question and its answer. So
    of several readings the one with the shortest way there and back is the most exact.
    """
    readings = (_reading(conversation, timeout_s) for _ in range(CLOCK_READINGS))
    return min(readings, key=lambda reading: reading["error_s"])


def _reading(conversation: Conversation, timeout_s: float) -> Dict[str, float]:
    asked, began = time.time(), time.monotonic()
    conversation.send({"do": "time"})
    there = conversation.answer(timeout_s, TIME)["time"]
    half_s = (time.monotonic() - began) / 2
    return {"offset_s": round(there - asked - half_s, 6), "error_s": round(half_s, 6)}
