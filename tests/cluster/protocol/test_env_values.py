"""Values of ``env:`` name variables as an assignment in a shell does; nothing stays literal in silence."""

import os
import random
import subprocess
from typing import Dict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.protocol.env_values import (
    LONGEST,
    expanded,
    has_home,
    literal,
    names_in,
    on_this_host,
    text_of,
    unknown,
    with_names,
    word_with_home,
)

HOST = {"LD_LIBRARY_PATH": "/usr/lib", "USER": "anna", "A": "of the host"}


def of(**values: str) -> Dict[str, str]:
    return expanded(values, lambda name: HOST.get(name, ""), {"~": "/home/anna", "~tom": "/home/tom"}.__getitem__)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("/opt/x:$LD_LIBRARY_PATH", "/opt/x:/usr/lib"),
        ("${LD_LIBRARY_PATH}64", "/usr/lib64"),
        ("/scratch/$USER/$UNSET/x", "/scratch/anna//x"),
        ("costs $$5, $$USER, $$$$", "costs $5, $USER, $$"),
        ("~/data", "/home/anna/data"),
        ("/x:~/lib:~/y", "/x:/home/anna/lib:/home/anna/y"),
        ("a~/b ~", "a~/b ~"),
        ("~", "/home/anna"),
        ("~:/x:~", "/home/anna:/x:/home/anna"),
        ("~tom/x:~tom:~", "/home/tom/x:/home/tom:/home/anna"),
        ("$~/x:$~tom:a$~", "~/x:~tom:a~"),
        ("a~tom/x ~tom", "a~tom/x ~tom"),
        ("$USER-1.5", "anna-1.5"),
        ("plain", "plain"),
    ],
)
def test_a_value_is_read_as_in_an_assignment_of_a_shell(value: str, told: str) -> None:
    assert of(X=value) == {"X": told}


def test_a_variable_that_names_itself_means_the_hosts() -> None:
    assert of(A="new $A") == {"A": "new of the host"}


def test_names_mean_the_other_variables_first_whatever_their_order() -> None:
    assert of(X="$B/x", B="$A/b", A="/a") == {"X": "/a/b/x", "B": "/a/b", "A": "/a"}


def test_what_a_name_stands_for_is_not_read_again() -> None:
    assert expanded({"X": "$SHELL_CODE"}, lambda name: "$(rm) $HOME ~/", str) == {"X": "$(rm) $HOME ~/"}
    assert expanded({"X": "~/a:$B"}, lambda name: "b", lambda _: "/h/$B$$") == {"X": "/h/$B$$/a:b"}


def test_a_value_that_linux_would_refuse_is_not_made() -> None:
    laughs = {f"L{number}": f"$L{number - 1}" * 100 for number in range(1, 9)}
    with pytest.raises(OSError, match="Argument list too long"):
        of(**laughs, L0="ha")
    assert len(of(X="x" * LONGEST)["X"]) == LONGEST


@pytest.mark.parametrize(
    ("value", "piece"),
    [
        ("$5 each", "$5 each"), ("a$", "$"), ("$(date)", "$(date)"), ("${X:-y}", "${X:-y}"), ("${}", "${}"),
        ("$$$", "$"), ("$A$-$B", "$-$B"), ("$$(x)", None), ("$A ${B_1} $$", None), ("", None), ("~/$A", None),
    ],
)  # fmt: skip
def test_a_dollar_sign_without_a_meaning_is_found(value: str, piece: str) -> None:
    assert unknown(value) == piece


def test_names_are_those_of_variables() -> None:
    assert names_in("$A ${B}c $$D $E_1-") == ["A", "B", "E_1"]


@given(st.text(alphabet="$~{}()AB/:. 5", max_size=12))
def test_any_text_can_be_written(text: str) -> None:
    value = literal(text)
    assert of(X=value) == {"X": text} == {"X": text_of(value)}
    assert unknown(value) is None and not has_home(value) and not names_in(value)
    assert of(X=str(with_names({"Y": value, "X": "$Y"}, "X"))) == {"X": text}


def test_the_launcher_itself_fills_in_what_no_host_needs_for() -> None:
    values = {"PATH": "$TOOLS/bin:$PATH:$$:~/bin", "TOOLS": "/opt"}
    assert with_names(values, "PATH") == "/opt/bin:${PATH}:$$:~/bin"
    assert with_names(values, "NONE") is None


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("~/x", "{}/x"), ("--data=~/x", "{}/x"), ("-d=~/x", "{}/x"), ("a~/x", "a~/x"), ("--a=b:~/x", "--a=b:~/x"),
        ("~", "~"), ("x=~/y", "x=~/y"),
    ],
)  # fmt: skip
def test_a_word_of_a_command_may_begin_with_the_home_folder(word: str, told: str) -> None:
    flag = word.split("=")[0] + "=" if word.startswith("-") and "{}" in told else ""
    assert word_with_home(word) == flag + told.format(os.path.expanduser("~"))


@pytest.mark.not_fast
def test_a_value_means_what_it_means_in_an_assignment_of_a_shell() -> None:
    pieces = [
        "$A",
        "${B}",
        "$UNSET",
        "~",
        "~/x",
        "x~/",
        "~root",
        "~root/x",
        "~nobody-here/x",
        ":",
        "/y",
        "a",
        "${A}5",
        "$A5",
        "=~/k",
        ".",
    ]
    choose = random.Random(5)
    values = ["".join(choose.choice(pieces) for _ in range(choose.randint(1, 5))) for _ in range(300)]
    variables = {"A": "/opt/a b", "B": "~/q:$C", "HOME": os.path.expanduser("~")}
    script = "".join(f"X={value}; printf '%s\\n' \"$X\"\n" for value in values)
    of_shell = subprocess.check_output(["sh", "-c", script], env=variables, universal_newlines=True).splitlines()
    assert [on_this_host({"X": value}, variables)["X"] for value in values] == of_shell
