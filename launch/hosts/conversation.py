"""A conversation with a program on one host: what its channel does becomes an answer, or the host's problem.

The channel knows bytes and lines. This knows of which shape the answers to each verb are, and in which words a
verb reports that there is none. Who reads an answer needs no care: it has every key that is read.
"""

import json
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Optional, Union

from launch.errors import HostProblem, ProblemKind
from launch.hosts.answer_shapes import OF_VERBS
from launch.hosts.channel import Channel, Noise, Silence
from launch.hosts.shape import Shape, fault
from launch.status.run import RunStatus
from launch.status.values import Malformed, from_values

SHOWN = 200  # characters of an answer that is not one


class Words(NamedTuple):
    """What a problem's sentence begins with."""

    noise: str = ""
    broke: str = "the connection broke: "
    refused: str = ""
    ended: str = "it ended there: "
    expected: str = "an answer"


_PLAIN = Words()
_HANDOVER = "while the checkpoint was brought: "
_CHECK = Words(ended="the check ended there: ")
WORDS = {
    "logs": Words(noise="`logs`: ", expected="a line of a task's log"),
    "build": Words("the connection broke during its build: ", "the connection broke during its build: "),
    "board": Words("lost TensorBoard: ", "lost TensorBoard: ", ended="lost TensorBoard: "),
    "take": Words(_HANDOVER, _HANDOVER, "the checkpoint was not brought: "),
    "give": Words(_HANDOVER, _HANDOVER, "the checkpoint was not brought: "),
    "check": _CHECK,
    "diagnose": _CHECK,
}


class Conversation:
    """With one host about one verb, from the first answer to the last."""

    def __init__(self, host: str, channel: Channel, verb: str, words: Optional[Words] = None):
        self.host, self._channel, self._verb = host, channel, verb
        self._words = words if words is not None else WORDS.get(verb, _PLAIN)

    def send(self, data: bytes) -> None:
        """Send bytes that are no line. Raises OSError: a program that takes no more says why in its last answer."""
        self._channel.send(data)

    def tell(self, values: Mapping[str, Any]) -> None:
        """Send one JSON line. Raises HostProblem."""
        try:
            self._channel.tell(values)
        except OSError as error:
            raise self._broke(error) from error

    def hear(self, timeout_s: float) -> Optional[Dict[str, Any]]:
        """Return the next answer, or None at the end.

        Raises:
          Silence: none came in time.
          HostProblem: the connection broke, or what came is an error or no answer of ours.
        """
        answer = self.receive(timeout_s)
        return None if answer is None else self.understood(answer)

    def receive(self, timeout_s: float) -> Optional[Dict[str, Any]]:
        """Return the next line, whatever it holds, or None at the end. Raises Silence and HostProblem."""
        try:
            answer = self._channel.hear(timeout_s)
        except Noise as error:
            raise HostProblem(self.host, ProblemKind.NOISE, f"{self._words.noise}{error}") from None
        except OSError as error:
            raise self._broke(error) from error
        if answer is None and self._channel.torn:
            raise self._broke("it ended in the middle of a line")
        return answer

    def understood(self, answer: Dict[str, Any]) -> Dict[str, Any]:
        """Return an answer that has what is read of it. Raises HostProblem, also where it is an error."""
        if "error" in answer:
            raise HostProblem.reported(self.host, answer, failed=self._words.refused)
        return fitting(self.host, answer, OF_VERBS.get(self._verb, dict), self._words)

    def answer(self, timeout_s: float, shape: Shape = dict) -> Dict[str, Any]:
        """Return the next answer, which has a ``shape`` besides; silence and the end are problems, too.

        Raises:
          HostProblem: there was none.
        """
        try:
            answer = self.hear(timeout_s)
        except Silence:
            raise HostProblem(self.host, ProblemKind.SLOW, f"no answer within {timeout_s:.0f} s") from None
        if answer is None:
            raise self.ended()
        return fitting(self.host, answer, shape, self._words)

    def ended(self, otherwise: str = "without a word") -> HostProblem:
        """Return the problem of a program that has ended too early: its last words, or ``otherwise``."""
        last = self._channel.complaint() or otherwise
        return HostProblem(self.host, ProblemKind.BROKEN, f"{self._words.ended}{last}")

    def complaint(self) -> str:
        """Return the last lines of the program's stderr, once it has ended."""
        return self._channel.complaint()

    def end(self) -> None:
        """Send nothing more, and go on listening. Raises HostProblem."""
        try:
            self._channel.end()
        except OSError as error:
            raise self._broke(error) from error

    def close(self) -> None:
        """End the conversation; the program there ends with it."""
        self._channel.close()

    def _broke(self, error: Union[OSError, str]) -> HostProblem:
        return HostProblem(self.host, ProblemKind.BROKEN, f"{self._words.broke}{error}")


def as_run(host: str, values: Dict[str, Any]) -> RunStatus:
    """Return a run's status from its JSON values. Raises HostProblem."""
    with reading(host):
        return from_values(RunStatus, values)


@contextmanager
def reading(host: str) -> Iterator[None]:
    """Turn a value of a wrong type in what a host has sent into the host's problem."""
    try:
        yield
    except Malformed as error:
        raise HostProblem(host, ProblemKind.NOISE, f"expected a run's status, found one in which {error}") from None


def fitting(host: str, answer: Dict[str, Any], wanted: Shape, words: Words = _PLAIN) -> Dict[str, Any]:
    """Return an answer that has what is wanted of it.

    Raises:
      HostProblem: it lacks some of it, or has something else there.
    """
    at = fault(answer, wanted)
    if at is None:
        return answer
    expected = f"expected {words.expected} with {at.lstrip('.') or 'other keys'}"
    raise HostProblem(host, ProblemKind.NOISE, f"{words.noise}{expected}, found {json.dumps(answer)[:SHOWN]}")
