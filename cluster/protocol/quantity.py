"""A number with its noun, in the singular or the plural."""


def quantity(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 worker`` or ``1,200 workers``; ``plural`` is for a noun with an irregular plural."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
