"""A secret that makes no URL is refused before a run starts, without a part of it in the message."""

from typing import Dict, List

import pytest

from cluster.protocol.settings import Hook
from launch.errors import CannotStart
from launch.run.draft import refuse_unusable
from tests.support.launch.fakes import spec_of

URL = (
    "this machine: on.failed: expected a URL of printable ASCII characters that begins with https:// or http://, found"
)


def refused(hook: Hook, **secrets: str) -> List[str]:
    try:
        refuse_unusable(spec_of("worker:0@a", hooks=(hook, hook)), secrets)
    except CannotStart as error:
        return str(error).splitlines()
    return []


@pytest.mark.parametrize("url", ["https://h", "http://h:80/a?b=c", "https://[fd00::1]:443/", "https://me:pass@h/%20"])
def test_urls_are_accepted(url: str) -> None:
    assert refused(Hook("failed", url="{U}"), U=url) == []
    assert refused(Hook("failed", url=url)) == []


@pytest.mark.parametrize("value", ["", "h.example.com/hunter2", "ftp://hunter2", "https://", "https://h/hun\nter2"])
def test_a_value_that_is_no_url_is_refused_once_by_the_name_of_its_secret(value: str) -> None:
    assert refused(Hook("failed", url="{U}"), U=value) == [f"{URL} another value of U; export it again"]


@pytest.mark.parametrize(("text", "values"), [("{A}{B}", {"A": "x\n", "B": "y"}), ("Bearer {A}", {"A": "\u00e9"})])
def test_a_value_that_makes_no_header_is_refused(text: str, values: Dict[str, str]) -> None:
    (line,) = refused(Hook("failed", url="https://h", headers={"X": text}), **values)
    assert line.startswith("this machine: on.failed: header X: expected printable ASCII characters, found another ")


def test_a_command_is_not_looked_at() -> None:
    assert refused(Hook("failed", ("page", "\n"))) == []
