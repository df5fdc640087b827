"""The page of a run as one HTML document: style, script and values are in it, and nothing else is loaded.

The values are JSON in a ``script`` element that no browser runs. Names and log lines come from hosts, so every
character that could end that element is escaped. The content security policy names the hashes of the one style and
the one script, so a browser runs nothing else, even if an escape were missing.
"""

import base64
import hashlib
import json
import math
from html import escape
from pathlib import Path
from typing import Any, List, Mapping, Optional

_HERE = Path(__file__).parent
_UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def document(
    facts: Mapping[str, Any],
    logs: Optional[Mapping[str, Any]] = None,
    live: bool = False,
    steps: Optional[Mapping[str, Any]] = None,
) -> str:
    """Return the page.

    Args:
      facts: the values of ``launch.page.facts``.
      logs: the values of ``launch.logs.last_lines``; None while nobody has read them yet.
      steps: the values of ``launch.timeline.drawing``; None while nobody has read them, or in a page without them.
      live: the page fetches newer values from its server, which is the only thing that it can reach.
    """
    style, script = ((_HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    values = {"facts": facts, "logs": logs, "steps": steps, "live": live}
    plain = "\n".join([*summary(facts), *(steps or {}).get("lines", [])])
    title = f"{escape(str(facts['run']))} {escape(str(facts['state']))}"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy(style, script, live)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>",
            f"<style>{style}</style></head><body>",
            f"<header><h1>{title}</h1></header>",
            '<p id="problem" role="status" hidden></p>',
            f'<main id="page"><noscript><pre>{escape(plain)}</pre></noscript></main>',
            f'<script type="application/json" id="values">{embedded(values)}</script>',
            f"<script>{script}</script>",
            "</body></html>",
            "",
        ]
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
    """Return JSON that no text in it can end the ``script`` element of."""
    return as_json(values).translate(_UNSAFE)


def as_json(values: Any) -> str:
    """Return JSON that a browser reads: numbers that are not finite are null."""
    return json.dumps(_finite(values), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _finite(values: Any) -> Any:
    if isinstance(values, float):
        return values if math.isfinite(values) else None
    if isinstance(values, Mapping):
        return {key: _finite(each) for key, each in values.items()}
    return [_finite(each) for each in values] if isinstance(values, (list, tuple)) else values


def summary(facts: Mapping[str, Any]) -> List[str]:
    """Return the page in lines, for readers that run no script."""
    cause = [f"cause: {facts['cause']}"] if facts["cause"] else []
    held_out = [f"held-out data: {', '.join(facts['metrics'])}"] if facts["metrics"] else []
    incidents = [f"incident {each['number']}: {each['text']}" for each in facts["incidents"]]
    tasks = [f"{each['name']}@{each['host']} {each['state']}" for each in facts["tasks"]]
    figures = ", ".join(f"{name} {value}" for name, value in facts["figures"])
    return [figures, *facts["lines"], *cause, *held_out, *facts["copies"], *incidents, *tasks]
