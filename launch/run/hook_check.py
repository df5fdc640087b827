"""Refuse receivers of events whose secrets make no URL, or no header, before a run starts."""

import re
from typing import Iterator, Mapping, Tuple

from cluster.protocol.command_template import fill, names_in
from cluster.spec.model import Hook, Spec
from launch.errors import CannotStart, HostProblem, ProblemKind

_URL = re.compile(r"https?://[!-.0-~][!-~]*")
_HEADER = re.compile(r"[\t -~]*")


def refuse_unusable(spec: Spec, secrets: Mapping[str, str]) -> None:
    """Refuse a spec whose hooks cannot be used with these secrets; the text has no part of any.

    Raises:
      CannotStart: names each such secret.
    """
    found = dict.fromkeys(problem for hook in spec.hooks for problem in _problems(hook, secrets))
    if found:
        raise CannotStart([HostProblem("this machine", ProblemKind.HERE, what, advice) for what, advice in found])


def _problems(hook: Hook, secrets: Mapping[str, str]) -> Iterator[Tuple[str, str]]:
    """Yield the fact and the advice for each text that the secrets spoil."""
    if hook.url is not None and not _URL.fullmatch(fill(hook.url, secrets)):
        expected = "a URL of printable ASCII characters that begins with https:// or http://"
        yield f"on.{hook.event}: expected {expected}, found another value of {_named(hook.url)}", "export it again"
    for name, text in hook.headers.items():
        if not _HEADER.fullmatch(fill(text, secrets)):
            found = f"found another character in {_named(text)}"
            yield f"on.{hook.event}: header {name}: expected printable ASCII characters, {found}", "export it again"


def _named(text: str) -> str:
    return " and ".join(dict.fromkeys(names_in(text)))
