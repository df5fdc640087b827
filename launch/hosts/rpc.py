"""Run a verb of the agent on a host: ship the code if it is missing, then send the request and receive answers.

A verb that answers with one line leaves the program on the host ready for the next verb. So many verbs cost one
session and one Python there.
"""

import json
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional

from launch.errors import HostProblem, ProblemKind
from launch.hosts.bundle import Code
from launch.hosts.channel import Channel, Host, Noise, Silence
from launch.hosts.conversation import Conversation, Words

ANSWER_S = 60.0
STAY_S = 20.0
MARGIN_S = 8.0  # what is told to a program shortly before it goes may be told to nobody
RECEIVER = (Path(__file__).parents[1] / "agent" / "bootstrap.py").read_bytes()
# -S: what runs there needs the standard library alone, and finding the rest takes longer than starting does.
# Reads no byte more than the receiver's own. Without the caller's folder on the path, where a json.py may lie.
_READ = f'import io,sys;sys.path.pop(0);exec(io.BufferedReader(io.FileIO(0,"rb",False),1).read({len(RECEIVER)}))'
_PROGRAM = ("-S", "-c", _READ)


def contact(host: Host, code: Code, workdir: str, verb: str, request: Mapping[str, Any]) -> Channel:
    """Run a verb on ``host`` and send it ``request``; the conversation ends with the verb.

    Raises:
      HostProblem: the host cannot run the verb; the text has the reason and the next step.
    """
    return _begin(host, code, {"workdir": workdir, "code": code.hashes, "verb": verb}, request)


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

    The conversation is kept for the next verb, for ``stay_s`` seconds at most.

    Raises:
      HostProblem: the verb did not answer, or its answer is an error.
    """
    channel = _begin(host, code, {"workdir": workdir, "code": code.hashes, "verb": verb, "stay": stay_s}, request)
    words = Words(noise=f"`{verb}`: ", broke=f"the connection broke during `{verb}`: ")
    conversation = Conversation(host.name, channel, verb, words)
    with _closed_on_failure(channel):
        try:
            answer = conversation.receive_line(timeout_s)
        except Silence:
            late = f"`{verb}` was not answered within {timeout_s:.0f} s"
            raise HostProblem(host.name, ProblemKind.SILENT, late) from None
        if answer is None:
            raise _ended(host, channel)
    host.keep(channel, stay_s - MARGIN_S)
    return conversation.check(answer)


def _begin(host: Host, code: Code, greeting: Mapping[str, Any], request: Mapping[str, Any]) -> Channel:
    """Return a channel over which the verb has received its request."""
    kept = host.kept()
    channel = kept or host.open([host.python, *_PROGRAM])
    with _closed_on_failure(channel):
        try:
            channel.send(b"" if kept else RECEIVER)
            _greet(host, channel, code, greeting)
            channel.send_line(request)
        except Silence:
            late = f"{host.python} did not answer within {ANSWER_S:.0f} s"
            raise HostProblem(host.name, ProblemKind.SILENT, late) from None
        except Noise as error:
            advice = "let the shell's startup files print only in a terminal"
            raise HostProblem(host.name, ProblemKind.NOISE, str(error), advice=advice) from None
        except OSError as error:
            complaint = channel.complaint()
            broke = HostProblem(host.name, ProblemKind.BROKEN, f"the connection broke: {error}; {complaint}")
            raise (_missing(host, complaint) or broke) from error
    return channel


def _greet(host: Host, channel: Channel, code: Code, greeting: Mapping[str, Any]) -> None:
    """Ask the host for the code that it lacks, and send that code."""
    channel.send_line(greeting)
    answer = channel.receive_line(ANSWER_S)
    if answer is None:
        raise _ended(host, channel)
    if "error" in answer:
        raise HostProblem.reported(host.name, answer)
    missing = answer.get("missing")
    if not isinstance(missing, list) or not set(map(str, missing)) <= set(code.bundles):
        raise Noise(f"expected the code that is missing there, found {json.dumps(answer)[:200]}")
    for kind in missing:
        bundle = code.bundles[kind]
        channel.send(b"%d\n" % len(bundle.data))
        channel.send(bundle.data)


@contextmanager
def _closed_on_failure(channel: Channel) -> Iterator[None]:
    try:
        yield
    except BaseException:
        channel.close()
        raise


def _ended(host: Host, channel: Channel) -> HostProblem:
    complaint = channel.complaint() or "it ended without a word"
    last = f"{host.python} ended before it answered: {complaint.splitlines()[-1]}"
    return _missing(host, complaint) or HostProblem(host.name, ProblemKind.PYTHON_ENDED, last)


def _missing(host: Host, complaint: str) -> Optional[HostProblem]:
    """Return the problem of a Python that the login shell has not found; else None."""
    last = complaint.splitlines()[-1] if complaint else ""
    if "not found" in last or "No such file" in last:
        install = "install it, or name another with the key python"
        return HostProblem(host.name, ProblemKind.NO_PYTHON, f"no {host.python} there ({last})", advice=install)
    return None
