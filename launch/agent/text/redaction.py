"""Takes out of texts and values what must not leave a host: the run's secrets, and what looks like one.

A value is a secret where the run's plan marks it, where the name of its variable does
(``AWS_SECRET_ACCESS_KEY``), and where a text has it as a password: in an address, behind
``--password``, ``token=`` and the like. What is in an environment under such a name is
taken out wherever it stands, in a log too.
"""

import re
from typing import Any, Dict, Iterable, List, Mapping, Sequence

from launch.agent.text.plain_text import last_line

HIDDEN = "(secret)"
LONGEST = 200  # characters of a program's last line in a message
SHORTEST = 6  # characters; a shorter value stands in many a harmless line
_WORDS = r"passw(?:or)?d|passphrase|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key"
_NAME = re.compile(rf"{_WORDS}|(?:^|_)(?:key|pass|auth)(?:$|_)|_pwd$", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)")
_NAMED = re.compile(rf"([\w.-]*(?:{_WORDS})[\w.-]*[\"']?\s*[=:]\s*[\"']?)([^\s\"',;]+)", re.IGNORECASE)
_FLAG = re.compile(rf"(--?[\w-]*(?:{_WORDS})[\w-]*\s+)(\S+)", re.IGNORECASE)
_HARMLESS = re.compile(
    r"^(?:CUDA|TF|LAUNCH|OMP|MKL|KMP|GRPC|NCCL|XLA|LC|MALLOC|OPENBLAS)_\w+$"
    r"|^(?:PATH|LD_LIBRARY_PATH|LD_PRELOAD|LANG|HOME|USER|SHELL|TZ|PWD|TMPDIR|PYTHON[A-Z]+)$"
)


def mask(text: str, secrets: Iterable[str]) -> str:
    """Return a text with every line of every secret in it replaced by ``(secret)``."""
    lines = {line for secret in secrets for line in secret.splitlines() if len(line) >= SHORTEST}
    for line in sorted(lines, key=len, reverse=True):  # a secret may hold another
        text = text.replace(line, "(secret)")
    return text


def last_words(printed: bytes, secrets: Iterable[str]) -> str:
    """Return the last line of what a program has printed, without secrets; at most ``LONGEST`` characters of it."""
    return mask(last_line(printed), secrets)[:LONGEST]


class Redaction:
    """Knows the secrets of one host's part of a run.

    Args:
      secrets: values that must not be shown.
      environments: of the run's tasks and processes; values whose names sound like a secret's are secrets too.
      names: of variables that are secrets, whatever they sound like.
    """

    def __init__(
        self,
        secrets: Iterable[str] = (),
        environments: Iterable[Mapping[str, str]] = (),
        names: Iterable[str] = (),
    ):
        known = frozenset(names)
        named = {value for each in environments for name, value in each.items() if name in known or is_secret(name)}
        self._secrets = sorted({*secrets, *(value for value in named if len(value) >= SHORTEST)})

    def text(self, text: str) -> str:
        """``text`` without secrets."""
        text = mask(text, self._secrets)
        for pattern, instead in ((_IN_ADDRESS, HIDDEN), (_FLAG, rf"\1{HIDDEN}"), (_NAMED, rf"\1{HIDDEN}")):
            text = pattern.sub(instead, text)
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value without secrets; a text under a secret's name is one."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {
                key: HIDDEN if isinstance(each, str) and each and is_secret(str(key)) else self.value(each)
                for key, each in value.items()
            }
        return self._values(value) if isinstance(value, (list, tuple)) else value

    def _values(self, values: Sequence[Any]) -> List[Any]:
        """Return a list without secrets; what follows a secret's flag is one, as in argv."""
        before = [None, *values[:-1]]
        return [HIDDEN if _is_flag(flag) else self.value(each) for flag, each in zip(before, values)]

    def environment(self, values: Mapping[str, str]) -> Dict[str, str]:
        """Every name, and the values of those that are known to be harmless."""
        return {
            name: self.text(values[name]) if _HARMLESS.match(name) and not is_secret(name) else "(not shown)"
            for name in sorted(values)
        }


def _is_flag(word: Any) -> bool:
    return isinstance(word, str) and word.startswith("-") and "=" not in word and is_secret(word.replace("-", "_"))


def is_secret(name: str) -> bool:
    """Return whether the name of a variable, key or flag sounds like a secret's."""
    return _NAME.search(name) is not None
