"""The documentation is a site that builds without a warning, needs no network, and quotes messages that there are."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List, Set

import pytest

from tests.support import ROOT
from tests.support import browser as support
from tests.support.browser import Browser, Page
from tests.support.waiting import eventually

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


LISTED = re.findall(r"^ +- (\S+)\.md$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)


def pages(site: Path) -> List[Path]:
    """The pages of the navigation."""
    return [site / f"{name}.html" for name in LISTED]


def test_the_navigation_has_every_page_but_those_for_contributors_and_of_moved_pages() -> None:
    unlisted = {path.stem for path in (ROOT / "docs").glob("*.md")} - {*LISTED}
    moved = {path.stem for path in (ROOT / "docs").glob("*.md") if path.read_text().split("\n")[0].endswith(" (moved)")}
    assert unlisted - moved == {"architecture", "development", "fake-hosts"} and len(moved) == 4
    assert not [name for name in LISTED if "/" in name]


def test_the_pages_of_the_navigation_have_half_the_words_that_they_had_and_some_for_new_features() -> None:
    """A page that needs more takes it from another one: docs/measurements/site.md."""
    assert sum(len((ROOT / "docs" / f"{name}.md").read_text().split()) for name in LISTED) <= 68_975


def test_a_page_has_one_title_the_first_heading_short_enough_for_the_sidebar() -> None:
    titles = [path.read_text().split("\n")[0] for path in (ROOT / "docs").rglob("*.md")]
    assert [title for title in titles if not re.fullmatch(r"# .{4,84}", title)] == []
    assert len(titles) > 40 and len(set(titles)) == len(titles)
    assert ".md" not in "".join(re.findall(r"^ +- [^:\n]+: (.*)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))


def test_a_page_begins_with_a_sentence_of_its_subject() -> None:
    """It is what search engines show below the title."""
    texts = {path: path.read_text().split("\n\n")[1] for path in (ROOT / "docs").glob("*.md")}
    assert [path.name for path, text in texts.items() if not re.match(r"[A-Z`*].*\w", text) or "```" in text] == []


def test_the_sidebar_marks_the_page_one_is_on(site: Path) -> None:
    unmarked = {}
    for page in pages(site):
        marked = re.findall(r'<a href="([^"]*)" class="[^"]*md-nav__link--active', page.read_text())
        if not marked or {(page.parent / link).resolve() if link != "./" else page for link in marked} != {page}:
            unmarked[page.name] = marked
    assert unmarked == {}


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    elsewhere = re.compile(r'<(?:script|img|iframe|link)[^>]* (?:src|href)="?(?:https?:)?//[^>]*')
    found = {tag for page in site.rglob("*.html") for tag in elsewhere.findall(page.read_text())}
    found |= {
        url
        for sheet in site.rglob("*.css")
        for url in re.findall(r"url\([\"']?(?:https?:)?//|@import.*", sheet.read_text())
    }
    assert found == set()


def test_no_page_has_what_the_theme_would_load_a_script_for(site: Path) -> None:
    """The theme loads drawings and counts of a repository by its script, where a page has them."""
    (script,) = (site / "assets" / "javascripts").glob("bundle.*.js")
    hosts = set(re.findall(r"https://([\w.-]+\.\w+)/", script.read_text()))
    assert hosts <= {"unpkg.com", "api.github.com", "gitlab.com", "clipboardjs.com"}
    text = "".join(page.read_text() for page in pages(site))
    assert 'class="mermaid"' not in text and 'data-md-component="source"' not in text


def test_the_index_of_the_search_is_a_script_that_has_the_pages_of_the_navigation(site: Path) -> None:
    name, _, index = (site / "search" / "search_index.js").read_text().partition(" = ")
    found = {entry["location"].split("#")[0] for entry in json.loads(index)["docs"]}
    assert name == "var __index" and found == {str(page.relative_to(site)) for page in pages(site)}


def test_code_is_coloured(site: Path) -> None:
    """By classes that Pygments writes into the page: of a command, a key and a keyword of Python."""
    for page, mark in (
        ("index", ""),
        ("hosts-file", 'class="nt">'),
        ("jobs", 'class="k">def'),
        ("operator", 'class="c1"># '),
    ):
        assert mark in (site / f"{page}.html").read_text(), page
    assert [
        path.name
        for path in (ROOT / "docs").rglob("*.md")
        if re.search("^    (?:launch|make) ", path.read_text(), re.MULTILINE)
    ] == []


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    support.skip_without()
    with Browser(tmp_path_factory.mktemp("browser"), "--allow-file-access-from-files") as browser:
        yield browser


RESULTS = "[...document.querySelectorAll('a.md-search-result__link')].map((each) => each.getAttribute('href'))"


def found(page: Page) -> Set[str]:
    """The pages that the search shows."""
    return {link.split("?")[0].split("#")[0].rsplit("/", 1)[-1] for link in page.evaluate(RESULTS)}


def test_search_works_from_the_disk(site: Path, browser: Browser) -> None:
    page = browser.page()
    page.open(f"{(site / 'index.html').as_uri()}?q=nftables")
    eventually("the results", lambda: {"security.html", "reference.html"} <= found(page))
    assert "tutorial.html" not in found(page)


# The page that the search shows first, and its first section where the page answers many questions.
QUESTIONS = {
    "what is a parameter server": ["parameter-servers"],
    "how many parameter servers do I need": ["how-many"],
    "move from horovod": ["moving", "moving#from-horovod"],
    "two machines": ["faq", "faq#how-do-i-use-two-machines"],
    "ssh password": ["fanout", "fanout#the-program-ssh"],
    "change learning rate": ["faq", "faq#how-do-i-change-the-learning-rate"],
    "see the loss": ["faq", "faq#where-do-i-see-the-loss"],
    "run hangs": ["faults"],
    "resume after crash": ["faq", "faq#how-do-i-resume-after-a-crash"],
    "out of memory gpu": ["gpus", "gpus#gpu-symptoms"],
    "export saved model": ["serving"],
    "stop a run": ["down"],
}
ASK = """(() => {
  const input = document.querySelector("input.md-search__input");
  document.querySelector("ol.md-search-result__list").replaceChildren();
  input.value = QUESTION;
  input.dispatchEvent(new Event("keyup"));
})()"""


def test_a_newcomer_s_question_is_answered_by_the_first_page_that_the_search_shows(
    site: Path, browser: Browser
) -> None:
    page = browser.page()
    page.open((site / "index.html").as_uri())
    page.evaluate("document.querySelector('input.md-search__input').focus()")
    first = {}
    for question, answer in QUESTIONS.items():
        page.evaluate(ASK.replace("QUESTION", json.dumps(question)))
        links = eventually(f"the results of {question}", lambda: page.evaluate(RESULTS))[: len(answer)]
        first[question] = [re.sub(r"^.*/|\.html|\?[^#]*", "", link) for link in links]
    assert first == QUESTIONS


WIDTHS = """<body><script>
const wide = [], left = [], check = () => {
  if (!left.length) return window.checked = wide;
  const [page, width] = left.shift(), frame = document.createElement("iframe");
  Object.assign(frame, {src: page, width, height: 800, onload: () => {
    const root = frame.contentDocument.documentElement;
    if (frame.contentWindow.innerWidth != width || root.scrollWidth > width) wide.push([page, width, root.scrollWidth]);
    frame.remove();
    check();
  }});
  document.body.append(frame);
};
for (const page of PAGES) for (const width of [390, 1280]) left.push([page, width]);
check();
</script>"""


def test_no_page_scrolls_sideways_on_a_phone_or_a_laptop(site: Path, browser: Browser) -> None:
    (site / "wide.html").write_text("<!doctype html><p style='width: 1300px'>wide")
    names = ["wide.html", *(str(page.relative_to(site)) for page in pages(site))]
    (site / "widths.html").write_text(WIDTHS.replace("PAGES", json.dumps(names)))
    page = browser.page()
    page.open((site / "widths.html").as_uri())
    wide = eventually("the widths", lambda: page.evaluate("window.checked"))
    (site / "widths.html").unlink()
    (site / "wide.html").unlink()
    assert [name for name, *_ in wide] == ["wide.html"] * 2


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
