"""The agent's errors have one root, and each is drawn."""

import ast
import re
from typing import Dict

from launch.agent import errors
from tests.support import ROOT


def bases() -> Dict[str, str]:
    """The agent's classes that derive from one whose name is theirs to use: {class: that name}."""
    trees = [ast.parse(path.read_text()) for path in (ROOT / "launch" / "agent").rglob("*.py")]
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef) and node.bases]
    return {each.name: base.id for each in classes for base in each.bases[:1] if isinstance(base, ast.Name)}


def test_no_error_of_the_agent_lacks_the_root() -> None:
    assert [name for name, base in bases().items() if base == "Exception"] == ["AgentError"]


def test_the_errors_of_the_agent_are_those_that_are_drawn() -> None:
    drawn = re.findall(r"[├└]── ([A-Z]\w+)", errors.__doc__ or "")
    assert sorted(drawn) == sorted(name for name, base in bases().items() if base == "AgentError")
