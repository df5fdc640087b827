"""A module's text as lines, tokens and statements, for mistakes that are made in its text."""

import ast
import io
import tokenize
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

Token = tokenize.TokenInfo
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Span(NamedTuple):
    """Lines of a statement, from 1 on; both are its."""

    first: int
    last: int


class Text:
    """The text of a module."""

    def __init__(self, text: str):
        self.lines = text.splitlines(keepends=True)
        self.tokens = list(_outside_of_texts(tokenize.generate_tokens(io.StringIO(text).readline)))
        self.tree = ast.parse(text)
        self._ends = self._logical_lines()

    def bodies(self) -> Iterator[List[Tuple[ast.stmt, Span]]]:
        """Yield each list of statements inside functions, without docstrings; ``__init__`` is none of them."""
        for function in ast.walk(self.tree):
            if isinstance(function, FUNCTIONS) and function.name != "__init__":
                for node in ast.walk(function):
                    for name in ("body", "orelse", "finalbody"):
                        found: Any = getattr(node, name, [])
                        if isinstance(found, list) and found:
                            yield [(each, self.span(each)) for each in found if not _is_text(each)]

    def span(self, statement: ast.stmt) -> Span:
        """Return the lines of a statement, with those of its parts."""
        last = max(getattr(each, "lineno", 0) for each in ast.walk(statement))
        return Span(statement.lineno, max(self._ends.get(line, line) for line in (statement.lineno, last)))

    def of(self, span: Span) -> str:
        """Return the text of these lines."""
        return "".join(self.lines[span.first - 1 : span.last])

    def logical(self, token: Token) -> Span:
        """Return the lines of the logical line that a token is in."""
        line = token.start[0]
        first = max(each for each in self._firsts if each <= line)
        return Span(first, self._ends[first])

    def with_token(self, token: Token, text: str) -> Tuple[Span, str]:
        """Return the logical line of a token, and its text with another token there."""
        span, (row, begin), (_, end) = self.logical(token), token.start, token.end
        lines = self.lines[span.first - 1 : span.last]
        line = lines[row - span.first]
        lines[row - span.first] = line[:begin] + text + line[end:]
        return span, "".join(lines)

    def _logical_lines(self) -> Dict[int, int]:
        """Return the last line of each logical line, by every line of it."""
        ends: Dict[int, int] = {}
        self._firsts: List[int] = []
        first = 0
        for token in self.tokens:
            if token.type in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
                continue
            first = first or token.start[0]
            if token.type == tokenize.NEWLINE:
                self._firsts.append(first)
                ends.update(dict.fromkeys(range(first, token.end[0] + 1), token.end[0]))
                first = 0
        return ends


def _outside_of_texts(tokens: Iterator[Token]) -> Iterator[Token]:
    """Yield all tokens but those in f-strings, which are one token before Python 3.12."""
    depth = 0
    for token in tokens:
        kind = tokenize.tok_name[token.type]
        depth += (kind == "FSTRING_START") - (kind == "FSTRING_END")
        if not depth:
            yield token


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and type(statement.value).__name__ in ("Str", "Constant")  # 3.7, 3.8 on
