"""The documentation is a site that builds without a warning, needs no network, and quotes messages that there are."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Iterator, Set

import pytest

from tests.support import ROOT

MESSAGES = re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs" / "troubleshooting.md").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a page without a place in its navigation, or a link that leads nowhere, is an error."""
    folder = tmp_path_factory.mktemp("site")
    argv = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(
        argv, cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120
    )
    assert built.returncode == 0, built.stdout
    return folder


def test_the_site_has_a_page_for_every_document(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= {path.relative_to(site) for path in site.rglob("*.html")}


def test_a_page_has_one_title_in_the_navigation_and_at_its_head() -> None:
    titles = re.findall(r"^ +- \"?(.+?)\"?: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    heads = {
        path: re.sub(r"^# (?:\d+\. )?", "", (ROOT / "docs" / path).read_text().split("\n")[0]) for _, path in titles
    }
    other = [title for title, path in titles if not path.endswith("index.md") and not heads[path].startswith(title)]
    assert len(titles) > 40 and other == []


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    loaded = re.compile(r'<(?:script|img|iframe|link)[^>]* (?:src|href)="(?:https?:)?//[^"]*"')
    found = {tag for page in site.rglob("*.html") for tag in loaded.findall(page.read_text())}
    assert found == set()


def test_no_table_or_list_is_shown_as_plain_text(site: Path) -> None:
    """Markdown of the site wants an empty line before a list, which other readers do not."""
    plain = re.compile(r"<p>(?:(?!</p>).)*\n(?:- |\d\. |\| ).*", re.DOTALL)
    assert [page.name for page in site.rglob("*.html") if plain.search(page.read_text().split("<footer")[0])] == []


def texts() -> Iterator[str]:
    """Every piece of text in the code that is written as one, whole or between the placeholders of an f-string."""
    for room in ("cluster", "launch", "jobs"):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if type(node).__name__ in ("Constant", "Str"):  # the latter in Python 3.7
                    yield str(ast.literal_eval(node))


@pytest.fixture(scope="module")
def said() -> Set[str]:
    return set(texts())


@pytest.mark.parametrize("message", MESSAGES)
def test_every_message_of_the_troubleshooting_page_is_one_of_the_code_s(message: str, said: Set[str]) -> None:
    parts = [part.strip() for part in message.split("…") if len(part.strip()) > 2]
    assert parts and [part for part in parts if not any(part in text for text in said)] == []


REFUSALS = {"UsageError", "HostProblem", "NotReady", "NameTaken", "GpuTaken", "Unguarded", "NoTensorFlow"}
INTERNAL = ("the agent cannot answer", "the look failed", "the check ended there")  # between our own programs


def refusals() -> Iterator[str]:
    """What the launcher's errors and a host's answers say, with … for what is filled in."""
    for path in (ROOT / "launch").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in REFUSALS:
                yield from map(written, node.args)
            elif isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values)
                yield from (written(value) for key, value in pairs if key is not None and written(key) == "error")


def written(node: ast.AST) -> str:
    """A text as the code has it; empty for what is no text."""
    if isinstance(node, ast.JoinedStr):
        return "…".join(written(part) for part in node.values)
    return str(ast.literal_eval(node)) if type(node).__name__ in ("Constant", "Str") else ""


def is_told(refusal: str) -> bool:
    known = ([part.strip() for part in message.split("…")] for message in MESSAGES)
    return any(all(part in refusal for part in parts) for parts in known)


def test_every_message_that_does_not_say_what_was_expected_is_on_the_troubleshooting_page() -> None:
    wordy = [text for text in refusals() if re.search(r"\w+ \w+ \w+", text)]
    assert len(wordy) > 40
    assert [text for text in wordy if not ("expected" in text or text.startswith(INTERNAL) or is_told(text))] == []


def test_the_troubleshooting_page_has_messages() -> None:
    assert len(MESSAGES) >= 25
