"""Which ways of the conditions of a module have been taken, by the lines that ran one after the other."""

import ast
from typing import Iterator, List, NamedTuple, Set, Tuple


class _Condition(NamedTuple):
    """An ``if`` or ``while`` of a function: its lines, and the first that runs where it holds."""

    first: int
    last: int
    then: int


class Ways(NamedTuple):
    """The ways of a module's conditions, how many never ran, and words for those of conditions that did run."""

    number: int
    never: int
    words: List[str]


def ways(text: str, steps: Set[Tuple[int, int]]) -> Ways:
    """Return which ways the conditions of a module took.

    Args:
      steps: lines that have run, each behind the line that ran before it.
    """
    conditions, words, unreached = sorted(set(_conditions(ast.parse(text)))), [], 0
    for each in conditions:
        from_here = {line for before, line in steps if each.first <= before <= each.last}
        after = {line for line in from_here if not each.first <= line <= each.last}
        unreached += not from_here
        if from_here and each.then not in after:
            words.append(f"{each.first} never true")
        if from_here and not after - {each.then}:
            words.append(f"{each.first} never false")
    return Ways(2 * len(conditions), 2 * unreached + len(words), words)


def _conditions(tree: ast.AST) -> Iterator[_Condition]:
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for node in ast.walk(function):
                if isinstance(node, (ast.If, ast.While)) and not _is_constant(node.test):
                    last = max(getattr(each, "lineno", 0) for each in ast.walk(node.test))
                    yield _Condition(node.lineno, last, node.body[0].lineno)


def _is_constant(test: ast.AST) -> bool:
    return type(test).__name__ in ("Constant", "NameConstant")  # from 3.8 on, and before
