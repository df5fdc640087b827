"""Which statements of the product a history reaches: a mistake in others leaves it as it is.

A history is the same each time. So one that never reaches a mutant's statements need not be run again for it.
"""

import ast
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

MARKS = "_reached_lines"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class _Marked(ast.NodeTransformer):
    """Puts before each statement of a function one that notes its line."""

    def __init__(self) -> None:
        self._depth = 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        is_function = isinstance(node, _FUNCTIONS)
        self._depth += is_function
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if self._depth and isinstance(statements, list):
                setattr(node, name, [each for one in statements for each in (_mark(one.lineno), one)])
        self._depth -= is_function
        return node


def _mark(line: int) -> ast.stmt:
    mark = ast.parse(f"{MARKS}.add({line})").body[0]
    return ast.increment_lineno(mark, line - 1)


def marked(text: str, path: str) -> Any:
    """Return the code of a module that notes the lines of statements that it reaches in a set, ``MARKS``."""
    return compile(_Marked().visit(ast.parse(text)), path, "exec")


def statements(text: str, first: int, last: int) -> Optional[Set[int]]:
    """Return the lines at which the statements begin that lie on these lines; None where one is of no function."""
    begins = _begins(ast.parse(text), False)
    found: Set[int] = set()
    for line in range(first, last + 1):
        at, is_within = max((each for each in begins if each[0] <= line), default=(0, False))
        if not is_within:
            return None
        found.add(at)
    return found


def _begins(node: ast.AST, is_within: bool) -> List[Tuple[int, bool]]:
    found = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.stmt, ast.ExceptHandler)):
            found.append((child.lineno, is_within))
        found += _begins(child, is_within or isinstance(child, _FUNCTIONS))
    return found


Lines = Mapping[str, Sequence[int]]


def touches(wanted: Optional[Dict[str, Set[int]]], lines: Lines) -> bool:
    """Return whether a history that reached ``lines`` may differ with other statements at the wanted ones."""
    return wanted is None or any(at & set(lines.get(path, ())) for path, at in wanted.items())
