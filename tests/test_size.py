"""The product's tree grows in no figure, and each figure counts what it names."""

import pytest

from tests.size import figures, module, modules, names

# They fall when something goes. A commit that adds a feature raises them by what the feature needs, and says so.
CEILINGS = {
    "AST nodes": 496_810,
    "files": 519,
    "modules of 30 lines or fewer": 1,
    "modules with one importer": 116,
    "class names used twice": 0,
    "file names used twice": 14,
    "calls with more than 6 arguments by position": 3,
    "files of more than 300 lines": 0,
    "files outside it that name after": 25,
    "files outside it that name notice": 8,
    "files outside it that name limits": 25,
    "files outside it that name containers": 12,
}
SLACK = 0.005  # of a ceiling, which is lowered with the figure


def test_no_figure_is_above_its_ceiling_or_far_below() -> None:
    found = figures(modules())
    assert {name: count for name, count in found.items() if count > CEILINGS[name]} == {}
    assert {name: count for name, count in found.items() if count < int(CEILINGS[name] * (1 - SLACK))} == {}


def test_each_figure_counts_what_it_names() -> None:
    one = module("launch/a/one.py", "class A: pass\n" + "f(1, 2, 3, 4, 5, 6, 7)\n" * 400)
    other = module("launch/b/one.py", "from launch.a.one import A\nclass A: pass\nf(1, 2, 3, 4, 5, 6, x=7)\n")
    assert list(figures([one, other]).values())[1:8] == [2, 1, 1, 1, 1, 400, 1]


@pytest.mark.parametrize(
    "line", ["x.limits", "f(limits=1)", "from a.limits.b import c", "def f(limits): pass", "x['limits']", "limits = 1"]
)
def test_a_file_names_a_part_in_any_way(line: str) -> None:
    assert names(module("launch/run/draft.py", line), "limits")
    assert not names(module("launch/agent/limits/part.py", line), "limits")


def test_a_text_with_the_word_names_no_part() -> None:
    assert not names(module("launch/run/draft.py", '"its limits"\n# limits\n'), "limits")
