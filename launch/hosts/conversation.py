"""Turn the data from a program on one host into answers, or into the host's problem.

A channel knows bytes and lines. A conversation also knows the shape of the answers to each verb, and the error messages
for missing answers. Code that reads an answer needs no checks, since the answer has every key that the launcher reads.
"""

import json
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Optional, Type, TypeVar, Union

from cluster.protocol.typed_json import Malformed, from_values
from launch.errors import HostProblem, ProblemKind
from launch.hosts.answer_shapes import OF_VERBS, Shape, fault
from launch.hosts.channel import SHOWN, Channel, Noise, Silence, cause
from launch.status.run import RunStatus

T = TypeVar("T")


class Words(NamedTuple):
    """The words that begin each problem's message, and the kinds of some problems; both depend on the verb."""

    noise: str = ""
    broke: str = "the connection broke: "
    refused: str = ""
    ended: str = "the program there ended: "
    wordless: str = "without output"
    expected: str = "an answer"
    late: str = "no answer"
    ended_kind: ProblemKind = ProblemKind.BROKEN
    late_kind: ProblemKind = ProblemKind.SLOW


_PLAIN = Words()
_BUILD = "the connection broke during its build: "
_HANDOVER = "while the checkpoint was copied: "
_CHECK = Words(ended="the check ended there: ")
WORDS = {
    "logs": Words(noise="`logs`: ", expected="a line of a task's log"),
    "build": Words(_BUILD, _BUILD, ended="its build ended without a result: ", wordless="no reason given"),
    "board": Words("lost TensorBoard: ", "lost TensorBoard: ", "", "lost TensorBoard: ", "the connection ended"),
    "take": Words(_HANDOVER, _HANDOVER, "the checkpoint was not copied: "),
    "give": Words(_HANDOVER, _HANDOVER, "the checkpoint was not copied: "),
    "check": _CHECK,
    "diagnose": _CHECK,
}


class Conversation:
    """A conversation with one host about one verb, from the first answer to the last."""

    def __init__(self, host: str, channel: Channel, verb: str, words: Optional[Words] = None):
        self.host, self._channel, self._verb = host, channel, verb
        self._words = words if words is not None else WORDS.get(verb, _PLAIN)

    def send_bytes(self, data: bytes) -> None:
        """Send bytes that are not a line. Raises HostProblem.

        A program that accepts no more bytes sends the reason in its last answer.
        """
        with self._breaks_explained():
            self._channel.send(data)

    def send(self, values: Mapping[str, Any]) -> None:
        """Send one JSON line. Raises HostProblem."""
        with self._breaks_explained():
            self._channel.send_line(values)

    def skip_to(self, mark: bytes, most: int, timeout_s: float) -> None:
        """Drop the output of other programs before ``mark``, at most ``most`` bytes.

        Raises:
          HostProblem: the mark did not arrive; the text has the last line that arrived.
        """
        try:
            with self._breaks_explained():
                found = self._channel.skip_to(mark, most, timeout_s)
        except Silence:
            printed = self._channel.last_words()
            raise self._late(timeout_s, f"; it printed {printed!r}" if printed else "") from None
        if not found:
            raise self.end_problem()

    def receive(self, timeout_s: float) -> Optional[Dict[str, Any]]:
        """Return the next answer, or None at the end.

        Raises:
          Silence: no answer arrived in time.
          HostProblem: the connection broke, or the line is an error or not a valid answer.
        """
        answer = self.receive_line(timeout_s)
        return None if answer is None else self.check(answer)

    def receive_line(self, timeout_s: float) -> Optional[Dict[str, Any]]:
        """Return the next line, without a check of its content, or None at the end. Raises Silence and HostProblem."""
        with self._breaks_explained():
            answer = self._channel.receive_line(timeout_s)
        if answer is None and self._channel.is_torn:
            raise self._broke("it ended in the middle of a line")
        return answer

    def check(self, answer: Dict[str, Any]) -> Dict[str, Any]:
        """Return ``answer``, after a check that it has every key that the launcher reads.

        Raises HostProblem, including where the answer is an error.
        """
        if "error" in answer:
            raise HostProblem.reported(self.host, answer, failed=self._words.refused)
        return fit(self.host, answer, OF_VERBS.get(self._verb, dict), self._words)

    def answer(self, timeout_s: float, shape: Shape = dict) -> Dict[str, Any]:
        """Return the next answer, after a check that it also has the shape ``shape``.

        Raises:
          HostProblem: for the reasons of ``next_line`` and ``check``, or the answer has another shape.
        """
        return fit(self.host, self.check(self.next_line(timeout_s)), shape, self._words)

    def next_line(self, timeout_s: float) -> Dict[str, Any]:
        """Return the next line, without a check of its content.

        Raises:
          HostProblem: no line arrived in time, or the conversation ended.
        """
        try:
            line = self.receive_line(timeout_s)
        except Silence:
            raise self._late(timeout_s) from None
        if line is None:
            raise self.end_problem()
        return line

    def record(self, kind: Type[T], timeout_s: float) -> T:
        """Return the next answer as an object of the dataclass ``kind``. Raises HostProblem, like ``answer``."""
        with noise_if_malformed(self.host, self._words.expected):
            return from_values(kind, self.answer(timeout_s))

    def end_problem(self) -> HostProblem:
        """Return the problem of a program that has ended too early, with its last line."""
        last = cause(self.complaint() or self._channel.last_words() or self._words.wordless)
        return HostProblem(self.host, self._words.ended_kind, f"{self._words.ended}{last}")

    def complaint(self) -> str:
        """Return the last lines of the program's stderr, once the program has ended; "" where they cannot be read."""
        try:
            return self._channel.complaint()
        except OSError:
            return ""

    def last_error(self, timeout_s: float) -> Optional[HostProblem]:
        """Return the error that a program sent before it stopped reading; None if it sent no error."""
        try:
            answer = self._channel.receive_line(timeout_s)
            while answer is not None and "error" not in answer:
                answer = self._channel.receive_line(timeout_s)
        except (Silence, OSError):
            return None
        return None if answer is None else HostProblem.reported(self.host, answer)

    def end(self) -> None:
        """Close the sending side; answers can still be received. Raises HostProblem."""
        with self._breaks_explained():
            self._channel.end()

    def close(self) -> None:
        """End the conversation; the program on the host then ends too."""
        self._channel.close()

    def noise_problem(self, what: str) -> HostProblem:
        """Return the problem of a host whose answer is not valid; ``what`` is the fact, in words."""
        return HostProblem(self.host, ProblemKind.NOISE, f"{self._words.noise}{what}")

    @contextmanager
    def _breaks_explained(self) -> Iterator[None]:
        """Turn a broken channel or an invalid line into the host's problem."""
        try:
            yield
        except Noise as error:
            raise self.noise_problem(str(error)) from None
        except OSError as error:
            raise self._broke(error) from error

    def _late(self, timeout_s: float, printed: str = "") -> HostProblem:
        late = f"{self._words.late} within {timeout_s:.0f} s{printed}"
        return HostProblem(self.host, self._words.late_kind, late)

    def _broke(self, error: Union[OSError, str]) -> HostProblem:
        return HostProblem(self.host, ProblemKind.BROKEN, f"{self._words.broke}{error}")


def as_run(host: str, values: Dict[str, Any]) -> RunStatus:
    """Return a run's status from its JSON values. Raises HostProblem."""
    with noise_if_malformed(host):
        return from_values(RunStatus, values)


@contextmanager
def noise_if_malformed(host: str, expected: str = "a run's status") -> Iterator[None]:
    """In this block, turn an error about a wrong type in a host's answer into the host's problem."""
    try:
        yield
    except Malformed as error:
        raise HostProblem(host, ProblemKind.NOISE, f"expected {expected}, found one in which {error}") from None


def fit(host: str, answer: Dict[str, Any], wanted: Shape, words: Words = _PLAIN) -> Dict[str, Any]:
    """Return an answer that has the shape ``wanted``.

    Raises:
      HostProblem: the answer lacks a key of the shape, or a value has another type.
    """
    at = fault(answer, wanted)
    if at is None:
        return answer
    expected = f"expected {words.expected} with {at.lstrip('.') or 'other keys'}"
    raise HostProblem(host, ProblemKind.NOISE, f"{words.noise}{expected}, found {json.dumps(answer)[:SHOWN]}")
