"""Values of ``env:``; the host replaces ``$NAME`` by the variable's value there, and ``~`` by the home folder.

The rules are those of an assignment in a shell. ``$NAME`` and ``${NAME}`` become the variable's value, and an unset
variable is empty. ``~`` becomes the home folder at the beginning and after a colon, if a slash, a colon or the end
follows. ``~anna`` is the home folder of a user whom the host knows. ``$$`` is a dollar sign, and ``$~`` a tilde
anywhere. Nothing else may follow a dollar sign.

A name means the task's variable of this name, in any order of the variables, or else the host's variable. In its own
value, a variable's name means the host's value, as in ``LD_LIBRARY_PATH: "/opt/x:$LD_LIBRARY_PATH"``.
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
    """Return the first piece of ``value`` that begins with a dollar sign without a meaning; None if there is none."""
    rest = _DOLLAR.sub("", value)
    if "$" not in rest:
        return None
    for match in re.finditer(r"\$\$|\$", value):
        piece = value[match.start() :]
        if match.group() == "$" and not _DOLLAR.match(piece):
            return piece[:12]
    return None


def names_in(value: str) -> List[str]:
    """Return the names of the variables that ``value`` uses."""
    return [match[2] or match[3] for match in _DOLLAR.finditer(value) if not match[1]]


def has_home(value: str) -> bool:
    """Return whether ``value`` uses a home folder, as in ``~`` or ``~anna``."""
    return _HOME.search(value) is not None


def literal(value: str) -> str:
    """Return the text ``value`` escaped, so that in ``env:`` it means exactly this text."""
    return _HOME.sub(lambda match: f"${match.group()}", value.replace("$", "$$"))


def text_of(value: str) -> str:
    """Return the unescaped text of ``value``, a value of ``env:`` without names and home folders."""
    return _DOLLAR.sub(lambda match: match[1], value)


def expanded(
    values: Mapping[str, str], outside: Callable[[str], str], home: Callable[[str], str], escape: str = ""
) -> Dict[str, str]:
    """Return ``values`` with each name and each home folder replaced.

    Args:
      outside: returns the value of a name that is not among ``values``, or that means the host's value.
      home: returns the home folder that ``~`` or ``~anna`` names.
      escape: the text that the results have before each literal dollar sign or tilde.

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
    """Return the value of ``name``, with names of the task's own variables replaced; None if ``name`` is unknown.

    Names of the host's variables, and home folders, are not replaced.
    """
    return expanded(values, lambda outside: f"${{{outside}}}", str, "$").get(name)


def on_this_host(values: Mapping[str, str], variables: Mapping[str, str]) -> Dict[str, str]:
    """Return ``values`` with this host's home folders, and with values from ``variables`` for the host's names."""
    return expanded(values, lambda name: variables.get(name, ""), os.path.expanduser)


def word_with_home(word: str) -> str:
    """Return ``word``, with this user's home folder in place of the ``~`` of ``~/…`` or ``--flag=~/…``."""
    return _HOME_OF_WORD.sub(lambda match: (match[1] or "") + os.path.expanduser("~"), word)
