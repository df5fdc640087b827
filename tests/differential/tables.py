"""What came of all cases, as a table for a terminal and as a page of the documentation."""

from collections import Counter
from typing import Dict, List, Mapping, Sequence, Tuple

from tests.differential.authors import Author
from tests.differential.carrying_out import Result
from tests.differential.verdict import BITS, CLOSE, DIFFERENT, KINDS, REFUSED
from tests.differential.ways import AXES

_SHORT = {BITS: "=", CLOSE: "≈", REFUSED: "refused", DIFFERENT: "DIFFERENT"}
_SYNCS = AXES["sync"]


def numbers(results: Sequence[Result]) -> str:
    """How many there are of each kind."""
    found = Counter(result.verdict.kind for result in results)
    return f"{len(results)} cases: " + ", ".join(f"{found[kind]} {kind}" for kind in KINDS)


def table(results: Sequence[Result]) -> List[str]:
    """A line for each model, with a column for each way of synchronising."""
    cells = _cells(results)
    width = max([len(name) for name, _ in cells] + [5])
    lines = [f"{'model':{width}}  " + "  ".join(f"{sync:20}" for sync in _SYNCS)]
    for name in dict.fromkeys(name for name, _ in cells):
        lines.append(f"{name:{width}}  " + "  ".join(f"{_cell(cells.get((name, sync), [])):20}" for sync in _SYNCS))
    return lines


def page(results: Sequence[Result], authors: Mapping[str, Author]) -> str:
    """The page of the documentation."""
    cells = _cells(results)
    rows = [
        f"| `{name}` | {authors[name].about} | "
        + " | ".join(_cell(cells.get((name, sync), [])) for sync in _SYNCS)
        + " |"
        for name in dict.fromkeys(name for name, _ in cells)
    ]
    head = [f"| model | feature | {' | '.join(_SYNCS)} |", "|---" * (len(_SYNCS) + 2) + "|"]
    return "\n".join([_INTRODUCTION.format(numbers=numbers(results)), *head, *rows, "", *_refusals(results), ""])


def _cells(results: Sequence[Result]) -> Dict[Tuple[str, str], List[Result]]:
    found: Dict[Tuple[str, str], List[Result]] = {}
    for result in results:
        found.setdefault((result.case.author.name, result.case.way.sync), []).append(result)
    return found


def _cell(results: Sequence[Result]) -> str:
    found = Counter(result.verdict.kind for result in results)
    return ", ".join(f"{found[kind]} {_SHORT[kind]}" for kind in KINDS if found[kind])


def _refusals(results: Sequence[Result]) -> List[str]:
    """Every sentence that refuses a model, without the numbers that differ between ways."""
    found: Dict[Tuple[str, str], int] = Counter(
        (result.case.author.name, _sentence(result.verdict.text))
        for result in results
        if result.verdict.kind == REFUSED
    )
    if not found:
        return ["Nothing is refused."]
    rows = [f"| `{name}` | {number} | {text} |" for (name, text), number in sorted(found.items())]
    return ["## Refused models", "", "| model | cases | message |", "|---|---|---|", *rows]


def _sentence(text: str) -> str:
    """A cause without the folder of its file."""
    place, dot_py, rest = text.partition(".py:")
    return (place.rsplit("/", 1)[-1] + dot_py + rest).replace("|", "\\|")


_INTRODUCTION = """# Comparison with one process

This project trains small models, written in the styles of TensorFlow's authors, with parameter servers. A plain
program without this project trains the same models: one process, the whole batch, `compute_gradients` and
`apply_gradients`. Afterwards all variables of the author must be the same. Before the first step, this project must
refuse a model that it cannot train, with a message that names the line.

The ways are: both runtimes, 1, 2 and 3 parameter servers, variables that are cut into slices and small ones, 1 and 2
towers, float32 and bfloat16 on the wire. `make differential` tries every model with every combination of these values
and writes this page. `python -m tests.differential --sample --docs` tries each model in one way, so that all pairs
occur. `make test` tries a part of this sample. The number of cases shows which command wrote this page:

{numbers}. `=` means equal to the bit. `≈` means equal within 1e-5 of the largest value, because sums have another
order; with bfloat16 on the wire it means equal within the bits of bfloat16. A model may differ by twice the effect of a
rounding in one process: a rounding of its first values or, with bfloat16, of all values that travel.

The way in which the parts of a model are written may change how the model trains. So `make nightly` draws 1,000
constructions from a grammar, and trains each in a separate way. A construction chooses where a term enters the loss,
how an update is registered, under which scope, within which function, and by which optimizer. Each construction must
equal plain TensorFlow, or be refused: [how](../development.md#constructions).
"""
