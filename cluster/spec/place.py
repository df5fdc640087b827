"""The place of a value or key: a line of the hosts file, or an override on the command line."""

from typing import NamedTuple, Optional, Tuple, Union

import yaml

from cluster.errors import Problem

Path = Tuple[Union[str, int], ...]
OVERRIDE = "--set "


class Place(NamedTuple):
    """A line of a file, or an override. Line and column count from 1, and are None for ``--set``."""

    where: str
    line: Optional[int] = None
    column: Optional[int] = None

    @classmethod
    def of(cls, mark: yaml.Mark) -> "Place":
        """Return the place of a YAML ``mark``, whose name is a file or an override."""
        if mark.name.startswith(OVERRIDE):
            return cls(mark.name)
        return cls(mark.name, mark.line + 1, mark.column + 1)

    def problem(self, path: Path, expected: str, found: str, hint: str = "") -> Problem:
        """Describe a problem with the value at ``path``, which was written at this place.

        The problem does not repeat the key if the place is an override that already names ``path``.
        """
        key = "" if self.where == OVERRIDE + key_text(path) else key_text(path)
        return Problem(
            where=self.where, line=self.line, column=self.column, key=key, expected=expected, found=found, hint=hint
        )

    def naming(self, path: Path) -> str:
        """Return this place and the key ``path`` as text, such as ``hosts.yaml:3:6: job`` or ``--set job``."""
        return str(self.problem(path, "", "")).partition(": expected ")[0].rstrip(":")

    def __str__(self) -> str:
        return self.where if self.line is None else f"line {self.line}"


def key_text(path: Path) -> str:
    """Return ``path`` as text, such as ``cluster.worker[0].port``."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


def shown(value: object, limit: int = 60) -> str:
    """Return ``value``, from a hosts file, as errors show it on one line; a text has at most ``limit`` characters."""
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, str):
        text = "".join(character if character.isprintable() else "?" for character in value)
        return f"'{text if len(text) <= limit else text[: limit - 1] + '…'}'"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
