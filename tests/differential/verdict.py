"""What came of a model that was trained here, beside what came of it in one process."""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from tests.differential.reference import Trained, Values

BITS, CLOSE, REFUSED, DIFFERENT = "equal to the bit", "equal within 1e-5", "refused", "DIFFERENT"
KINDS = (BITS, CLOSE, REFUSED, DIFFERENT)
_NEAR, _SMALL = 1e-5, 0.1  # numbers below that are taken for as large
_BFLOAT16_OF_VALUE, _BFLOAT16_OF_MOVE = 2**-8, 0.1  # it keeps 8 bits of what travels, and a step adds to what was lost
_OF_SWAY = 2.0  # of how far a model goes off by itself that begins a little off
_BESIDE_A_KINK = 1e-4  # of the elements of a variable; each is off by less than it has moved
_FLOAT16_OF_MOVE = 2**-9  # it keeps 11 bits of each sum over a tower's examples, where one process has one sum
_PLACE = re.compile(r"\.py:\d+|\btrain\.\w+")
_FOREIGN = re.compile(r"(\.py:\d+: )?(?!ClusterError|JobError|TaskError|TrainingError)[A-Z]\w+(Error|Exception)\b: ")


class Verdict(NamedTuple):
    """One of ``KINDS``, and what there is to say about it."""

    kind: str
    text: str = ""


def judge_end(outcomes: Sequence[Any]) -> Optional[Verdict]:
    """The verdict on workers of which one has failed; None where all trained to the end."""
    failed = [outcome for outcome in outcomes if not outcome.succeeded]
    if not failed:
        return None
    first = failed[0]
    text = str(first.cause)
    if first.step is not None:
        return Verdict(DIFFERENT, f"failed after step {first.step}: {text}")
    if first.retry or not _PLACE.search(text) or _FOREIGN.search(text):
        return Verdict(DIFFERENT, f"no sentence of this project refuses it: {text}")
    return Verdict(REFUSED, text)


class Rounding(NamedTuple):
    """What is rounded to 16 bits on the way: what ``wire`` says, and where the model is ``half``, its own gradients."""

    wire: str = "float32"
    half: bool = False

    @property
    def of_wire(self) -> bool:
        """Whether values and gradients travel in 16 bits."""
        return self.wire != "float32"

    def allowed(self, of: Trained) -> Dict[str, float]:
        """How far each variable with numbers in it may be off, by name; an integer by nothing."""
        share = 0.0 if self.of_wire else _wildest(of)
        return {
            name: self._allowed(name, of, share) if value.dtype.kind in "fc" and value.size else 0.0
            for name, value in of.after.items()
        }

    def _allowed(self, name: str, of: Trained, share: float) -> float:
        size, moved = _size(of, name), _moved(of, name)
        rounding = _BFLOAT16_OF_VALUE * size + _BFLOAT16_OF_MOVE * moved if self.of_wire and moved else 0.0
        sway = max(_off(of, of.rounded if self.of_wire else of.swayed, name), share * moved)
        return _NEAR * size + rounding + (_FLOAT16_OF_MOVE * moved if self.half else 0.0) + _OF_SWAY * sway


def _size(of: Trained, name: str) -> float:
    return max(_SMALL, *(float(np.abs(values[name]).max()) for values in (of.before, of.after)))


def _moved(of: Trained, name: str) -> float:
    return float(np.abs(of.after[name] - of.before[name]).max())


def _off(of: Trained, found: Values, name: str) -> float:
    return float(np.abs(found[name].astype(np.float64) - of.after[name]).max())


def _wildest(of: Trained) -> float:
    """Which share of its way any variable is off, by itself, after a last bit; 0 where all are as near as expected.

    Of a model that blows up this says more than how far one of its variables, a scalar perhaps, happens to be off.
    """
    floats = [name for name, value in of.after.items() if value.dtype.kind == "f" and value.size]
    wild = [name for name in floats if _off(of, of.swayed, name) > _NEAR * _size(of, name)]
    return max([_off(of, of.swayed, name) / (_moved(of, name) or np.inf) for name in wild], default=0.0)


def compare(reference: Trained, found: Values, rounding: Rounding = Rounding()) -> Verdict:  # noqa: B008 (immutable)
    """Compares every variable of the author, and the step, with those of one process."""
    complaints: List[str] = []
    allowed = rounding.allowed(reference)
    for name in sorted(reference.after):
        if name not in found:
            complaints.append(f"{name} is not in the checkpoint")
        else:
            complaints += _complaints(name, reference, found[name], allowed[name], rounding)
    if complaints:
        return Verdict(DIFFERENT, "; ".join(complaints))
    if all(np.array_equal(expected, found[name]) for name, expected in reference.after.items()):
        return Verdict(BITS)
    share = max(_share(reference.after[name], found[name], allowed[name]) for name in reference.after)
    return Verdict(CLOSE, f"at most {share:.0%} of that")


def _share(expected: Any, found: Any, allowed: float) -> float:
    """How much of the allowed difference a variable has."""
    if expected.dtype.kind not in "fc" or not expected.size:
        return 0.0
    return float(np.abs(found.astype(np.float64) - expected).max() / allowed)


def _complaints(name: str, reference: Trained, found: Any, allowed: float, rounding: Rounding) -> List[str]:
    expected = reference.after[name]
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return [f"{name}: {found.dtype}{list(found.shape)}, expected {expected.dtype}{list(expected.shape)}"]
    if expected.dtype.kind not in "fc":
        return (
            [] if np.array_equal(found, expected) else [f"{name}: {found.ravel()[:3]}, expected {expected.ravel()[:3]}"]
        )
    if rounding.of_wire and _rounded(found) and not _rounded(expected):
        return [f"{name}: its master has lost the bits that {rounding.wire} lacks"]
    off = np.abs(found.astype(np.float64) - expected)
    worst = np.unravel_index(int(np.argmax(np.where(np.isfinite(off), off, np.inf))), off.shape) if off.size else ()
    if not off.size or off[worst] <= allowed:
        return []
    moved = _moved(reference, name)
    # Beside a kink, as of an absolute value, the last bit decides to which side an element goes.
    if np.count_nonzero(~(off <= allowed)) <= _BESIDE_A_KINK * off.size and off[worst] <= moved:
        return []
    return [
        f"{name}{list(map(int, worst))}: {found[worst]:.6g}, expected {expected[worst]:.6g} (all moved ≤ {moved:.2g})"
    ]


def _rounded(values: Any) -> bool:
    """Whether all of many numbers are among those few that bfloat16 has."""
    if values.dtype != np.float32 or values.size < 8:
        return False
    return not np.any(np.ascontiguousarray(values).view(np.uint32) & 0xFFFF)
