"""Amounts as people read them: three figures and a unit."""

_BYTES = ("bytes", "kB", "MB", "GB", "TB")
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def of_bytes(number: float) -> str:
    """Return ``27.1 MB``; a thousand bytes are a kB."""
    for unit in _BYTES:
        if number < 999.5 or unit == _BYTES[-1]:
            break
        number /= 1000
    return f"{number:.0f} {unit}" if unit == "bytes" else f"{_three(number)} {unit}"


def of_seconds(seconds: float) -> str:
    """Return ``1.35 s``, ``217 ms``."""
    scale, unit = next(((scale, unit) for scale, unit in _SECONDS if seconds >= 0.9995 * scale), _SECONDS[-1])
    return f"{_three(seconds / scale)} {unit}"


def _three(number: float) -> str:
    decimals = 2 if number < 9.995 else 1 if number < 99.95 else 0
    return f"{number:.{decimals}f}"
