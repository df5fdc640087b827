"""Pages have short sentences and technical words; quoted output, code and figures are not held to that."""

import re
from pathlib import Path
from typing import Callable, Iterator, List, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Words that say less than the technical one: report, send, print, receive, again, recently.
OBLIQUE = re.compile(
    r"\b(?:tells?|told|telling|says?|said|saying|hears?|heard|hearing|heeds?|heeded|anew|of late"
    r"|lays? down|laid down|comes? of|came of|lets? go on)\b",
    re.IGNORECASE,
)
RELATIVE = re.compile(r"(?:What|Which|Whose|Who|Of|Whether|That)\b")  # no heading begins like that, but for a question
LONG, LONGEST = 25, 40  # words of a sentence
SHARE = 0.05  # of a page's sentences may be longer than LONG, and one on a short page; none longer than LONGEST

FENCE = re.compile(r"^ *```.*?^ *```[^\n]*$", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"<!-- (?:table|overview): .*?<!-- end -->", re.DOTALL)  # a program writes it
MARK = re.compile(r" *(?:[-*] |\d+\. |#+ |> )")  # before a list item, a heading or a quotation
END = re.compile(r"(?<!\b[A-Z]\.)(?<=[.!?:])[*_)\"”]*\s+")  # but for an initial; what follows a colon is read by itself


class Text(NamedTuple):
    line: int
    text: str

    @property
    def words(self) -> int:
        return len(re.findall(r"\S*\w\S*", self.text))


def without_quotes(page: str) -> str:
    """The page without fenced blocks and generated tables; every other line keeps its number."""
    for quote in (FENCE, TABLE):
        page = quote.sub(lambda found: "\n" * found.group().count("\n"), page)
    return page


def blocks(page: str) -> Iterator[Text]:
    """Headings, paragraphs, list items and table cells; not what is indented, which is code."""
    block = Text(0, "")
    for number, line in enumerate([*without_quotes(page).split("\n"), ""], 1):
        table = line.lstrip().startswith("|")
        if block.text and (not line.strip() or table or MARK.match(line)):
            yield block
            block = Text(0, "")
        if table:
            yield from (Text(number, cell) for cell in line.strip(" |").split(" | "))
        elif line.startswith("#"):
            yield Text(number, line)
        elif line.strip() and (block.text or not line.startswith("    ")):
            block = Text(block.line or number, f"{block.text} {MARK.sub('', line, 1) if not block.text else line}")


def sentences(page: str) -> List[Text]:
    """The sentences of a page, each with the line where its block begins. A quotation in it is one word."""
    found = []
    for line, block in blocks(page):
        text = re.sub(r"`[^`]*`", "CODE", " ".join(block.split()))
        text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
        found += [Text(line, part.strip()) for part in END.split(text) if part.strip()]
    return found


def oblique(page: str) -> List[str]:
    found = [(line, OBLIQUE.search(text)) for line, text in sentences(page)]
    return [f"{line}: {word.group()!r}: use the technical word" for line, word in found if word]


def relative_headings(page: str) -> List[str]:
    found = [(line, text.lstrip("# ")) for line, text in sentences(page) if text.startswith("#")]
    return [f"{line}: {text!r}: name the thing" for line, text in found if RELATIVE.match(text) and text[-1] != "?"]


def too_long(page: str) -> List[str]:
    """Sentences of more than LONGEST words, and those of more than LONG where a page has too many of them."""
    real = [text for text in sentences(page) if text.words > 3]  # a figure or a name is no sentence
    long = [text for text in real if text.words > LONG]
    many = len(long) > max(1, SHARE * len(real))
    return [f"{text.line}: {text.words} words: {text.text}" for text in long if many or text.words > LONGEST]


RULES = [oblique, relative_headings, too_long]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_page_keeps_the_rule(path: Path, rule: Callable[[str], List[str]]) -> None:
    assert rule(path.read_text(encoding="utf-8")) == []


BROKEN = [
    (oblique, "Good.\n\nIt tells\nof a run.", "3: 'tells': use the technical word"),
    (oblique, "| key | what the agent\u2019s told |", "1: 'told': use the technical word"),
    (relative_headings, "# Runs\n\n## What is left", "3: 'What is left': name the thing"),
    (too_long, "One two.\n\n" + "word " * 41, f"3: 41 words: {'word ' * 40}word"),
    (too_long, "- A list item\n" + f"- {'word ' * 26}\n" * 2, f"2: 26 words: {'word ' * 25}word"),
]


@pytest.mark.parametrize(("rule", "page", "message"), BROKEN)
def test_what_breaks_a_rule_is_named_with_its_line(rule: Callable[[str], List[str]], page: str, message: str) -> None:
    assert rule(page)[0] == message


KEPT = [
    "The message is `it tells of a run`, in [a page](it-was-told.md).",
    "```\nhe was told\n```\n\n    printed: he was told\n",
    "<!-- table: two -->\nhe was told\n<!-- end -->",
    "| What does it need? | Linux |",
    "## What does it need?",
    f"{'word ' * 24}end. {'word ' * 24}end: {'word ' * 24}end",
    "word " * 26,
    f"- {'word ' * 24}\n- {'word ' * 24}\n",
    f"| {'word ' * 24} | {'word ' * 24} |",
]


@pytest.mark.parametrize("page", KEPT)
def test_quotations_tables_and_lists_are_read_as_what_they_are(page: str) -> None:
    assert [message for rule in RULES for message in rule(page)] == []


def test_numbers_names_and_signs_are_counted_as_words_of_a_sentence() -> None:
    assert [text.words for text in sentences("See A. Author, 1.5 s — `a b c` and [two words](page.md).")] == [9]
