"""Functions that remove terminal control sequences and secrets from the output of programs.

The output of tasks and the answers of hosts are shown in users' terminals. Sequences that set a title, a colour, the
cursor or the clipboard must not get there: ``plain`` returns the text that a terminal would finally show.

A value is a secret if the run's plan lists it as one, or if its variable has a name such as ``AWS_SECRET_ACCESS_KEY``.
Passwords in a text are secrets, too: in an address, after ``--password``, ``token=`` and the like. So are private keys,
and strings with the form of a well-known service's tokens. The value of a variable with such a name is masked
everywhere, also in a log. So are its base64 and URL encodings.

On a machine without a GPU, a driver or CUDA's libraries, TensorFlow logs notes when it starts. These are not errors:
TensorFlow continues with the CPU. Each process adds its own time, so equal notes differ; ``gpu_note`` recognises them.
"""

import base64
import re
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence
from urllib.parse import quote

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # OSC and DCS: titles, clipboard
    r"|\x1b[ -/]*[0-Z\\^-~]"
)
# Also characters that turn the direction of text, and characters that only some programs read as a line's end.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_ESCAPED = re.compile(r"\\(?:[bfr]|u00(?:[01]|7[fF]|[89])|u20(?:2[89aAbBcCdDeE]|6[6-9]))")  # as JSON escapes


def plain(line: str) -> str:
    """Return a line as a terminal finally shows it.

    For a progress bar that overwrites itself, the result is the newest state.
    """
    if not _CONTROLS.search(line):
        return line
    states = (
        without_controls(_apply_backspaces(state)).rstrip() for state in reversed(line.rstrip("\r\n").split("\r"))
    )
    return next((state for state in states if state), "")


def _apply_backspaces(text: str) -> str:
    """Apply each backspace, which removes the character before it."""
    kept = []
    for character in text:
        if character != "\b":
            kept.append(character)
        elif kept:
            kept.pop()
    return "".join(kept)


def without_controls(text: str) -> str:
    """Return a text, of one or more lines, without escape sequences and control characters.

    Newlines and tabs stay.
    """
    return _CONTROLS.sub("", _SEQUENCES.sub("", text)) if _CONTROLS.search(text) else text


def last_line(printed: bytes) -> str:
    """Return the last non-empty line of ``printed``, as a terminal shows it; "" if every line is empty."""
    lines = [plain(line).strip() for line in printed.decode(errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")


def may_hold_controls(json_line: str) -> bool:
    """Return whether a line of JSON may have a string with a control character."""
    return bool(_ESCAPED.search(json_line) or _CONTROLS.search(json_line))


def clean(values: Any) -> Any:
    """Return a copy of a JSON value in which ``without_controls`` has cleaned every string."""
    if isinstance(values, str):
        return without_controls(values)
    if isinstance(values, list):
        return [clean(value) for value in values]
    if isinstance(values, dict):
        return {clean(key): clean(value) for key, value in values.items()}
    return values


HIDDEN = "(secret)"
LONGEST = 200  # characters of a program's last line in a message
SHORTEST = 6  # characters; many harmless lines contain a shorter value
_WORDS = r"passw(?:or)?d|passphrase|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key"
_NAME = re.compile(rf"{_WORDS}|(?:^|_)(?:key|pass|auth)(?:$|_)|_pwd$", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)")
_NAMED = re.compile(rf"([\w.-]*(?:{_WORDS})[\w.-]*[\"']?\s*[=:]\s*[\"']?)([^\s\"',;]+)", re.IGNORECASE)
_FLAG = re.compile(rf"(--?[\w-]*(?:{_WORDS})[\w-]*\s+)(\S+)", re.IGNORECASE)
_CONNECTION = re.compile(r"(\b[Pp]wd\s*=\s*)([^;\s\"']+)")  # of a database; a shell's PWD is no secret
_OF_SERVICES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\b(?:gh[pousr]_|github_pat_|glpat-|hf_|xox[abeprs]-|sk-|npm_|dop_v1_|ya29\.|AIza)[\w-]{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"  # a JSON web token
    r"|(?<=://)hooks\.slack\.com/services/\S+|(?<=/api/webhooks/)\d+/[\w-]+|(?<=\.webhook\.office\.com/)\S+",
    re.DOTALL,
)
_SIGNED = re.compile(
    r"([?&](?:X-Amz-[\w-]+|X-Goog-[\w-]+|Signature|sig|AWSAccessKeyId|key)=)([^&\s\"']+)", re.IGNORECASE
)
_BEARER = re.compile(r"(\bBearer\s+(?=[\w.~+/=-]{8})|\bBasic\s+(?=[\w+/=-]{16}))([\w.~+/=-]+)", re.IGNORECASE)
_HARMLESS = re.compile(
    r"^(?:CUDA|TF|LAUNCH|OMP|MKL|KMP|GRPC|NCCL|XLA|LC|MALLOC|OPENBLAS)_\w+$"
    r"|^(?:PATH|LD_LIBRARY_PATH|LD_PRELOAD|LANG|HOME|USER|SHELL|TZ|PWD|TMPDIR|PYTHON[A-Z]+)$"
)


def mask(text: str, secrets: Iterable[str]) -> str:
    """Return ``text`` with ``(secret)`` in place of each line of each secret.

    A secret's line with fewer than ``SHORTEST`` characters is not replaced.
    """
    lines = {line for secret in secrets for line in secret.splitlines() if len(line) >= SHORTEST}
    for line in sorted(lines, key=len, reverse=True):  # a secret may contain another
        text = text.replace(line, "(secret)")
    return text


def last_words(printed: bytes, secrets: Iterable[str]) -> str:
    """Return the last line of a program's output without secrets, cut to ``LONGEST`` characters."""
    return mask(last_line(printed), secrets)[:LONGEST]


class Redaction:
    """The secrets of a run on one host, and their removal from texts.

    Args:
      secrets: values that must not be shown.
      environments: the environments of the run's processes; a variable with a secret's name has a secret value.
      names: the names of further variables that are secrets.
    """

    def __init__(
        self,
        secrets: Iterable[str] = (),
        environments: Iterable[Mapping[str, str]] = (),
        names: Iterable[str] = (),
    ):
        known = frozenset(names)
        named = {value for each in environments for name, value in each.items() if name in known or is_secret(name)}
        plain_ones = {*secrets, *(value for value in named if len(value) >= SHORTEST)}
        self._secrets = sorted({form for each in plain_ones for form in (each, *_encoded(each))})

    def text(self, text: str) -> str:
        """Return ``text`` without secrets."""
        text = mask(text, self._secrets)
        for pattern in (_OF_SERVICES, _IN_ADDRESS):
            text = pattern.sub(HIDDEN, text)
        for pattern in (_BEARER, _SIGNED, _CONNECTION, _FLAG, _NAMED):
            text = pattern.sub(rf"\1{HIDDEN}", text)
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value without secrets. A string under a key that sounds secret counts as a secret."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {
                key: HIDDEN if isinstance(each, str) and each and is_secret(str(key)) else self.value(each)
                for key, each in value.items()
            }
        return self._values(value) if isinstance(value, (list, tuple)) else value

    def _values(self, values: Sequence[Any]) -> List[Any]:
        """Return a list without secrets; as in argv, the item after a secret's flag is a secret."""
        before = [None, *values[:-1]]
        return [HIDDEN if _is_flag(flag) else self.value(each) for flag, each in zip(before, values)]

    def environment(self, values: Mapping[str, str]) -> Dict[str, str]:
        """Return all variables, sorted, with ``(not shown)`` in place of each value that is not known to be
        harmless."""
        return {
            name: self.text(values[name]) if _HARMLESS.match(name) and not is_secret(name) else "(not shown)"
            for name in sorted(values)
        }


def _encoded(secret: str) -> List[str]:
    """Return a secret as a URL has it, and its part of any base64 text that contains it, at each of three places."""
    data, found = secret.encode(), [quote(secret, safe="")]
    for before in range(3):
        text = base64.b64encode(bytes(before) + data).decode()
        core = text[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]  # depends on no byte beside the secret
        found += [core, core.replace("+", "-").replace("/", "_")]
    return [each for each in found if len(each) >= SHORTEST]


def _is_flag(word: Any) -> bool:
    return isinstance(word, str) and word.startswith("-") and "=" not in word and is_secret(word.replace("-", "_"))


def is_secret(name: str) -> bool:
    """Return whether the name of a variable, key or flag sounds like the name of a secret."""
    return _NAME.search(name) is not None


_LOGGED = re.compile(
    r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWE] \S*"
    r"(?:dso_loader|cudart_stub|cuda_driver|cuda_diagnostics|cuda_platform|gpu_device)\.cc:\d+\] (?P<text>.*)$"
)
_NOTE = re.compile(
    r"^(?:Could not load dynamic library '|Could not find cuda drivers|Ignore above cudart dlerror"
    r"|failed call to cuInit: |Cannot dlopen some GPU libraries"
    r"|no NVIDIA GPU device is present|kernel driver does not appear to be running)"
)


def gpu_note(line: str) -> Optional[str]:
    """Return the text of a TensorFlow note about GPUs; None for any other line.

    The text leaves out the note's time and its line of code, so that equal notes compare equal.
    """
    logged = _LOGGED.match(line)
    text = logged.group("text") if logged else ""
    return f"TensorFlow: {text.split('; dlerror:')[0]}" if _NOTE.match(text) else None
