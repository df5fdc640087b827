"""The group of all verbs: it loads none before one is called, and knows what was meant."""

import json
import subprocess
import sys
from typing import List

import click
import pytest
from click.testing import CliRunner

from launch.cli import HELP, VERBS, cli, load, main, module_of
from tests.support import ROOT

TAB = """
import json, sys
from click.shell_completion import ShellComplete
from launch.cli import cli
ShellComplete(cli, {}, "launch", "_LAUNCH_COMPLETE").get_completions([sys.argv[1]], "--")
shown = ("launch.verbs.", "rich", "jsonschema", "prometheus_client")
print(json.dumps(sorted(name for name in sys.modules if name.startswith(shown))))
"""
LOADED = """
import json, sys
from launch.cli import cli
try:
    cli.main(args=json.loads(sys.argv[1]), prog_name="launch", standalone_mode=False)
finally:
    shown = ("launch.verbs.", "rich", "jsonschema", "prometheus_client")
    print(json.dumps(sorted(name for name in sys.modules if name.startswith(shown))))
"""


def loaded(*arguments: str) -> List[str]:
    """The modules of verbs, and the large libraries, that a command has loaded at its end."""
    ran = subprocess.run([sys.executable, "-c", LOADED, json.dumps(arguments)], cwd=str(ROOT), stdout=subprocess.PIPE)
    names: List[str] = json.loads(ran.stdout.splitlines()[-1].decode())
    return names


def test_help_loads_no_verb() -> None:
    assert loaded("-h") == ["launch.verbs.completion"]


def test_the_page_of_a_run_needs_no_client_of_prometheus() -> None:
    names = loaded("view", "-h")
    assert "launch.verbs.page" in names and "prometheus_client" not in names


def test_a_verb_loads_itself_alone() -> None:
    names = loaded("completion", "zsh")
    assert "launch.verbs.completion" in names and not {"launch.verbs.up", "launch.verbs.status"} & set(names)


def test_a_verb_is_loaded_before_ctrl_c_is_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    order: List[str] = []

    def load(name: str) -> click.Command:
        order.append(name)
        return click.Command(name)

    monkeypatch.setattr("launch.cli.load", load)
    with pytest.raises(SystemExit):
        main(["plan"], loaded=lambda verb: order.append(f"loaded {verb}"))
    assert order[-1] == "loaded plan" and "plan" in order


def test_a_verb_that_the_tab_key_completes_loads_no_schema_library() -> None:
    assert not [name for name in loaded("up", "-h") if name.startswith("jsonschema")]


@pytest.mark.parametrize("name", sorted(VERBS))
def test_the_tab_key_behind_a_verb_loads_nothing_that_draws(name: str) -> None:
    ran = subprocess.run([sys.executable, "-c", TAB, name], cwd=str(ROOT), stdout=subprocess.PIPE)
    names = json.loads(ran.stdout.decode())
    assert module_of(name) in names
    assert not [each for each in names if each.split(".")[0] in ("rich", "jsonschema", "prometheus_client")]


@pytest.mark.parametrize(
    ("name", "module"),
    [("up", "rich.live"), ("plan", "rich.table"), ("setup", "rich.live"), ("metrics", "prometheus_client")],
)
def test_what_a_verb_needs_is_loaded_with_the_verb(name: str, module: str) -> None:
    assert module in loaded(name, "-h")


@pytest.mark.parametrize("name", sorted(VERBS))
def test_every_verb_has_its_own_name(name: str) -> None:
    assert load(name).name == name


@pytest.mark.parametrize(
    ("typed", "advice"),
    [("stauts", "did you mean status?"), ("upp", "did you mean up?"), ("dwon", "did you mean down?"),
     ("zebra", "see `launch -h`"), ("start", "did you mean up?"), ("stop", "did you mean down?"),
     ("ls", "did you mean runs?"), ("my.yml", "type `launch up my.yml`"),
     ("t.py", "type `launch up` with a hosts file that names t.py, or `launch run -H localhost -- python t.py`")],
)  # fmt: skip
def test_a_misspelt_verb_is_refused_with_the_one_that_was_meant(typed: str, advice: str) -> None:
    ran = CliRunner().invoke(cli, [typed, "hosts.yaml"], prog_name="launch")
    assert ran.exit_code == 2
    assert f"expected a verb, found '{typed}'; {advice}" in ran.output


def test_a_hosts_file_in_the_verbs_place_is_answered_with_the_command_that_was_meant() -> None:
    ran = CliRunner().invoke(cli, ["hosts.yaml", "down"], prog_name="launch")
    assert "expected a verb, found 'hosts.yaml'; type `launch down hosts.yaml`" in ran.output


def test_the_help_is_whole_in_a_small_terminal_and_names_every_verb() -> None:
    lines = CliRunner().invoke(cli, ["-h"], prog_name="launch").output.splitlines()
    assert lines == HELP.splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) <= 24 - 2  # with the command, and the next prompt
    words = set(HELP.replace(",", " ").replace("(", " ").replace(")", " ").split())
    assert {word for verb in VERBS for word in verb.split()} <= words
