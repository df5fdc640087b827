"""Every command that a page prints is parsed by what it calls, and one of each quick verb that needs no cluster is run.

The commands are read from the pages: a new one fails here until its program, verb and options exist.
"""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Set

import click
import pytest

from cluster.spec.schema import keys
from launch.cli import VERBS, cli, load
from tests.support import ROOT
from tests.support.waiting import PATIENCE_S

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MAKEFILE = (ROOT / "Makefile").read_text()
BETWEEN = {"&&", "||", "|", ";", "do", "while", "done"}  # one command and the next

# Pages whose blocks another test runs as a whole, with what they print.
REFERENCE = "docs/reference.md"
UP = "launch up hosts.yaml"  # of all hosts, since later lines look for each
REPLAYED = {
    "README.md": "tests/test_docs.py::test_the_lines_of_the_readme_work_as_printed",
    "docs/tutorial.md": "tests/test_tutorial.py::test_every_command_prints_what_the_page_shows",
    "docs/grid.md": "tests/test_tutorial.py::test_eight_commands_lead_from_an_empty_folder_to_the_best_of_a_grid",
    "docs/plan.md": "tests/test_docs.py::test_the_plan_of_the_docs_is_what_is_printed",
    "docs/embeddings.md": "tests/test_recommend_page.py::test_every_block_works_and_the_served_model_predicts",
    "docs/from-the-textbook.md": "tests/test_from_the_textbook.py::test_three_functions_find_the_same_line",
}
NOT_RUN = {
    "setup": "builds an environment on every host, from the package index",
    "grid": "trains; tests/launch/end_to_end has it",
    "verify": "trains; tests/launch/end_to_end has it",
    "board": "serves until Ctrl-C",
    "metrics": "serves until Ctrl-C",
    "view": "serves until Ctrl-C",
    "export": "needs a run of a job with predict",
    "restart": "needs a run that lives",
    "drain": "needs an elastic run that lives",
}
ELSEWHERE = {
    ".": "the shell's own",
    "exit": "the shell's own",
    "export": "the shell's own",
    "bash": "CI's steps, as root",
    "podman": "needs a container runtime",
    "jq": "another project's",
    "cp": "the system's",
    "sleep": "the system's",
    "pip": "tests/test_wheel.py builds and installs the wheel",
    "~/launch-env/bin/pip": "tests/test_wheel.py builds and installs the wheel",
    "tests/fresh.sh": "tests/test_fresh.py runs it, as root",
}


class Printed(NamedTuple):
    page: str
    line: str
    whole: bool  # a line of a block, not a name in a sentence

    def __str__(self) -> str:
        return f"{self.page}: {self.line}"


def printed() -> Iterator[Printed]:
    for path in PAGES:
        page, text = str(path.relative_to(ROOT)), path.read_text()
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            lines = block.splitlines() if language == "sh" else re.findall(r"^\$ (.*)", block, re.MULTILINE)
            yield from (Printed(page, line, True) for line in lines if shlex.split(line, comments=True))
        sentences = re.sub(r"^ *```.*?^ *```\n", "", text, flags=re.MULTILINE | re.DOTALL)
        for quoted in dict.fromkeys(re.findall(r"`([^`\n]+)`", sentences)):
            if re.match(r"(?:launch|make|pip|bash|sudo|tests/fresh\.sh|python[\d.]* -[mc]) \S", quoted):
                yield Printed(page, quoted, False)


KEYS = set(keys())
PRINTED = list(printed())


def commands(line: str) -> List[List[str]]:
    """The commands of a line, each as its words without ``sudo``, variables before it, and a file after ``>``."""
    found: List[List[str]] = [[]]
    words = iter(shlex.split(line.replace("; ", " ; "), comments=True))
    for word in words:
        if word in BETWEEN:
            found.append([])
        elif word in (">", ">>"):
            next(words)
        elif found[-1] or not (word in ("sudo", "!") or re.match(r"[A-Z_0-9]+=", word)):
            found[-1].append(word)
    return [command for command in found if command]


@pytest.mark.parametrize("case", PRINTED, ids=str)
def test_a_printed_command_is_known_to_what_it_calls(case: Printed) -> None:
    for program, *words in commands(case.line):
        if program == "launch":
            parse_launch(words, case.whole)
        elif program == "make":
            parse_make(words)
        elif re.fullmatch(r"python[\d.]*", program):
            parse_python(words)
        else:
            assert program in ELSEWHERE, f"expected launch, make, python or a key of ELSEWHERE, found {program}"


def parse_launch(words: List[str], whole: bool) -> None:
    """Fail, where the command line would not take these words."""
    if words[0] in ("-h", "--version"):
        return
    name = next(name for name in (" ".join(words[:2]), words[0]) if name in VERBS)
    verb = load(name)
    args = [word for word in words[len(name.split()) :] if word != "[OPTIONS]"]
    parser = verb.make_parser(click.Context(verb, info_name=verb.name, **cli.context_settings))
    try:
        values, rest, _ = parser.parse_args(list(args))
    except click.BadOptionUsage:
        assert not whole, "expected a value of the last option"
        values, rest, _ = parser.parse_args([*args, "VALUE"])  # a sentence may name an option without its value
    arguments = {str(each.name) for each in verb.params if isinstance(each, click.Argument) and each.required}
    assert not rest and (not whole or all(values.get(name) for name in arguments)), (values, rest)
    for override in values.get("overrides") or ():
        assert override.partition("=")[0] in KEYS, override


def parse_make(words: List[str]) -> None:
    targets = [word for word in words if "=" not in word]
    variables = dict(word.split("=", 1) for word in words if "=" in word)
    assert targets and all(re.search(rf"^{target}:", MAKEFILE, re.MULTILINE) for target in targets)
    assert all(f"$({name})" in MAKEFILE or f",{name}" in MAKEFILE for name in variables)
    recipe = re.search(rf"^{targets[0]}:.*\n((?:\t.*\n|if.*\n|else\n|endif\n)*)", MAKEFILE, re.MULTILINE)
    modules = re.findall(r"-m (tests[\w.]*)", recipe.group(1)) if recipe else []
    wanted = {word for word in shlex.split(variables.get("ARGS", "")) if word.startswith("--")}
    assert not modules or wanted <= options(modules)


def parse_python(words: List[str]) -> None:
    if words[0] == "-c":
        compile(words[1], "a page", "exec")
    elif words[0] == "-m":
        own = words[1].split(".")[0] in ("tests", "cluster", "jobs", "launch")
        # To look for pip in the usual way has setuptools replace distutils, and warn where another test has loaded it.
        found = importlib.util.find_spec(words[1]) if own else PathFinder.find_spec(words[1])
        assert found is not None, words[1]
        ours = words[: words.index("--")] if "--" in words else words
        assert not own or {word for word in ours if word.startswith("--")} <= options([words[1]])


def options(modules: List[str]) -> Set[str]:
    """The options that the source of these modules, or of their packages, names."""
    paths = [ROOT / module.replace(".", "/") for module in modules]
    files = [file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")])]
    return set(re.findall(r"\"(--[\w-]+)\"", "".join(file.read_text() for file in files)))


def test_the_tests_that_replay_pages_exist_and_no_reason_is_left_over() -> None:
    for page, test in REPLAYED.items():
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text() and (ROOT / page).exists()
    programs = {command[0] for case in PRINTED for command in commands(case.line)}
    assert len(PRINTED) > 200 and set(ELSEWHERE) <= programs and set(NOT_RUN) <= set(VERBS)


HOSTS = """name: digits
command: ["{python}", "-c", "import sys, time; print('begun'); time.sleep(1000 * (sys.argv[1] == 'ps'))", "{role}"]
cluster: {ps: [cpu01], worker: [{host: "gpu[01-02]", gpus: none}]}  # those of the lines
"""
TFJOB = """apiVersion: kubeflow.org/v1
kind: TFJob
spec:
  tfReplicaSpecs:
    Worker: {template: {spec: {containers: [{name: tensorflow, command: ["true"]}]}}}
"""
HOSTFILE = "gpu01 slots=4\ngpu02 slots=4\n"
FILES = {"hosts.yaml": HOSTS, "train.yaml": HOSTS, "hostfile": HOSTFILE, "tfjob.yaml": TFJOB, "train.py": ""}
# The launcher of this checkout, as on one machine: what takes a hosts file takes --local.
PROGRAM = f"""#!/bin/sh
case $1 in up | check | plan) set -- "$@" --local ;; run) shift; set -- run --local "$@" ;; esac
PYTHONPATH={ROOT} exec {sys.executable} -m launch "$@"
"""


def is_run(case: Printed) -> bool:
    verbs = {words[0] for program, *words in commands(case.line) if program == "launch"}
    trains = (
        "--set train." in case.line or "houses/" in case.line or bool(re.search("--(slurm|pbs|sge|lsf)", case.line))
    )
    only = all(command[0] == "launch" for command in commands(case.line))
    return case.whole and case.page not in REPLAYED and only and not trains and not verbs & set(NOT_RUN)


def verb_of(line: str) -> str:
    """The first verb of a line, whose words may be two."""
    (_, *words), *_ = commands(line)
    return next(name for name in (" ".join(words[:2]), *words[:1]) if name in VERBS or name.startswith("-"))


def chosen() -> List[str]:
    """A line for each verb, that of the reference first, which has them in an order that works."""
    lines: Dict[str, str] = {"up": UP}
    for case in sorted(filter(is_run, PRINTED), key=lambda each: each.page != REFERENCE):
        lines.setdefault(verb_of(case.line), case.line)
    return list(lines.values())


@pytest.fixture
def user(tmp_path: Path) -> Dict[str, str]:
    """The environment of a user with some files in their folder."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "launch").write_text(PROGRAM)
    (tmp_path / "bin" / "launch").chmod(0o755)
    (tmp_path / ".config/fish/completions").mkdir(parents=True)
    env = {
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path}/bin:{Path(sys.executable).parent}:{os.defpath}",
        "LANG": "C.UTF-8",
    }
    return env


def run(line: str, env: Dict[str, str]) -> str:
    """What a line prints, after its end with 0."""
    ran = subprocess.run(
        ["sh", "-c", line], cwd=env["HOME"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert ran.returncode == 0, (line, ran.stdout)
    return ran.stdout


def test_a_printed_line_of_each_verb_runs(user: Dict[str, str]) -> None:
    lines = chosen()
    assert {verb_of(line) for line in lines} | set(NOT_RUN) >= set(VERBS) and UP in {case.line for case in PRINTED}
    for line in lines:
        run(line, user)
