"""Values of ``env:``, in which ``$NAME`` becomes the variable's value on the host, and ``~`` the home folder.

The rules are those of an assignment in a shell: ``$NAME`` and ``${NAME}`` are values, an unset variable is empty, and
``~`` counts before a slash or alone, at the beginning and after a colon. ``~anna`` is the home folder of a user whom
the host knows. ``$$`` is a dollar sign, and ``$~`` a tilde anywhere. Nothing else may follow a dollar sign.

A name means another variable of the task first, whatever their order. A variable that names itself means the host's
value, as in ``LD_LIBRARY_PATH: "/opt/x:$LD_LIBRARY_PATH"``.
"""

import errno
import os
import re
from typing import Callable, Dict, FrozenSet, List, Mapping, Match, Optional

DEEPEST = 20  # variables that name each other
LONGEST = 32 * 4096  # characters of a value; Linux passes no longer one to a process
_DOLLAR = re.compile(r"\$(?:([$~])|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_HOME = re.compile(r"(?:^|(?<=:))~(?:[A-Za-z_][\w.-]*)?(?=/|:|$)")
_HOME_OF_WORD = re.compile(r"^(--?[A-Za-z0-9][\w.-]*=)?~(?=/)")


def unknown(value: str) -> Optional[str]:
    """Return the first piece of a value that has a dollar sign without a meaning; None for none."""
    rest = _DOLLAR.sub("", value)
    if "$" not in rest:
        return None
    for match in re.finditer(r"\$\$|\$", value):
        piece = value[match.start() :]
        if match.group() == "$" and not _DOLLAR.match(piece):
            return piece[:12]
    return None


def names_in(value: str) -> List[str]:
    """Return the names of variables in a value."""
    return [match[2] or match[3] for match in _DOLLAR.finditer(value) if not match[1]]


def has_home(value: str) -> bool:
    """Return whether a value names the home folder."""
    return _HOME.search(value) is not None


def literal(value: str) -> str:
    """Return a value of ``env:`` that stands for exactly this text."""
    return _HOME.sub(lambda match: f"${match.group()}", value.replace("$", "$$"))


def text_of(value: str) -> str:
    """Return the text of a value in which nothing is left to fill in."""
    return _DOLLAR.sub(lambda match: match[1], value)


def expanded(
    values: Mapping[str, str], outside: Callable[[str], str], home: Callable[[str], str], escape: str = ""
) -> Dict[str, str]:
    """Return the values with each name replaced.

    Args:
      outside: returns the value of a name that is not among ``values``, or that means the host's value.
      home: returns the home folder that ``~`` or ``~anna`` names.
      escape: the text before a dollar sign or tilde that stands for itself.

    Raises:
      OSError: a value becomes longer than Linux allows.
    """
    done: Dict[str, str] = {}

    def value_of(name: str, above: FrozenSet[str]) -> str:
        if name in above or name not in values:
            return outside(name)
        if name not in done:
            below = above | {name}

            def replaced(match: "Match[str]") -> str:
                return escape + match[1] if match[1] else value_of(match[2] or match[3], below)

            done[name] = _DOLLAR.sub(
                replaced, _HOME.sub(lambda match: home(match.group()).replace("$", "$$"), values[name])
            )
            if len(done[name]) > LONGEST:
                raise OSError(errno.E2BIG, os.strerror(errno.E2BIG), name)
        return done[name]

    return {name: value_of(name, frozenset()) for name in values}


def with_names(values: Mapping[str, str], name: str) -> Optional[str]:
    """Return one value, in which only the names of the host's variables are left; None where the name has no value."""
    return expanded(values, lambda outside: f"${{{outside}}}", str, "$").get(name)


def on_this_host(values: Mapping[str, str], variables: Mapping[str, str]) -> Dict[str, str]:
    """Return the values with home folders, and with ``variables`` for the other names."""
    return expanded(values, lambda name: variables.get(name, ""), os.path.expanduser)


def word_with_home(word: str) -> str:
    """Return a word of a command with this user's home folder for ``~/``, at its beginning or behind ``--flag=``."""
    return _HOME_OF_WORD.sub(lambda match: (match[1] or "") + os.path.expanduser("~"), word)
