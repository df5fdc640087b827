"""Run a verb of the agent on a host: ship missing code, then send the request and receive answers.

After a verb that answers with one line, the program on the host waits for the next verb. So several verbs share one
session and one start of Python on the host.
"""

import os
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Sequence

from launch.errors import HostProblem, ProblemKind
from launch.hosts.bundle import Code
from launch.hosts.channel import Channel, Host, cause
from launch.hosts.conversation import Conversation, Words

ANSWER_S = 60.0
STAY_S = 20.0
LAST_ANSWER_S = 5.0  # for the reason of a program that has ended
NO_SUCH_PROGRAM = ("not found", "No such file", "Unknown command")  # from shells: only they write before Python does
STARTUP_FILES = "let the shell's startup files print only in a terminal"
BEFORE = "{} first runs the commands of the key before; `--set before=` leaves them out"
MOST_NOISE = 1 << 16  # bytes that a login shell, or its wrapper, may print before our program
_ANSWERS = "launch: answers follow"
MARK = f"\n{_ANSWERS}\n".encode()  # on a separate line, even after text without a line end
MISSING = {"missing": [str]}
MARGIN_S = 8.0  # a request shortly before the program's end may be lost
RECEIVER = (Path(__file__).parents[1] / "agent" / "bootstrap.py").read_bytes()
# -S: the program needs only the standard library, and finding site-packages takes longer than the start. The program
# reads exactly the bytes of the receiver. It removes the caller's folder, which may have a json.py, from the path. It
# has no character that any shell reads otherwise between single quotes.
_READ = (
    f'import io,sys;sys.path.pop(0);sys.stdout.write(chr(10)+"{_ANSWERS}"+chr(10));'
    f'exec(io.BufferedReader(io.FileIO(0,"rb",False),1).read({len(RECEIVER)}))'
)
_PROGRAM = ("-S", "-c", _READ)


def contact(host: Host, code: Code, workdir: str, verb: str, request: Mapping[str, Any]) -> Conversation:
    """Run a verb on ``host`` and send it ``request``; the conversation ends with the verb.

    Raises:
      HostProblem: the host cannot run the verb; the text has the reason and the next step.
    """
    greeting = {"workdir": workdir, "code": code.hashes, "verb": verb}
    return Conversation(host.name, _begin(host, code, greeting, request), verb)


def ask(
    host: Host,
    code: Code,
    workdir: str,
    verb: str,
    request: Mapping[str, Any],
    timeout_s: float,
    stay_s: float = STAY_S,
) -> Dict[str, Any]:
    """Run a verb that answers with one line, and return the answer.

    The program on the host then waits for the next verb, for at most ``stay_s`` seconds.

    Raises:
      HostProblem: the verb did not answer, or its answer is an error.
    """
    channel = _begin(host, code, {"workdir": workdir, "code": code.hashes, "verb": verb, "stay": stay_s}, request)
    conversation = Conversation(host.name, channel, verb, _words_of(host, verb))
    with _closed_on_failure(channel), _explaining(host, conversation):
        answer = conversation.next_line(timeout_s)
    if verb == "start" and "ready" in answer:
        channel.leave_running()
    host.keep(channel, stay_s - MARGIN_S)
    return conversation.check(answer)


def _begin(host: Host, code: Code, greeting: Mapping[str, Any], request: Mapping[str, Any]) -> Channel:
    """Return a channel over which the verb has received its request."""
    kept = host.take_kept()
    channel = kept or host.open([host.python, *_PROGRAM])
    opening = Conversation(host.name, channel, "", _words_of(host))
    with _closed_on_failure(channel), _explaining(host, opening, begins=True):
        opening.send_bytes(b"" if kept else RECEIVER)
        opening.send(greeting)
        if not kept:
            opening.skip_to(MARK, MOST_NOISE, ANSWER_S)
        _send_code(opening, code, opening.answer(ANSWER_S, MISSING)["missing"])
        opening.send(request)
    return channel


def _words_of(host: Host, verb: str = "") -> Words:
    """Return the words for the problems of a verb; without a verb, of the exchange before any verb."""
    during, noise = (f" during `{verb}`", f"`{verb}`: ") if verb else ("", "")
    return Words(
        noise=noise,
        broke=f"the connection broke{during}: ",
        ended=f"{host.python} ended before it answered: ",
        wordless="it ended without output",
        ended_kind=ProblemKind.PYTHON_ENDED,
        expected="a list of missing code",
        late=f"`{verb}` was not answered" if verb else f"{host.python} did not answer",
        late_kind=ProblemKind.SILENT,
    )


def _send_code(opening: Conversation, code: Code, missing: Sequence[str]) -> None:
    """Send the code that the host lacks."""
    for kind in missing:
        bundle = code.bundles.get(kind)
        if bundle is None:
            raise opening.noise_problem(f"expected the kind of missing code, found {kind[:200]!r}")
        opening.send_bytes(b"%d\n" % len(bundle.data))
        opening.send_bytes(bundle.data)


@contextmanager
def _closed_on_failure(channel: Channel) -> Iterator[None]:
    try:
        yield
    except BaseException:
        channel.close()
        raise


@contextmanager
def _explaining(host: Host, conversation: Conversation, begins: bool = False) -> Iterator[None]:
    """Add the stderr of the host's Python, or of the shell that did not find Python, to a problem.

    Args:
      begins: whether the program has not answered yet.
    """
    try:
        yield
    except HostProblem as problem:
        raise _explain(host, problem, conversation, begins) from problem.__cause__


def _explain(host: Host, problem: HostProblem, conversation: Conversation, begins: bool) -> HostProblem:
    if problem.kind is ProblemKind.NOISE and begins:
        return problem.with_advice(STARTUP_FILES)
    if problem.kind not in (ProblemKind.BROKEN, ProblemKind.PYTHON_ENDED):
        return problem
    answered = conversation.last_error(LAST_ANSWER_S) if begins and problem.kind is ProblemKind.BROKEN else None
    if answered is not None:
        return answered
    complaint = conversation.complaint()
    refusal = host.refusal(complaint)
    if refusal is not None:
        return refusal
    last = cause(complaint)
    if any(words in last for words in NO_SUCH_PROGRAM) and (not host.before or os.path.basename(host.python) in last):
        install = "install it, or name another with the key python"
        return HostProblem(host.name, ProblemKind.NO_PYTHON, f"no {host.python} there ({last})", advice=install)
    if problem.kind is ProblemKind.BROKEN and complaint:
        problem = HostProblem(host.name, ProblemKind.BROKEN, f"{problem.what}; {complaint}")
    return problem.with_advice(BEFORE.format(host.shell)) if host.before and begins else problem
