"""Keeps the values of secrets out of what we show, where a task has printed one itself."""

from typing import Iterable

SHORTEST = 6  # characters; a shorter value stands in many a harmless line


def masked(text: str, secrets: Iterable[str]) -> str:
    """``text`` with every line of every secret in it replaced by ``(secret)``."""
    lines = {line for secret in secrets for line in secret.splitlines() if len(line) >= SHORTEST}
    for line in sorted(lines, key=len, reverse=True):  # a secret may hold another
        text = text.replace(line, "(secret)")
    return text
