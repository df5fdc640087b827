"""The conversations with all hosts: side by side, one connection each, under one deadline."""

import time
from dataclasses import replace
from typing import Dict, List, Mapping, Tuple

from launch.agent.wire.check_request import CheckFacts, CheckRequest, OpenedPorts
from launch.agent.wire.host_facts import Clock
from launch.errors import HostProblem
from launch.fleet import Fleet
from launch.hosts.answer_shapes import TIME
from launch.hosts.channel import Host
from launch.hosts.conversation import Conversation
from launch.status.values import to_values

OPENING_SHARE = 0.5  # of the deadline: for every host to connect and listen
LOOK_SHARE = 0.8  # of the time that is left then: for a host to find what it can
CLOCK_READINGS = 5

Answers = Tuple[Dict[str, CheckFacts], List[HostProblem]]


def interview(fleet: Fleet, requests: Mapping[str, CheckRequest], deadline_s: float) -> Answers:
    """Ask all hosts within the deadline; return their facts and the problems of the others.

    The hosts that listen in time do not wait for those that do not. Listeners are closed
    only when every host has knocked.

    Raises:
      Interrupted: a signal came.
    """
    until = time.monotonic() + deadline_s
    talking: Dict[str, Conversation] = {}

    def begin(host: Host) -> Tuple[OpenedPorts, Clock]:
        host.connect()
        talking[host.name] = conversation = fleet.contact(host.name, "check", to_values(requests[host.name]))
        left_s = until - time.monotonic()
        return conversation.record(OpenedPorts, left_s), read_clock(conversation, left_s)

    def look(host: Host) -> CheckFacts:
        left_s = max(0.0, until - time.monotonic())
        conversation = talking[host.name]
        conversation.send({"do": "look", "within_s": LOOK_SHARE * left_s})
        opened, clock = opening[host.name]
        return replace(conversation.record(CheckFacts, left_s), ports=opened.ports, clock=clock)

    try:
        opening, late = fleet.each(begin, list(requests), timeout_s=OPENING_SHARE * deadline_s)
        facts, later = fleet.each(look, list(opening), timeout_s=until - time.monotonic())
    finally:
        for conversation in list(talking.values()):
            conversation.close()
    return facts, [*late, *later]


def read_clock(conversation: Conversation, timeout_s: float) -> Clock:
    """Measure by how much a host's clock is ahead of ours.

    As in NTP, the host reads its clock some time between our question and its answer. So
    of several readings the one with the shortest way there and back is the most exact.
    """
    readings = (_reading(conversation, timeout_s) for _ in range(CLOCK_READINGS))
    return min(readings, key=lambda reading: reading.error_s)


def _reading(conversation: Conversation, timeout_s: float) -> Clock:
    asked, began = time.time(), time.monotonic()
    conversation.send({"do": "time"})
    there = conversation.answer(timeout_s, TIME)["time"]
    half_s = (time.monotonic() - began) / 2
    return Clock(round(there - asked - half_s, 6), round(half_s, 6))
