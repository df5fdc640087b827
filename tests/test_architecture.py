"""The arrows between the rooms, and the house rules that a machine can see, hold for every file of the tree.

A rule is a function of one parsed file; it returns what breaks it. The first test reads the tree, the
second shows for each rule a line that breaks it.
"""

import ast
import importlib.util
import os
import re
import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Tuple

import pytest

from tests.support import ROOT, sources

ROOMS = ("cluster", "launch", "jobs", "tests")
TENSORFLOW_FREE = (
    "cluster",
    "cluster.errors",
    "cluster.protocol",
    "cluster.spec",
    "cluster.task",
)
# The rooms of a package, floor by floor: each imports only from lower floors, and from modules that lie in no room.
FLOORS = {
    "cluster": (
        ("protocol",),
        ("spec", "runtime"),
        ("sharing", "variables"),
        ("updates", "checkpoints", "scoring"),
        ("model",),
        ("steps",),
        ("trace", "verify"),
        ("training",),
        ("recommend",),
        ("serving",),
    ),
    "cluster.recommend": (("tables",), ("once", "serving")),
    "launch": (
        ("status",),
        ("agent",),
        ("hosts", "view", "timeline"),
        ("openssh",),
        ("remote", "hostfile", "environments", "history", "page", "curve"),
        ("plan", "logs", "monitoring", "teardown", "slurm", "tfjob"),
        ("check", "run"),
        ("diagnosis", "grid"),
        ("verbs",),
    ),
    "launch.agent": (
        ("linux", "text", "wire"),
        ("gpus", "network"),
        ("state",),
        ("protocol",),
        ("endings",),
        ("containers",),
        ("limits",),
        ("leftovers",),
        ("supervision", "tasks", "checkpoints", "environments", "hooks"),
        ("facts", "retention", "after", "notice"),
        ("service", "verbs"),
        ("diagnosis",),
    ),
}
SSH = ("fabric", "paramiko", "invoke")
VAGUE = {"util", "utils", "common", "helper", "helpers", "manager", "v2"}
RELATIVE = re.compile(r"(?:What|Which|Whose|Who|Of|How|Whether|When|Where|That|Why)\b")  # "Whether it is done."
# Words that say less than the technical one (report, send, log, receive, again). Code and names of arguments are free.
OBLIQUE = re.compile(
    r"\b(?:tells?|told|telling|hears?|heard|heeds?|anew|of late|lays? down|laid down|come of|lets? go on|whoever"
    r"|for want of|says?|said|saying)\b"
)
# The same in messages, with words that leave the reader to guess who does what.
GUESSED = re.compile(OBLIQUE.pattern + r"|\b(?:nobody|what would)\b", re.IGNORECASE)
SENTENCE = re.compile(r"[\w.,;:)}] +[\w({]")  # two words with a space: a text for a person, not a key or an option
DESCRIPTION = re.compile(rf"(?!{RELATIVE.pattern})[A-Z1`].*\.")  # "Newest step; null before the first."
# The place of the argument that describes.
DESCRIBE = {"Value": 1, "_metric": 1}
CODE = re.compile(r"``[^`]*``|^ *[\w, ]+:", re.MULTILINE)
ELSEWHERE = re.compile(r"(?<![\w./~-])(?:/work|shared)/\w")  # folders beside a checkout, which a reader does not have


class Source(sources.Source):
    """A module with what it has to read for people."""

    def docstrings(self) -> Iterator[Tuple[int, str]]:
        """Each with its line; those of tests are not held to the rules of the product's."""
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = [] if within(self.module, "tests") else list(ast.walk(self.tree))
        for node in nodes:
            if isinstance(node, documented) and node.body:
                yield node.body[0].lineno, ast.get_docstring(node) or ""

    def messages(self) -> Iterator[Tuple[int, str]]:
        """Return each text of several words but docstrings, with its line and with {} for what it inserts."""
        nodes = [] if within(self.module, "tests") else list(ast.walk(self.tree))
        skipped = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # docstrings
        skipped |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in nodes:
            text = literal(node)
            if text is not None and id(node) not in skipped and SENTENCE.search(text):
                yield node.lineno, text

    def descriptions(self) -> Iterator[Tuple[int, str]]:
        """Return the texts that describe a metric or an option, with their lines."""
        nodes = [] if within(self.module, "tests") else list(ast.walk(self.tree))
        for call in (node for node in nodes if isinstance(node, ast.Call)):
            place = DESCRIBE.get(getattr(call.func, "id", ""), len(call.args))
            given = [*call.args[place : place + 1], *(each.value for each in call.keywords if each.arg == "help")]
            for node in given:
                text = literal(node)
                if text is not None:
                    yield node.lineno, text


def literal(node: ast.AST) -> Optional[str]:
    """Return the text of a literal, with {} for what an f-string inserts; None for any other node."""
    if isinstance(node, ast.JoinedStr):
        return "".join(literal(part) or "{}" for part in node.values)
    fields = dict(ast.iter_fields(node))  # a literal is an ast.Str on Python 3.7, and later an ast.Constant
    text = fields.get("value", fields.get("s"))
    return text if isinstance(text, str) else None


def within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)


def tensorflow_free(module: str) -> bool:
    """Whether the module, or the name imported from it, lies in the part of ``cluster`` without TensorFlow."""
    return module == "cluster" or within(module, *TENSORFLOW_FREE[1:])


def on_a_host(source: Source) -> bool:
    """Whether hosts run this file, where only Python, TensorFlow and numpy are to be expected."""
    module = source.module
    return (
        within(module, "cluster", "jobs", "launch.agent", "launch.status") and not within(module, "cluster.spec")
    ) or module == "launch"


@lru_cache(maxsize=None)
def standard(top: str) -> bool:
    """Whether a top-level module comes with Python."""
    if top in ROOMS or top in sys.builtin_module_names:
        return top not in ROOMS
    spec = importlib.util.find_spec(top)
    origin = (spec and spec.origin) or ""
    if origin == "frozen":
        return True
    # Resolved: what Python loads as it starts is named by the path that Python was found by, which may have ".." in it.
    library, file = (os.path.realpath(path) for path in (sysconfig.get_paths()["stdlib"], origin))
    return file.startswith(library) and "site-packages" not in file


def forbidden(source: Source, applies: bool, bad: Callable[[str], bool], rule: str) -> List[str]:
    if not applies:
        return []
    return [f"{source.path}:{i.line}: imports {i.module}: {rule}" for i in source.imports() if bad(i.module)]


def cluster_knows_nothing_above_it(source: Source) -> List[str]:
    above = ("launch", "jobs", "tests")
    return forbidden(source, within(source.module, "cluster"), lambda m: within(m, *above), "cluster is below the rest")


def launch_knows_no_job(source: Source) -> List[str]:
    rule = "the launcher reaches jobs only as processes"
    return forbidden(source, within(source.module, "launch"), lambda m: within(m, "jobs", "tests"), rule)


def a_job_imports_what_lies_loose_in_cluster(source: Source) -> List[str]:
    rooms = tuple(f"cluster.{room}" for floor in FLOORS["cluster"] for room in floor)
    entries = ("jobs", "jobs.main", "jobs.describe", "jobs.export")
    applies = within(source.module, "jobs") and source.module not in entries
    return forbidden(source, applies, lambda m: within(m, *rooms), "a job may import only modules loose in cluster/")


def jobs_know_no_launcher(source: Source) -> List[str]:
    rule = "a job knows nothing of how it is launched"
    return forbidden(source, within(source.module, "jobs"), lambda m: within(m, "launch", "tests"), rule)


def launch_uses_the_tensorflow_free_part_of_cluster(source: Source) -> List[str]:
    rule = f"launch may use only {', '.join(TENSORFLOW_FREE)}"

    def bad(module: str) -> bool:
        return within(module, "cluster") and not tensorflow_free(module)

    return forbidden(source, within(source.module, "launch"), bad, rule)


def the_tensorflow_free_part_is_free_of_it(source: Source) -> List[str]:
    def bad(module: str) -> bool:
        return within(module, "tensorflow") or (within(module, "cluster") and not tensorflow_free(module))

    applies = within(source.module, "launch") or tensorflow_free(source.module)
    return forbidden(source, applies, bad, "launch and the part of cluster that it uses never load TensorFlow")


def only_remote_speaks_ssh(source: Source) -> List[str]:
    applies = not within(source.module, "launch.remote", "tests")
    return forbidden(source, applies, lambda m: within(m, *SSH), "only launch/remote/ imports Fabric and what it is of")


def hosts_need_only_python_tensorflow_and_numpy(source: Source) -> List[str]:
    allowed = {
        "launch": ("launch.agent", "launch.status", "cluster"),
        "cluster": ("cluster",),
        "jobs": ("jobs", "cluster"),
    }
    own = allowed.get(source.module.split(".")[0], ())
    if source.module == "launch.agent.verbs.board_curve":  # where TensorBoard runs
        own = (*own, "tensorboard")
    rule = "this file runs on hosts, which have Python, TensorFlow and numpy, and no cluster.spec"

    def bad(module: str) -> bool:
        known = within(module, "tensorflow", "numpy", *own) or standard(module.split(".")[0])
        return within(module, "cluster.spec") or not known

    return forbidden(source, on_a_host(source), bad, rule)


def errors_are_raised_not_asserted(source: Source) -> List[str]:
    if within(source.module, "tests"):
        return []
    lines = [node.lineno for node in ast.walk(source.tree) if isinstance(node, ast.Assert)]
    return [f"{source.path}:{line}: assert: outside tests an error is raised, with a text that helps" for line in lines]


def rooms_import_only_from_lower_floors(source: Source) -> List[str]:
    broken = []
    for house, floors in FLOORS.items():
        own = room(source.module, house)
        floor = next((number for number, rooms in enumerate(floors) if own in rooms), None)
        if floor is not None:
            higher = [f"{house}.{name}" for rooms in floors[floor:] for name in rooms if name != own]
            rule = f"{house}.{own} lies on floor {floor}, and imports only from those below"
            broken += forbidden(source, True, lambda m, higher=higher: within(m, *higher), rule)  # type: ignore[misc]
    return broken


def only_a_job_brings_extensions(source: Source) -> List[str]:
    extended = within(source.module, "cluster.recommend", "cluster.serving", "cluster.embedding", "cluster.shards")
    rule = "the core trains without tables and shards; give cluster.steps.extension a hook"

    def bad(module: str) -> bool:
        return within(module, "cluster.recommend", "cluster.embedding", "cluster.shards")

    return forbidden(source, within(source.module, "cluster") and not extended, bad, rule)


def room(module: str, house: str) -> str:
    """``steps`` of ``cluster.steps.exchange`` in cluster; "" of what lies in no room of the house."""
    return module[len(house) + 1 :].split(".")[0] if within(module, house) else ""


def docstrings_begin_with_a_verb_or_a_noun(source: Source) -> List[str]:
    rule = "begin with a verb, or with a noun"
    return [
        f"{source.path}:{line}: {text.splitlines()[0]!r}: {rule}"
        for line, text in source.docstrings()
        if RELATIVE.match(text)
    ]


def docstrings_use_the_technical_word(source: Source) -> List[str]:
    found = [(line, OBLIQUE.search(CODE.sub("", text))) for line, text in source.docstrings()]
    return [f"{source.path}:{line}: {word.group()!r}: use the technical word" for line, word in found if word]


def no_circle_is_hidden_by_type_checking(source: Source) -> List[str]:
    rule = "give the module the value that it needs, or move what both modules need below them"
    return forbidden(source, not within(source.module, "tests"), lambda m: m == "typing.TYPE_CHECKING", rule)


def messages_use_the_technical_word(source: Source) -> List[str]:
    found = [(line, GUESSED.search(text)) for line, text in source.messages()]
    return [f"{source.path}:{line}: {word.group()!r}: use the technical word" for line, word in found if word]


def descriptions_are_whole(source: Source) -> List[str]:
    rule = "begin with a capital and a noun or verb, end with a period"
    return [
        f"{source.path}:{line}: {text!r}: {rule}"
        for line, text in source.descriptions()
        if not DESCRIPTION.fullmatch(text)
    ]


def waits_in_one_way(source: Source) -> List[str]:
    if not re.match(r"tests/(.*/)?(test_\w+|conftest)\.py$", source.path):
        return []
    rule = "time.sleep: wait for an event with eventually(), or let_pass() where passing time is the claim"
    sleeps = (node for node in ast.walk(source.tree) if isinstance(node, ast.Attribute) and node.attr == "sleep")
    lines = [node.lineno for node in sleeps if isinstance(node.value, ast.Name) and node.value.id == "time"]
    lines += [found.line for found in source.imports() if found.module == "time.sleep"]
    return [f"{source.path}:{line}: {rule}" for line in lines]


def files_are_named_for_what_is_in_them(source: Source) -> List[str]:
    vague = VAGUE.intersection(re.split(r"[/_.]", source.path))
    return [f"{source.path}:1: the name says {word!r}: name the one concept in it" for word in sorted(vague)]


RULES: List[Callable[[Source], List[str]]] = [
    cluster_knows_nothing_above_it,
    launch_knows_no_job,
    jobs_know_no_launcher,
    a_job_imports_what_lies_loose_in_cluster,
    launch_uses_the_tensorflow_free_part_of_cluster,
    the_tensorflow_free_part_is_free_of_it,
    only_remote_speaks_ssh,
    hosts_need_only_python_tensorflow_and_numpy,
    rooms_import_only_from_lower_floors,
    only_a_job_brings_extensions,
    errors_are_raised_not_asserted,
    no_circle_is_hidden_by_type_checking,
    files_are_named_for_what_is_in_them,
    waits_in_one_way,
    docstrings_begin_with_a_verb_or_a_noun,
    docstrings_use_the_technical_word,
    messages_use_the_technical_word,
    descriptions_are_whole,
]

BROKEN: List[Tuple[Callable[[Source], List[str]], str, str]] = [
    (only_a_job_brings_extensions, "cluster/training/trainer.py", "from cluster import embedding"),
    (only_a_job_brings_extensions, "cluster/towers.py", "from cluster.recommend.tables import stores"),
    (cluster_knows_nothing_above_it, "cluster/runtime/server.py", "from launch import plan"),
    (cluster_knows_nothing_above_it, "cluster/runtime/server.py", "from jobs.main import main"),
    (launch_knows_no_job, "launch/plan/plan.py", "import jobs.digits"),
    (jobs_know_no_launcher, "jobs/main.py", "def f():\n    import launch.agent"),
    (a_job_imports_what_lies_loose_in_cluster, "jobs/digits.py", "from cluster.runtime.tf_compat import tf"),
    (launch_uses_the_tensorflow_free_part_of_cluster, "launch/plan/plan.py", "from cluster import placement"),
    (launch_uses_the_tensorflow_free_part_of_cluster, "launch/agent/state.py", "import cluster.towers"),
    (the_tensorflow_free_part_is_free_of_it, "launch/check.py", "import tensorflow.compat.v1 as tf"),
    (the_tensorflow_free_part_is_free_of_it, "cluster/spec/ranges.py", "from tensorflow import Graph"),
    (the_tensorflow_free_part_is_free_of_it, "cluster/task.py", "from .server import device"),
    (only_remote_speaks_ssh, "launch/hosts/bundle.py", "from paramiko import SSHClient"),
    (hosts_need_only_python_tensorflow_and_numpy, "cluster/runtime/server.py", "from cluster.spec import read"),
    (hosts_need_only_python_tensorflow_and_numpy, "launch/agent/loop.py", "import yaml"),
    (hosts_need_only_python_tensorflow_and_numpy, "launch/agent/loop.py", "import tensorboard"),
    (hosts_need_only_python_tensorflow_and_numpy, "launch/agent/loop.py", "from ..plan import plan"),
    (hosts_need_only_python_tensorflow_and_numpy, "launch/status/run.py", "from launch.view.console import of_bytes"),
    (hosts_need_only_python_tensorflow_and_numpy, "launch/__init__.py", "import click"),
    (hosts_need_only_python_tensorflow_and_numpy, "jobs/digits.py", "from sklearn import datasets"),
    (rooms_import_only_from_lower_floors, "cluster/runtime/server.py", "from cluster.steps import exchange"),
    (
        rooms_import_only_from_lower_floors,
        "cluster/variables/uses.py",
        "from cluster.sharing.variables import Sharing",
    ),
    (rooms_import_only_from_lower_floors, "launch/agent/state/runs.py", "from launch.agent.tasks import health"),
    (errors_are_raised_not_asserted, "launch/plan/plan.py", "assert True"),
    (no_circle_is_hidden_by_type_checking, "launch/agent/loop.py", "from typing import TYPE_CHECKING"),
    (files_are_named_for_what_is_in_them, "launch/ssh_utils.py", ""),
    (waits_in_one_way, "tests/launch/test_fleet.py", "import time\ntime.sleep(1)"),
    (waits_in_one_way, "tests/launch/conftest.py", "from time import sleep"),
    (docstrings_use_the_technical_word, "launch/ready.py", '"""Tell the lead, and start anew."""'),
    (messages_use_the_technical_word, "launch/ready.py", 'print("not heard of late")'),
    (messages_use_the_technical_word, "launch/ready.py", 'print(f"{host}: nobody leads")'),
    (descriptions_are_whole, "launch/ready.py", 'option("--wait", help="of the newest step")'),
    (descriptions_are_whole, "launch/ready.py", 'option("--wait", help="Whether it is ready.")'),
    (descriptions_are_whole, "launch/ready.py", 'Value("launch_step", "The global step", "step")'),
    (descriptions_are_whole, "launch/ready.py", 'option("--port", help="which port.")'),
    (docstrings_begin_with_a_verb_or_a_noun, "launch/ready.py", 'def ready():\n    """Whether it is."""'),
    (files_are_named_for_what_is_in_them, "cluster/common/errors.py", ""),
]

KEPT: List[Tuple[str, str]] = [
    ("launch/plan/plan.py", "import click\nfrom cluster import errors, spec\nfrom cluster.task import Task"),
    ("launch/remote.py", "import fabric\nfrom paramiko import SSHException"),
    (
        "launch/agent/loop.py",
        "import os, json, time\nfrom cluster.protocol.outcome import Outcome\nfrom . import state",
    ),
    (
        "cluster/training/trainer.py",
        "import numpy as np\nimport tensorflow.compat.v1 as tf\nfrom cluster import towers",
    ),
    ("cluster/spec/read.py", "import yaml\nfrom cluster.errors import SpecError"),
    ("jobs/main.py", "import tensorflow.compat.v1 as tf\nfrom cluster import session\nfrom jobs import digits"),
]


def every_source() -> List[Source]:
    paths = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    return [Source(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(), str(path))) for path in paths]


@pytest.fixture(scope="module")
def tree() -> List[Source]:
    """Every Python file of the project."""
    return every_source()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_file_keeps_the_rule(rule: Callable[[Source], List[str]], tree: List[Source]) -> None:
    broken = [line for source in tree for line in rule(source)]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(("rule", "path", "text"), BROKEN)
def test_a_file_that_breaks_the_rule_is_named_with_its_line(
    rule: Callable[[Source], List[str]], path: str, text: str
) -> None:
    line = len(text.splitlines()) or 1
    assert [message.split(" ")[0] for message in rule(Source(path, ast.parse(text)))] == [f"{path}:{line}:"]


@pytest.mark.parametrize(("path", "text"), KEPT)
def test_what_each_room_needs_is_allowed(path: str, text: str) -> None:
    assert [line for rule in RULES for line in rule(Source(path, ast.parse(text)))] == []


def test_every_key_of_a_hosts_file_is_described_by_a_whole_text() -> None:
    schema = (ROOT / "cluster" / "hosts.schema.json").read_text()
    described = re.findall(r'"description": "((?:[^"\\]|\\.)*)"', schema)
    assert len(described) > 60
    assert [text for text in described if not DESCRIPTION.fullmatch(text) or GUESSED.search(text)] == []


def missing_in_map(package: Path) -> List[str]:
    """The modules and rooms of a package that its docstring has no line for."""
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    inside = [path for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    names = sorted(path.stem for path in inside if not path.stem.startswith(("__", "test_")))
    return [name for name in names if not re.search(rf"^ *(?:\w+, )*{name}\b", text, re.MULTILINE)]


MAPPED = [
    package
    for house in ("cluster", "launch", "launch/agent", "tests/support")
    for package in (ROOT / house, *(path.parent for path in (ROOT / house).glob("*/__init__.py")))
]


@pytest.mark.parametrize("package", MAPPED, ids=lambda package: package.relative_to(ROOT).as_posix())
def test_a_package_has_a_map_with_a_line_for_each_module(package: Path) -> None:
    assert missing_in_map(package) == []


def test_a_module_that_is_not_on_the_map_is_found(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text('"""A room.\n\nfirst, second   two\nthird   one\n"""\n')
    for name in ("first", "second", "third", "fourth"):
        (tmp_path / f"{name}.py").touch()
    assert missing_in_map(tmp_path) == ["fourth"]


def texts() -> Iterator[Path]:
    """Every file that a reader of the repository meets, fixtures and data included."""
    for name in (*ROOMS, "docs", "requirements", ".ci"):
        yield from (path for path in (ROOT / name).rglob("*") if path.is_file() and path.suffix != ".pyc")
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.name != ".git")


def test_no_file_points_to_a_folder_outside_the_repository() -> None:
    pointing = [
        f"{path.relative_to(ROOT)}:{number}: points outside the repository: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if ELSEWHERE.search(line)
    ]
    assert not pointing, "\n".join(pointing)


def test_a_path_beside_the_checkout_is_found_and_ordinary_words_are_not() -> None:
    assert ELSEWHERE.search("see /work" + "/notes.md") and ELSEWHERE.search("in shared" + "/notes.md")
    assert not ELSEWHERE.search("network/worker, ~/work/x, /tmp/work/x, a shared variable, unshared/x")
