"""How a verb of the agent is run on a host: one channel, the code shipped if it is not there."""

import base64
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from launch.channel import Channel, Host, Noise, Silence
from launch.errors import HostProblem
from launch.ship import Code

ANSWER_S = 60.0
_RECEIVER = Path(__file__).parent / "agent" / "receive.py"


def contact(host: Host, code: Code, workdir: str, verb: str, request: Mapping[str, Any]) -> Channel:
    """Runs ``python -m launch.agent VERB`` on ``host`` and hands it ``request``.

    Raises:
      HostProblem: the host cannot run it; the text says why and what to do.
    """
    # In base64, because every login shell passes it on as it is.
    text = base64.b64encode(_RECEIVER.read_bytes()).decode()
    channel = host.open([host.python, "-c", f"import base64;exec(base64.b64decode('{text}'))"])
    try:
        channel.tell({"workdir": workdir, "code": code.hashes, "verb": verb})
        answer = channel.hear(ANSWER_S)
        if answer is None or "error" in answer:
            raise HostProblem(host.name, _refusal(host, channel, answer))
        for kind in answer["missing"]:
            bundle = code.bundles[kind]
            channel.send(b"%d\n" % len(bundle.data))
            channel.send(bundle.data)
        channel.tell(request)
    except Silence:
        channel.close()
        raise HostProblem(host.name, f"{host.python} did not answer within {ANSWER_S:.0f} s") from None
    except Noise as error:
        channel.close()
        raise HostProblem(host.name, f"{error}; let the shell's startup files print only in a terminal") from None
    except OSError as error:
        complaint = channel.complaint()
        channel.close()
        raise HostProblem(host.name, f"the connection broke: {error}; {complaint}") from error
    except HostProblem:
        channel.close()
        raise
    return channel


def ask(
    host: Host, code: Code, workdir: str, verb: str, request: Mapping[str, Any], timeout_s: float
) -> Dict[str, Any]:
    """Runs a verb that answers with one line.

    Raises:
      HostProblem: it did not, or its answer is an error.
    """
    channel = contact(host, code, workdir, verb, request)
    try:
        answer = channel.hear(timeout_s)
        if answer is None or "error" in answer:
            raise HostProblem(host.name, _refusal(host, channel, answer))
    except Silence:
        raise HostProblem(host.name, f"`{verb}` was not answered within {timeout_s:.0f} s") from None
    except Noise as error:
        raise HostProblem(host.name, f"`{verb}`: {error}") from None
    except OSError as error:
        raise HostProblem(host.name, f"the connection broke during `{verb}`: {error}") from error
    finally:
        channel.close()
    return answer


def _refusal(host: Host, channel: Channel, answer: Optional[Mapping[str, Any]]) -> str:
    if answer is not None:
        return str(answer["error"])
    complaint = channel.complaint()
    last = complaint.splitlines()[-1] if complaint else "it ended without a word"
    if "not found" in last or "No such file" in last:
        return f"no {host.python} there ({last}); install it, or name another with the key python"
    return f"{host.python} ended before it answered: {last}"
