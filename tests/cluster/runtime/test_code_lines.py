"""An error of the author's code has its line, and the name that was meant."""

from pathlib import Path
from typing import Any, Dict

import pytest

from cluster.runtime.code_lines import described_at, place_of


def described(path: Path, lines: str) -> str:
    """The error that lines of a file raise, as a job's author sees it."""
    path.write_text(lines)
    values: Dict[str, Any] = {}
    try:
        exec(compile(lines, str(path), "exec"), values)
    except Exception as error:
        return described_at(place_of(str(path), error), error)
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("lines", "end"),
    [
        ("weights = 1\nprint(weihgts)", ":2: NameError: name 'weihgts' is not defined, in `print(weihgts)`; "
         "did you mean 'weights'?"),
        ("import math\nmath.flor(1.0)", ":2: AttributeError: module 'math' has no attribute 'flor', in "
         "`math.flor(1.0)`; did you mean 'floor'?"),
        ("args = {'learning_rate': 1}\nargs['leraning_rate']", ":2: KeyError: 'leraning_rate', in "
         "`args['leraning_rate']`; did you mean 'learning_rate'?"),
        ("prnt(1)", ":1: NameError: name 'prnt' is not defined, in `prnt(1)`; did you mean 'print'?"),
        ("zebra(1)", ":1: NameError: name 'zebra' is not defined, in `zebra(1)`; define it, or import it"),
        ("args = {}\nargs['rate']", ":2: KeyError: 'rate', in `args['rate']`; found no key"),
        ("row = {'x': 1, 'y': 2}\nrow['label']", ":2: KeyError: 'label', in `row['label']`; found the keys x, y"),
        ("{'a': 1}['b']", ":1: KeyError: 'b', in `{'a': 1}['b']`"),
        ("raise KeyError('a b')", ":1: KeyError: 'a b', in `raise KeyError('a b')`"),
    ],
)  # fmt: skip
def test_a_name_that_does_not_exist_has_the_nearest_one(tmp_path: Path, lines: str, end: str) -> None:
    assert described(tmp_path / "job.py", lines) == f"{tmp_path}/job.py{end}"
