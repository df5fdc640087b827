"""Every mistake in a hosts file is refused with its place, what was expected, what was found and what to do."""

from pathlib import Path
from typing import Callable, List, Tuple

import pytest

from cluster.spec import SpecError, load

Refuse = Callable[[str], List[str]]
# Each file has cases like this one, under lines that all of them share: what is written, and what is answered.
#     train: {steps: 0}
#     => hosts.yaml:3:16: train.steps: expected a whole number of at least 1, found 0
CASES = Path(__file__).parent / "mistakes"


@pytest.fixture
def refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """The lines with which a hosts file is refused."""
    monkeypatch.chdir(tmp_path)

    def of(text: str) -> List[str]:
        Path("hosts.yaml").write_text(text)
        with pytest.raises(SpecError) as caught:
            load("hosts.yaml")
        return str(caught.value).splitlines()

    return of


def cases(name: str) -> List[Tuple[str, List[str]]]:
    """What is written, and the lines that answer it."""
    found = []
    for case in (CASES / name).read_text(encoding="utf-8").strip("\n").split("\n\n"):
        lines = case.splitlines()
        written = [line for line in lines if not line.startswith("=> ")]
        found.append(("\n".join(written), [line[3:] for line in lines[len(written) :]]))
    return found


@pytest.mark.parametrize(("written", "answer"), cases("sections.txt"))
def test_a_mistake_in_a_section_is_told(refusal: Refuse, written: str, answer: List[str]) -> None:
    assert refusal("job: d\ncluster: {ps: [a], worker: [b]}\n" + written) == answer


@pytest.mark.parametrize(("written", "answer"), cases("items.txt"))
def test_a_mistake_in_an_item_is_told(refusal: Refuse, written: str, answer: List[str]) -> None:
    assert refusal("job: d\ncluster:\n  ps: [p]\n  worker:\n" + written) == answer


@pytest.mark.parametrize(("written", "answer"), cases("whole.txt"))
def test_all_mistakes_of_a_file_are_listed_in_its_order(refusal: Refuse, written: str, answer: List[str]) -> None:
    assert refusal(written) == answer


@pytest.mark.parametrize(
    ("worker", "expected"),
    [
        ("gpu01", "a list of hosts, found 'gpu01' — write it as a list: ['gpu01']"),
        ("{host: a}", "a list of hosts, found a mapping"),
    ],
)
def test_a_role_is_a_list(refusal: Refuse, worker: str, expected: str) -> None:
    text = f"job: d\ncluster:\n  ps: [p]\n  worker: {worker}"
    assert refusal(text) == [f"hosts.yaml:4:11: cluster.worker: expected {expected}"]


def test_a_file_whose_own_name_cannot_name_the_run_needs_the_key_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "job: d\ncluster: {ps: [a], worker: [b]}\n"
    Path("my hosts.yaml").write_text(text)
    with pytest.raises(SpecError) as caught:
        load("my hosts.yaml")
    place, _, rest = str(caught.value).partition(": expected ")
    assert place == "my hosts.yaml:1:1: name"
    assert rest.endswith(", found the file's name 'my hosts' — add the key name")
    Path("my hosts.yaml").write_text(text + "name: mine")
    assert load("my hosts.yaml").name == "mine"
