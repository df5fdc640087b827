"""A file that cannot be read, or is no YAML, is refused like any other mistake; and what its plain texts mean."""

import contextlib
import errno
import os
import random
import socket
import time
from pathlib import Path
from typing import Any, Callable, List, Tuple, Union

import pytest

from cluster.spec import SpecError, load, reading
from tests.support import ROOT

Refuse = Callable[[Union[str, bytes]], str]


@pytest.fixture
def refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """The text with which a hosts file is refused."""
    monkeypatch.chdir(tmp_path)

    def of(text: Union[str, bytes]) -> str:
        Path("hosts.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(SpecError) as caught:
            load("hosts.yaml")
        return str(caught.value)

    return of


RESERVED = "put a text that has such characters in quotes"
NO_COLON = "expected no ':' here, found one — align the keys, or put a text that has ': ' in quotes"
BAD: List[Tuple[Union[str, bytes], str]] = [
    ("", "1:1: expected the keys cluster and job, found an empty file"),
    ("# nothing\n", "1:1: expected the keys cluster and job, found an empty file"),
    ("job: d\n\tps: 1", "2:1: expected spaces, found a tab — indent with spaces"),
    ("ps: [gpu[01-02]]", "1:9: expected ',' or ']', found '[' — put a range in quotes: \"gpu[01-04]\""),
    ("ps: [a, b\nworker: [c]", "2:7: expected ',' or ']', found ':' — close the bracket"),
    ("train: {steps: 1", "1:17: expected ',' or '}', found the end of the file — close the bracket"),
    ("job: d\n steps: 2", f"2:7: {NO_COLON}"),
    ("job: a: b", f"1:7: {NO_COLON}"),
    ("job: 'd", "1:8: expected a closing quote, found the end of the file"),
    ("job: @d", f"1:6: expected a value, found the reserved character '@' — {RESERVED}"),
    ("job: }", f"1:6: expected a value, found '}}' — {RESERVED}"),
    ("- a\njob: d", "2:1: expected the next key or item, found a key — check indentation and quotes"),
    ('job: "a" b', "1:10: expected the next key or item, found more text — check indentation and quotes"),
    ("job: d\ncluster\nname: x", "3:1: expected ':' after a key, found none"),
    ('job: "\\q"', "1:8: expected valid YAML, found unknown escape character 'q'"),
    ("job: |x", "1:7: expected valid YAML, found an error: expected chomping or indentation indicators, but found 'x'"),
    ("job: *d", "1:6: expected an anchor &d above, found none"),
    ("job: &a [*a]", "1:10: expected valid YAML, found an alias inside its own anchor"),
    ("a: &x 1\nb: &x 2", "2:4: expected each anchor once, found a second one — give one another name"),
    ("<<: 3", "1:5: expected a mapping to merge, found a scalar"),
    ("job: d\n---\njob: e", "2:1: expected one document, found a second one — remove the line ---"),
    ("a: " + "[" * 1000, "1:1: expected a hosts file, found lists or mappings nested too deeply"),
    ("job: d\nname: \x01", "2:7: expected valid YAML, found the character U+0001 — remove it"),
    ("job: d\nname: a\0b", "2:8: expected valid YAML, found the character U+0000 — remove it"),
    (b"job: d\nname: \xff", "2:1: expected text in UTF-8, found the byte 0xff"),
]


@pytest.mark.parametrize(("text", "expected"), BAD, ids=[repr(text)[:40] for text, _ in BAD])
def test_what_is_no_yaml_is_told_in_plain_words(refusal: Refuse, text: Union[str, bytes], expected: str) -> None:
    assert refusal(text) == f"hosts.yaml:{expected}"


REST = "\njob: d\ncluster: {ps: [a], worker: [b]}"
UNWANTED: List[Tuple[str, str]] = [
    ("name: x\nname: y", "2:1: expected each key once, found a second 'name'; the first is on line 1"),
    ("args: {a: 1, a: 1}", "1:14: expected each key once, found a second 'a'; the first is on line 1"),
    ("args: {1: 2}", "1:8: expected a key that is a text, found 1 — put it in quotes"),
    ("args: {[a]: 2}", "1:8: expected a key that is a text, found a list — put it in quotes"),
    ("name: !!str x", "1:7: expected a value without a tag, found the tag tag:yaml.org,2002:str — leave the tag out"),
    ("args: !!python/object:os.system {}", "1:7: expected a value without a tag, found the tag "
     "tag:yaml.org,2002:python/object:os.system — leave the tag out"),
    ('args: {a: "\\0"}', "1:11: expected a text without NUL characters, found one that has them"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), UNWANTED)
def test_yaml_that_a_hosts_file_does_not_take_is_refused(refusal: Refuse, text: str, expected: str) -> None:
    assert refusal(text + REST) == f"hosts.yaml:{expected}"


def test_a_key_that_stands_twice_does_not_hide_other_mistakes(refusal: Refuse) -> None:
    assert refusal("name: a b\nname: c d" + REST).count("\n") == 1


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path / "absent.yaml")
    path = tmp_path / "absent.yaml"
    assert str(caught.value) == f"{path}: expected a hosts file that can be read, found no such file or directory"


def refused(path: Path) -> str:
    """What is said of a file, without where it is; refused within a second of this process's time."""
    began = time.process_time()
    with pytest.raises(SpecError) as caught:
        load(path)
    assert time.process_time() - began < 1
    return str(caught.value).replace(str(path.parent) + "/", "")


def test_a_name_that_is_not_quite_right_is_answered_with_the_right_one(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").touch()
    assert refused(tmp_path / "hosts.yaml").endswith("found no such file or directory — did you mean hosts.yml?")


def test_a_folder_is_no_hosts_file_and_the_one_in_it_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "train"
    folder.mkdir()
    assert refused(folder) == "train: expected a hosts file, found a folder — name a file in it"
    for name in ("a.yaml", "hosts.yaml"):
        (folder / name).touch()
    assert refused(folder) == "train: expected a hosts file, found a folder — did you mean train/hosts.yaml?"


def test_what_would_be_read_for_ever_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(str(tmp_path / "pipe"))
    (tmp_path / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
    for name, kind in (("pipe", "a pipe"), ("zero", "a device"), ("socket", "a socket")):
        assert refused(tmp_path / name) == f"{name}: expected a hosts file, found {kind} — write it to a file"


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").symlink_to("/proc/self/mem")  # also root reads nothing at its beginning
    assert refused(tmp_path / "hosts.yaml").startswith("hosts.yaml: expected a hosts file that can be read, found ")


def test_a_file_of_another_user_is_named_with_how_to_look_at_its_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr("cluster.spec.reading.os.stat", refuse)
    with pytest.raises(SpecError) as caught:
        reading.text_of(Path("my hosts.yaml"))
    found = (
        "my hosts.yaml: expected a hosts file that can be read, found permission denied — see `ls -l 'my hosts.yaml'`"
    )
    assert str(caught.value) == found


def test_a_file_that_is_too_large_is_refused_before_it_is_read_as_yaml(tmp_path: Path) -> None:
    with open(str(tmp_path / "hosts.yaml"), "wb") as file:
        file.truncate(1 << 40)
    expected = 'hosts.yaml: expected a hosts file of at most 2 MiB, found a larger one — write ranges: "gpu[01-64]"'
    assert refused(tmp_path / "hosts.yaml") == expected


LAUGHS = "".join(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 12))
LAUGHS_OF_KEYS = "".join(
    f"a{level}: &a{level} {{{', '.join(f'k{key}: *a{level - 1}' for key in range(9))}}}\n" for level in range(1, 12)
)
MERGED = "".join(f"a{level}: &a{level}\n  <<: [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 12))


@pytest.mark.parametrize(
    ("bomb", "line"), [("a0: &a0 ha\n" + LAUGHS, 7), ("a0: &a0 ha\n" + LAUGHS_OF_KEYS, 7),
                       ("a0: &a0 {k: 1}\n" + MERGED, 13)],
    ids=["lists", "mappings", "merges"],
)  # fmt: skip
def test_a_few_lines_that_aliases_blow_up_are_refused_at_once(tmp_path: Path, bomb: str, line: int) -> None:
    (tmp_path / "hosts.yaml").write_text(bomb + REST)
    text = refused(tmp_path / "hosts.yaml")
    assert text.startswith(f"hosts.yaml:{line}:"), text
    expected = (
        "expected at most 300,000 values, found more, counting the values that aliases repeat — "
        "use fewer aliases and merges"
    )
    assert expected in text


def test_a_depth_that_only_aliases_reach_is_refused(tmp_path: Path) -> None:
    deeper = "".join(f"a{n}: &a{n} {'[' * 50}*a{n - 1}{']' * 50}\n" for n in range(1, 40))
    (tmp_path / "hosts.yaml").write_text("a0: &a0 1\n" + deeper + REST)
    assert refused(tmp_path / "hosts.yaml") == (
        "hosts.yaml:1:1: expected a hosts file, found lists or mappings nested too deeply"
    )


@pytest.mark.parametrize("override", ["args={a: &a [1], b: [*a, *a]}"])
def test_aliases_in_reasonable_numbers_work(tmp_path: Path, override: str) -> None:
    (tmp_path / "hosts.yaml").write_text("args: {x: &x [1, 2], y: [*x, *x]}" + REST)
    assert load(tmp_path / "hosts.yaml").args == {"x": [1, 2], "y": [[1, 2], [1, 2]]}
    assert load(tmp_path / "hosts.yaml", [override]).args == {"a": [1], "b": [[1], [1]]}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("True", True),
        ("~", None),
        ("", None),
        ("010", 10),
        ("0x10", 16),
        ("-3", -3),
        ("12:30", "12:30"),
        ("1e-3", 0.001),
        (".5", 0.5),
        ("1_000", "1_000"),
        (".inf", ".inf"),
        ("2026-01-02", "2026-01-02"),
        ("'1'", "1"),
    ],
)
def test_plain_texts_mean_what_yaml_1_2_says(tmp_path: Path, written: str, value: Any) -> None:
    (tmp_path / "hosts.yaml").write_text(f"args: {{x: {written}}}{REST}")
    found = load(tmp_path / "hosts.yaml").args["x"]
    assert found == value and type(found) is type(value)


def test_anchors_and_merges_work_and_mistakes_in_them_are_placed_where_they_are_written(refusal: Refuse) -> None:
    text = "job: d\ncluster:\n  ps: [&box {host: a, gpus: none}]\n  worker: [{<<: *box, gpus: 1}, {<<: *box, prot: 1}]"
    assert refusal(text).startswith("hosts.yaml:4:44: cluster.worker[1].prot: ")
    Path("hosts.yaml").write_text(text.replace(", prot: 1", ", host: b"))
    assert [(task.host, task.gpus) for task in load("hosts.yaml").tasks] == [("a", ()), ("a", (0,)), ("b", ())]


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_bytes(b"\xef\xbb\xbf" + REST.encode())
    assert load(tmp_path / "hosts.yaml").job == "d"


def test_files_of_broken_bytes_are_refused_in_one_line_each_or_read_and_never_with_a_traceback(tmp_path: Path) -> None:
    draw = random.Random(15)
    whole = (ROOT / "hosts.yaml").read_bytes() + LAUGHS.encode()
    pieces = [
        b"\0",
        b"\xff",
        b"[" * 40,
        b"{",
        b"&a ",
        b"*a",
        b"<<: ",
        b"- ",
        b"\t",
        b": ",
        b"'",
        b"|",
        b"!!python/x ",
        b"---",
    ]
    for _ in range(60):
        data = bytearray(whole[: draw.randrange(len(whole))])
        for _ in range(draw.randrange(1, 8)):
            at = draw.randrange(len(data) + 1)
            data[at : at + draw.randrange(4)] = draw.choice(pieces)
        (tmp_path / "hosts.yaml").write_bytes(bytes(data))
        began = time.process_time()
        with contextlib.suppress(SpecError):
            load(tmp_path / "hosts.yaml")
        assert time.process_time() - began < 1, bytes(data)
