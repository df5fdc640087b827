"""Read and write Kubernetes' quantities, such as ``500m`` processors or ``4Gi`` of memory."""

import re
from fractions import Fraction
from typing import Optional

_WRITTEN = re.compile(r"\+?([0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})([a-zA-Z]{0,2}|[eE][-+]?[0-9]{1,2})")
_DECIMAL = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


def amount(text: str) -> Optional[Fraction]:
    """Return the number that a quantity stands for; None for a text that is no quantity."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        return None
    factor = _factor(found[2])
    return None if factor is None else Fraction(found[1]) * factor


def _factor(suffix: str) -> Optional[Fraction]:
    if suffix in _DECIMAL:
        return Fraction(1000) ** _DECIMAL[suffix]
    if suffix in _BINARY:
        return Fraction(1024) ** _BINARY[suffix]
    return Fraction(10) ** int(suffix[1:]) if suffix[1:].lstrip("+-").isdigit() else None


def binary(number: int) -> str:
    """Return a number of bytes with the largest suffix that divides it: ``4Gi``."""
    for suffix, power in (("Gi", 3), ("Mi", 2), ("Ki", 1)):
        if number and number % 1024**power == 0:
            return f"{number // 1024**power}{suffix}"
    return str(number)
