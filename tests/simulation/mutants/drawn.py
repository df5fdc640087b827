"""Small mistakes in the product, drawn by seed: a rule first, then a place in one of the modules.

Lines that only write to a log are left alone, and so are modules that only make what is shown.
"""

import ast
import tokenize
from functools import lru_cache
from random import Random
from typing import Callable, Dict, Iterator, List, NamedTuple, Tuple

from tests.simulation.mutants.mutant import ROOT, Edit, Mutant
from tests.simulation.mutants.texts import Span, Text

_SHOWN = ("incident", "incidents", "root_cause", "stall", "effective", "status", "hang_detection", "__init__")
AGENTS, LAUNCHERS = "agents", "launchers"
_OF_LAUNCHERS = (
    "launch/agent/service/keeping.py", "launch/run/attached.py", "launch/run/follower.py", "launch/teardown.py",
)  # fmt: skip
_SERVICE, _PROTOCOL = ("lead", "member", "member_links", "agent", "recovery"), ("gate", "links", "silence")
_OPPOSITES = {"<": ("<=", ">"), "<=": ("<", ">"), ">": (">=", "<"), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}


class Change(NamedTuple):
    """Lines of a module, and the text in their place."""

    path: str
    span: Span
    old: str
    new: str


def paths(of: str = AGENTS) -> List[str]:
    """Return the modules in which mistakes are made; those of launchers with the keeper's decisions."""
    if of == LAUNCHERS:
        return [*_OF_LAUNCHERS]
    decides = sorted(each.stem for each in (ROOT / "launch/agent/supervision").glob("*.py"))
    rooms = {"service": _SERVICE, "protocol": _PROTOCOL, "supervision": [e for e in decides if e not in _SHOWN]}
    return [f"launch/agent/{room}/{name}.py" for room, names in rooms.items() for name in names]


def draw(number: int, again: int = 0, of: str = AGENTS) -> Mutant:
    """Return the mutant of a number; ``again`` counts those before that no history meets."""
    random = Random(f"{number} {again}")
    rule = random.choice(list(_RULES))
    change = random.choice(_changes(rule, of))
    where = f"{change.path}:{change.span.first}"
    what = f"{rule} at {where}\n    - {_line(change.old)}\n    + {_line(change.new)}"
    before = "".join((ROOT / change.path).read_text().splitlines(keepends=True)[: change.span.first - 1])
    edit = Edit(change.path, change.old, change.new, len(before))
    return Mutant(f"drawn {number} {of}", what, (edit,))


def _line(text: str) -> str:
    return " | ".join(line.strip() for line in text.splitlines())


@lru_cache(maxsize=None)
def _changes(rule: str, of: str) -> List[Change]:
    """Return all mistakes of a rule."""
    return [
        Change(path, span, text.of(span), new)
        for path in paths(of)
        for text in [Text((ROOT / path).read_text())]
        for span, new in _RULES[rule](text)
        if "say" not in text.of(span).split("(")[0]
    ]


Changes = Iterator[Tuple[Span, str]]


def _comparisons(text: Text) -> Changes:
    for token, following in zip(text.tokens, text.tokens[1:]):
        for other in _OPPOSITES.get(token.string, ()) if token.type == tokenize.OP else ():
            yield text.with_token(token, other)
        if token.string == "is":
            yield text.with_token(token, "is not") if following.string != "not" else text.with_token(following, "")


def _words(text: Text) -> Changes:
    for token in text.tokens:
        if token.type == tokenize.NAME and token.string in ("and", "or"):
            yield text.with_token(token, "or" if token.string == "and" else "and")


def _nots(text: Text) -> Changes:
    for before, token in zip(text.tokens, text.tokens[1:]):
        if token.string == "not" and before.string != "is":
            yield text.with_token(token, "")


def _numbers(text: Text) -> Changes:
    for token in text.tokens:
        if token.type == tokenize.NUMBER:
            value: float = ast.literal_eval(token.string)
            for other in (value + 1, value - 1) if isinstance(value, int) else (value * 3 or 1.0, value / 3 or 2.0):
                yield text.with_token(token, f"({other!r})" if other < 0 else f"{other!r}")


def _conditions(text: Text) -> Changes:
    """Turn a condition: of an if, or of a value that depends on one."""
    for before, token in zip(text.tokens, text.tokens[1:]):
        is_first = before.type in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)
        span = text.logical(token) if token.string == "if" else None
        if span is not None and span.first == span.last and is_first:
            line = text.of(span).rstrip()
            indent, condition = line[: token.start[1]], line[token.end[1] : line.rindex(":")].strip()
            if line.endswith(":"):
                yield span, f"{indent}if not ({condition}):\n"


def _awaits_moved(text: Text) -> Changes:
    """Swap two statements, of which one waits."""
    for body in text.bodies():
        for (one, first), (other, second) in zip(body, body[1:]):
            has_await = any(isinstance(each, ast.Await) for pair in (one, other) for each in ast.walk(pair))
            if has_await and _is_simple(one) and _is_simple(other) and first.last < second.first:
                span = Span(first.first, second.last)
                between = "".join(text.lines[first.last : second.first - 1])
                yield span, text.of(second) + between + text.of(first)


def _left_out(text: Text) -> Changes:
    for body in text.bodies():
        for statement, span in body:
            line = text.lines[span.first - 1]
            is_if = isinstance(statement, ast.If) and not statement.orelse and "elif" not in line
            if is_if or _is_simple(statement):
                yield span, line[: len(line) - len(line.lstrip())] + "pass\n"


def _returns(text: Text) -> Changes:
    others = {"True": "False", "False": "True", "0.0": "1.0"}
    for before, token in zip(text.tokens, text.tokens[1:]):
        if before.string in ("return", "else") and token.string in others:
            yield text.with_token(token, others[token.string])


def _is_simple(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete))


_RULES: Dict[str, Callable[[Text], Changes]] = {
    "comparison": _comparisons,
    "and, or": _words,
    "not": _nots,
    "number": _numbers,
    "condition": _conditions,
    "await moved": _awaits_moved,
    "left out": _left_out,
    "return": _returns,
}
