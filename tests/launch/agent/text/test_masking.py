"""A secret that a task prints is not shown."""

from typing import List

import pytest

from launch.agent.text.masking import masked


@pytest.mark.parametrize(
    ("text", "secrets", "shown"),
    [
        ("login hunter22 failed, hunter22!", ["hunter22"], "login (secret) failed, (secret)!"),
        ("a key: MIIEv+AAAA", ["-----BEGIN-----\nMIIEv+AAAA\n"], "a key: (secret)"),  # line by line, as logs are
        ("long-and-longer", ["long-and", "long-and-longer"], "(secret)"),
        ("step 1 of 10", ["1", "10"], "step 1 of 10"),  # too short to be told from other text
        ("nothing", [], "nothing"),
    ],
)
def test_every_line_of_every_secret_is_replaced(text: str, secrets: List[str], shown: str) -> None:
    assert masked(text, secrets) == shown
