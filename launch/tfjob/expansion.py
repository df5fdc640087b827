"""Expand ``$(NAME)`` as Kubernetes does in a container's command, arguments and environment.

``$(NAME)`` becomes the variable's value. Where the container has no such variable it stays as it is, so that
``sh -c "echo $(date)"`` works. ``$$`` becomes ``$``.
"""

import re
from typing import List, Mapping

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expanded(text: str, values: Mapping[str, str]) -> str:
    """Return ``text`` with its references replaced; those that ``values`` does not have stay."""
    return _REFERENCE.sub(lambda found: "$" if found[1] is None else values.get(found[1], found[0]), text)


def references(text: str) -> List[str]:
    """Return the names in ``$(…)``."""
    return [found[1] for found in _REFERENCE.finditer(text) if found[1] is not None]


def escaped(text: str) -> str:
    """Return the text that Kubernetes expands to ``text``."""
    return re.sub(r"\$(?=[$(])", "$$", text)
