"""An incident in plain words, from its entry in ``status --json``."""

from typing import Any, List, Mapping, Sequence

Told = Mapping[str, Any]
_ENDS = {"signal": "killed by {signal}", "exit": "left with exit code {exit_code}"}
LONGEST = 200  # characters of a cause


def lines(incidents: Sequence[Told], most: int = 10) -> List[str]:
    """``1 incident: …``, or how many, and the first, those that are open and the newest, each on a line of its own."""
    if not incidents:
        return []
    count = incidents[-1]["number"]
    if count == 1:
        return [f"1 incident: {sentence(incidents[0])}"]
    ranked = sorted(
        incidents, key=lambda each: (each["number"] == incidents[0]["number"], each["open"], each["number"])
    )
    shown = sorted(ranked[-most:], key=lambda each: int(each["number"]))
    left_out = f", of which {len(shown)} are shown" if count > len(shown) else ""
    return [f"{count} incidents{left_out}:", *(f"  {each['number']}. {sentence(each)}" for each in shown)]


def sentence(incident: Told) -> str:
    """``worker:1@gpu02 killed by SIGKILL at step 412, training again after 4.1 s, nothing lost``"""
    at = "" if incident["step"] is None else f" at step {incident['step']}"
    return ", ".join([f"{what(incident)}{at}", *_followed(incident), *_went_on(incident)])


def title(told: Told) -> str:
    """``worker:1@gpu02``, ``gpu02``, or nothing."""
    if told["role"] is None:
        return str(told["host"] or "")
    return f"{told['role']}:{told['index']}@{told['host']}"


def what(incident: Told) -> str:
    """``worker:1@gpu02 killed by SIGKILL``"""
    who, ending = title(incident), _ENDS.get(incident["kind"])
    if ending is not None and incident["exit_code"] is not None:
        return f"{who} {ending.format(**incident)}"
    cause = str(incident["cause"] or incident["kind"]).split("; its last line: ")[0]
    text = cause if len(cause) <= LONGEST else cause[: LONGEST - 1] + "\u2026"
    return text if not who or text.startswith(who) else f"{who}: {text}"


def _followed(incident: Told) -> List[str]:
    if not incident["followed_count"]:
        return []
    who = list(dict.fromkeys(title(entry) for entry in incident["followed"]))
    names = ", ".join(who[:3]) + (", \u2026" if len(who) > 3 else "")
    times = incident["followed_count"]
    return [f"{times} more {'failure' if times == 1 else 'failures'} followed from it ({names})"]


def _went_on(incident: Told) -> List[str]:
    if incident["again_s"] is None:
        return ["not back since"]
    back = "back" if incident["lost_seconds"] is None else "training again"
    return [f"{back} after {incident['again_s']:.1f} s", *_lost(incident)]


def _lost(incident: Told) -> List[str]:
    if incident["lost_seconds"] is None:
        return []
    if incident["lost_steps"]:
        return [f"{incident['lost_steps']} steps lost, {incident['lost_seconds']:.1f} s until they were taken again"]
    return ["nothing lost"]
