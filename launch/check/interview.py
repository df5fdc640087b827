"""The conversations with all hosts: side by side, one connection each, under one deadline."""

import time
from typing import Any, Dict, List, Mapping, Tuple

from launch.channel import Channel, Host, Noise, Silence
from launch.check.questions import Question
from launch.errors import HostProblem
from launch.fleet import Fleet

OPENING_SHARE = 0.5  # of the deadline: for every host to connect and listen
CLOCK_READINGS = 5

Answers = Tuple[Dict[str, Dict[str, Any]], List[HostProblem]]


class Conversation:
    """One host's, from its first answer to its last."""

    def __init__(self, host: Host, channel: Channel, patience_s: float):
        self._host, self._channel, self._patience_s = host, channel, patience_s

    def ask(self, values: Mapping[str, Any]) -> Dict[str, Any]:
        """One request and its answer.

        Raises:
          HostProblem: there was none.
        """
        try:
            self._channel.tell(values)
            return self.hear()
        except OSError as error:
            raise HostProblem(self._host.name, f"the connection broke: {error}") from error

    def hear(self) -> Dict[str, Any]:
        """The next answer. Raises HostProblem."""
        try:
            answer = self._channel.hear(self._patience_s)
        except Silence:
            raise HostProblem(self._host.name, f"no answer within {self._patience_s:.0f} s") from None
        except Noise as error:
            raise HostProblem(self._host.name, str(error)) from None
        except OSError as error:
            raise HostProblem(self._host.name, f"the connection broke: {error}") from error
        if answer is None:
            raise HostProblem(
                self._host.name, f"the check ended there: {self._channel.complaint() or 'without a word'}"
            )
        if "error" in answer:
            raise HostProblem(self._host.name, str(answer["error"]))
        return answer

    def close(self) -> None:
        """The host closes its ports and ends its part."""
        self._channel.close()


def interview(fleet: Fleet, asked: Mapping[str, Question], deadline_s: float) -> Answers:
    """What each host answers, and the problems of those that do not, within the deadline.

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
        talking[host.name] = conversation = Conversation(
            host, fleet.contact(host.name, "check", asked[host.name].opening), until - time.monotonic()
        )
        opened = conversation.hear()
        return {**opened, "clock": read_clock(conversation)}

    def look(host: Host) -> Dict[str, Any]:
        left_s = max(0.0, until - time.monotonic())
        return talking[host.name].ask({**asked[host.name].look, "within_s": 0.8 * left_s})

    try:
        facts, late = fleet.each(begin, list(asked), timeout_s=OPENING_SHARE * deadline_s)
        looks, later = fleet.each(look, list(facts), timeout_s=until - time.monotonic())
    finally:
        for conversation in list(talking.values()):
            conversation.close()
    return {host: {**facts[host], **looks[host]} for host in looks}, [*late, *later]


def read_clock(conversation: Conversation) -> Dict[str, float]:
    """How far a host's clock is ahead of ours: {"offset_s", "error_s"}.

    As NTP does it: the host read its clock some time between our question and its answer, so
    of several readings the one with the shortest way there and back is the most exact.
    """
    return min((_reading(conversation) for _ in range(CLOCK_READINGS)), key=lambda reading: reading["error_s"])


def _reading(conversation: Conversation) -> Dict[str, float]:
    asked, began = time.time(), time.monotonic()
    there = conversation.ask({"do": "time"})["time"]
    half_s = (time.monotonic() - began) / 2
    return {"offset_s": round(there - asked - half_s, 6), "error_s": round(half_s, 6)}
