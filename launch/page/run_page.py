"""The page of a run as one HTML document: values, style and script. The page loads no other file.

The values are JSON, built from the run's status in the same words as in ``launch status``. The JSON is in a ``script``
element that no browser runs. Names and log lines come from hosts, so every character that could end that element is
escaped. The content security policy has the hashes of the one style and the one script. So a browser runs no other
script, even if an escape were missing.
"""

import base64
import hashlib
import json
import math
from html import escape
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from cluster.protocol.quantity import quantity
from launch.agent.text import without_controls
from launch.status import incident_status
from launch.status.incident_status import IncidentStatus
from launch.status.run import RunStatus
from launch.status.task import TASK_NUMBERS, TaskStatus
from launch.view import run_text
from launch.view.console import of_duration

LONGEST = 300  # characters of a line of a log
MOST_LINES = 2000  # of all logs together, so that the page stays below 10 MB
FEWEST, MOST = 2, 100  # lines of one task
MOST_FOLLOWED = 20  # consequences of one incident
NUMBERS = [each for each in TASK_NUMBERS if each.page]
SHOWN = ["name", "host", "state", "doing", "step", "wait_ms", "restarts", "cause", *(each.field for each in NUMBERS)]


def facts(status: RunStatus) -> Dict[str, Any]:
    """Return the values of a status that the page shows."""
    return {
        "run": status.run,
        "state": status.state,
        "updated": status.updated,
        "elapsed_s": run_text.elapsed(status),
        "figures": figures(status),
        "step": status.global_step,
        "steps": status.steps,
        "lines": lines(status),
        "cause": status.cause,
        "metrics": [run_text.metric(*each) for each in status.metrics.items()],
        "points": [[*point] for point in status.history.points],
        "held_out": held_out(status),
        "marks": marks(status),
        "copies": copies(status),
        "incidents": [incident(each) for each in status.incidents],
        "tasks": [task(each) for each in status.tasks],
        "numbers": [[each.page, each.field, int(each.unit == "ms")] for each in NUMBERS],  # heading, field, decimals
    }


def figures(status: RunStatus) -> List[List[str]]:
    """Return the few most important numbers, each as a name and a number with its unit."""
    step, elapsed_s, left_s = status.global_step or 0, run_text.elapsed(status), run_text.left(status)
    found = [["step", f"{step}/{status.steps}" if status.steps else f"{step}"]]
    if status.loss is not None:
        found.append(["loss", f"{status.loss:.4g}"])
    if status.steps_per_second:
        found.append(["steps/s", f"{status.steps_per_second:.1f}"])
    if status.steps_per_second and status.examples_per_second:
        found.append(["examples/s", f"{status.examples_per_second:,.0f}"])
    found += [["elapsed", of_duration(elapsed_s)]] if elapsed_s is not None else []
    share = status.effective.share if status.effective else None
    found += [["effective", f"{100 * share:.0f} %"]] if share is not None else []
    return [*found, *([["left, about", of_duration(left_s)]] if left_s is not None else [])]


def lines(status: RunStatus) -> List[str]:
    """Return lines about the run, without the facts that the page shows elsewhere."""
    parts = [*run_text.training_metrics(status), *run_text.checkpoint(status), *run_text.best(status)]
    parts += [f"ended early: {status.ended_early}"] if status.ended_early else []
    parts += [*run_text.formation(status), *run_text.effective(status), *run_text.evaluation(status)]
    parts += [*run_text.starting(status), *run_text.slowness(status), *run_text.silence(status)]
    return [*parts, *run_text.troubles(status)]


def held_out(status: RunStatus) -> List[List[Any]]:
    """Return each measurement on held-out data: its step, its loss where it has one, and its metrics in words."""
    found = []
    for each in status.history.evaluations:
        known = dict(each)
        step = known.pop("step", None)
        if step is not None:
            words = ", ".join(run_text.metric(*one) for one in known.items())
            found.append([step, known.get("loss"), f"held-out data at step {step:.0f}: {words}"])
    return found


def marks(status: RunStatus) -> List[List[Any]]:
    """Return the events of training: the step, the kind, and the event in words."""
    of_kinds = [(step, kind) for kind, steps in status.history.marks.items() for step in steps]
    found = [[step, kind, f"{kind} at step {step}"] for step, kind in of_kinds]
    return [*found, *([each.step, "incident", incident_status.what(each)] for each in status.incidents if each.step)]


def copies(status: RunStatus) -> List[str]:
    """Return lines about the newest checkpoint and its copies on other hosts."""
    found = []
    if status.checkpoint_step is not None:
        found.append(f"checkpoint of step {status.checkpoint_step}{f': {status.checkpoint}' * bool(status.checkpoint)}")
    for host, step in status.replicas.items():
        found.append(f"copy on {host}: {'none yet' if step is None else f'step {step}'}")
    return found


def incident(found: IncidentStatus) -> Dict[str, Any]:
    """Return the values of an incident: its time, the duration without progress, and its description in words."""
    details = [f"cause: {found.cause}"] if found.cause else []
    details += [
        f"{each.at_s:.1f} s: {each.title}: {each.cause or each.kind}" for each in found.followed[:MOST_FOLLOWED]
    ]
    more = found.followed_count - min(len(found.followed), MOST_FOLLOWED)
    details += [quantity(more, "more consequence")] if more > 0 else []
    details += [f"{each.at_s:.1f} s: {each.what}" for each in found.did]
    details += [f"log: {found.host}:{found.log}"] if found.log else []
    return {
        "number": found.number,
        "at_s": found.at_s,
        "lasted_s": found.lost_seconds if found.lost_seconds is not None else found.again_s,
        "open": found.open,
        "text": incident_status.sentence(found),
        "details": details,
        "log": [clean(line) for line in found.lines],
    }


def task(found: TaskStatus) -> Dict[str, Any]:
    """Return the values in a task's row of the table."""
    work_ms = None if found.step_time_ms is None else found.own_ms
    return {**{name: getattr(found, name) for name in SHOWN}, "slow": found.straggler, "work_ms": work_ms}


def lines_of_each(tasks: int) -> int:
    """Return how many of the last lines of each task's log fit on the page."""
    return max(FEWEST, min(MOST, MOST_LINES // max(1, tasks)))


def clean(line: str, longest: int = LONGEST) -> str:
    """Return a log line for the page: without control characters, and at most ``longest`` characters."""
    text = without_controls(line)
    return text if len(text) <= longest else text[: longest - 1] + "…"


_HERE = Path(__file__).parent
_UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def document(
    facts: Mapping[str, Any],
    logs: Optional[Mapping[str, Any]] = None,
    live: bool = False,
    steps: Optional[Mapping[str, Any]] = None,
) -> str:
    """Return the page as one HTML document.

    Args:
      facts: the values of ``launch.page.run_page``.
      logs: the values of ``launch.verbs.page``; None before the first reading.
      steps: the values of ``launch.timeline.drawing``; None before the first reading, or in a page without steps.
      live: whether the page fetches newer values from its server, the only address that the page can reach.
    """
    style, script, page = ((_HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js", "page.html"))
    values = {"facts": facts, "logs": logs, "steps": steps, "live": live}
    return page.format(
        policy=policy(style, script, live),
        title=f"{escape(str(facts['run']))} {escape(str(facts['state']))}",
        style=style,
        plain=escape("\n".join([*summary(facts), *(steps or {}).get("lines", [])])),
        values=embedded(values),
        script=script,
    )


def policy(style: str, script: str, live: bool) -> str:
    """Return the content security policy of a page with this style and script."""
    connects = "'self'" if live else "'none'"
    hashes = [f"'sha256-{_hash(text)}'" for text in (style, script)]
    return (
        f"default-src 'none'; style-src {hashes[0]}; script-src {hashes[1]}; connect-src {connects}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def embedded(values: Any) -> str:
    """Return JSON in which no text can end the surrounding ``script`` element."""
    return as_json(values).translate(_UNSAFE)


def as_json(values: Any) -> str:
    """Return JSON that a browser can read: numbers that are not finite become null."""
    return json.dumps(_finite(values), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _finite(values: Any) -> Any:
    if isinstance(values, float):
        return values if math.isfinite(values) else None
    if isinstance(values, Mapping):
        return {key: _finite(each) for key, each in values.items()}
    return [_finite(each) for each in values] if isinstance(values, (list, tuple)) else values


def summary(facts: Mapping[str, Any]) -> List[str]:
    """Return the page as lines of text, for readers without scripts."""
    cause = [f"cause: {facts['cause']}"] if facts["cause"] else []
    held_out = [f"held-out data: {', '.join(facts['metrics'])}"] if facts["metrics"] else []
    incidents = [f"incident {each['number']}: {each['text']}" for each in facts["incidents"]]
    tasks = [f"{each['name']}@{each['host']} {each['state']}" for each in facts["tasks"]]
    figures = ", ".join(f"{name} {value}" for name, value in facts["figures"])
    return [figures, *facts["lines"], *cause, *held_out, *facts["copies"], *incidents, *tasks]
