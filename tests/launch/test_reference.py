"""The reference is made of the code, and says what is so."""

import inspect
import re
import subprocess
from pathlib import Path
from typing import Iterator, Tuple

import click
import pytest

from cluster.protocol.command_template import PLACEHOLDERS
from cluster.spec.schema import keys
from launch import errors
from launch.agent.tasks.task_env import ENVIRONMENT
from launch.cli import VERBS, cli, verbs
from launch.errors import EXIT_CODES
from tests.reference import ANSWERS, text
from tests.support.launch.launcher import Launcher
from tests.support.waiting import PATIENCE_S
from tests.test_architecture import DESCRIPTION, GUESSED

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference.md"
TEXT = text()


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text() == TEXT, "run `make docs`, and commit docs/reference.md"


def flags() -> Iterator[Tuple[str, str]]:
    """Every (verb, flag) of the command line."""
    for name, verb in verbs().items():
        yield from ((name, flag) for each in verb.params if isinstance(each, click.Option) for flag in each.opts)


@pytest.mark.parametrize(("verb", "flag"), list(flags()))
def test_every_flag_of_every_verb_is_told_with_what_it_does(verb: str, flag: str) -> None:
    common, _, rest = TEXT.partition("\n### launch ")
    section = re.search(rf"^(?:.*\n)*?### launch {verb}\n((?:(?!### |## ).*\n)*)", "### launch " + rest, re.MULTILINE)
    assert section is not None, f"the reference has no section launch {verb}"
    row = re.search(rf"^\| `[^`]*{flag}\b[^`]*` \|.*\| (.*) \|$", section.group(1) + common, re.MULTILINE)
    assert row is not None and row.group(1), f"launch {verb} {flag} has no row with a meaning"


def test_every_key_field_and_variable_has_a_row_with_a_meaning() -> None:
    told = set(re.findall(r"^\| `(.+?)` \|(?:.*\|)? \S.* \|$", TEXT, re.MULTILINE))
    fields = [path for answer in ANSWERS.values() for path in answer]
    assert [name for name in [*keys(), *fields, *ENVIRONMENT] if name not in told] == []


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_explains_itself_with_an_example(verb: str) -> None:
    command = verbs()[verb]
    shown = command.get_help(click.Context(command, info_name=f"launch {verb}", **cli.context_settings))
    assert f"Example:  launch {verb} " in shown, f"launch {verb} -h has no example"
    assert all(each.help for each in command.params if isinstance(each, click.Option))


def test_the_summary_of_every_verb_is_the_beginning_of_its_help() -> None:
    for name, verb in verbs().items():
        assert VERBS[name] == inspect.cleandoc(verb.help or "").split("\n\n")[0]


def test_every_meaning_is_a_whole_text() -> None:
    meanings = [each for fields in ANSWERS.values() for each in fields.values()]
    meanings += [*EXIT_CODES.values(), *ENVIRONMENT.values(), *PLACEHOLDERS.values()]
    assert [each for each in meanings if not DESCRIPTION.fullmatch(each) or GUESSED.search(each)] == []


def test_every_exit_code_that_an_error_has_is_told() -> None:
    named = {str(value) for name, value in vars(errors).items() if name.isupper() and isinstance(value, int)}
    assert named | {"128+n"} == set(EXIT_CODES)
    for code, meaning in EXIT_CODES.items():
        assert f"\n| {code} | {meaning} |\n" in TEXT


@pytest.mark.not_fast
def test_what_a_task_finds_in_its_environment_is_what_is_told(launch: Launcher) -> None:
    launch.write(command=["sh", "-c", "env | cut -d= -f1"])
    ran = launch("up", HTTP_PROXY="http://proxy", grpc_proxy="http://proxy")
    assert ran.returncode == 0, ran.stderr
    found = set(launch.log("worker:0").split())
    told = {name for names in ENVIRONMENT for name in names.split(", ")}
    proxies = {name for name in told if name.endswith("_proxy")}
    assert found & {*proxies, *(name.upper() for name in proxies)} == set()
    elsewhere = {"PYTHONPATH", "GLIBC_TUNABLES", "LAUNCH_CONTAINER"}  # of a job, of a container
    assert told - proxies - found == elsewhere - found
    inherited = subprocess.run(["env"], stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=True).stdout
    ours = set(re.findall(r"^(\w+)=", inherited, re.MULTILINE))  # more than os.environ has: readline adds to it in C
    assert found - told - ours <= {"PWD", "SHLVL", "_", "OLDPWD"}, "the shell's own"
