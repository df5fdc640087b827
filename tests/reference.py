"""Generate the reference from the code: ``python -m tests.reference > docs/reference.md``.

Verbs and flags come from Click, keys from the schema, and fields from the docstrings of their dataclasses. Exit codes
and variables are those that the code itself names. A test compares the committed page with the generated one.
"""

import collections.abc
import inspect
import re
import textwrap
from dataclasses import fields, is_dataclass
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple, get_type_hints

import click

from cluster.spec.schema import in_words, keys
from launch.agent.tasks.task_env import ENVIRONMENT
from launch.check.report import CheckReport
from launch.cli import cli, verbs
from launch.curve.comparison import RunsComparison
from launch.diagnosis.summary import DiagnoseReport
from launch.environments.builder import SetupReport
from launch.errors import EXIT_CODES
from launch.grid.points import GridReport
from launch.history import RunsReport
from launch.plan.outlook import PlanAnswer
from launch.status.hook_event import EVENTS, HookEvent
from launch.status.run import RunStatus
from launch.teardown import DownAnswer
from launch.verbs.export import ExportAnswer
from launch.verbs.prune import PruneReport
from launch.verbs.sweep import SweepReport

LISTS, MAPPINGS = (list, tuple), (dict, collections.abc.Mapping)
ATTRIBUTE = re.compile(r"  (\S+): (.*)")


def meanings(kind: Any, prefix: str = "") -> Dict[str, str]:
    """Return the meaning of each field of a dataclass by its path, which reads as in jq: ``tasks[].role``.

    Raises:
      KeyError: a field has no meaning, and nor has any part of it.
    """
    found: Dict[str, str] = {}
    hints, described = get_type_hints(kind), _attributes(kind)
    for each in fields(kind):
        part, ending = _part(hints[each.name])
        own = next((name for name in (each.name, f"{each.name}[]") if name in described), None)
        if own is not None or part is None:
            found[f"{prefix}{own}"] = described[own or each.name]
        if part is not None:
            front = described.get(f"{each.name}.*", "")
            below = meanings(part, f"{prefix}{each.name}{ending}.")
            found.update({path: f"{front} {text}".strip() for path, text in below.items()})
    return found


def _attributes(kind: Any) -> Dict[str, str]:
    """Return the section ``Attributes`` in the docstrings of a dataclass and of its bases.

    A field is there under its name, with ``[]`` behind it where the meaning is that of each item of a list.
    A name with ``.*`` behind it has words that stand in front of the meaning of each part of the field.
    """
    found: Dict[str, str] = {}
    for base in reversed(kind.__mro__):
        name = ""
        section = inspect.cleandoc(vars(base).get("__doc__") or "").partition("Attributes:\n")[2].partition("\n\n")[0]
        for line in section.splitlines():
            begins = ATTRIBUTE.fullmatch(line)
            if begins:
                name = begins.group(1)
            found[name] = begins.group(2) if begins else f"{found[name]} {line.strip()}"
    return found


def _part(hint: Any, ending: str = "") -> Tuple[Any, str]:
    """Return the dataclass within a type, and ``[]`` where there is a list of it; mappings have no parts."""
    if is_dataclass(hint):
        return hint, ending
    origin: Any = getattr(hint, "__origin__", None)
    arguments: Tuple[Any, ...] = getattr(hint, "__args__", ())
    if origin in LISTS:
        return _part(arguments[0], "[]")
    parts = [] if origin in MAPPINGS else [_part(each, ending) for each in arguments]
    return next((each for each in parts if each[0] is not None), (None, ""))


ANSWERS = {
    "plan": meanings(PlanAnswer),
    "check": meanings(CheckReport),
    "status": meanings(RunStatus),
    "runs": {**meanings(RunsComparison), **meanings(RunsReport)},
    "down": meanings(DownAnswer),
    "sweep": meanings(SweepReport),
    "prune": meanings(PruneReport),
    "setup": meanings(SetupReport),
    "diagnose": meanings(DiagnoseReport),
    "export": meanings(ExportAnswer),
    "grid": meanings(GridReport),
}  # the fields that ``--json`` prints, by verb

HEAD = """# Reference: verbs, flags, keys, exit codes

Generated from the code by `make docs`: every verb and flag, every key of a hosts file, every exit code, every field
that `--json` prints or an event has, and the environment of a task. The [operator's guide](operator.md) explains
their use.
"""


def text() -> str:
    """Return the whole page."""
    parts = [HEAD, *_verbs(), *_keys(), *_exit_codes(), *_answers(), *_events(), *_environment()]
    return "\n".join(parts).rstrip() + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _verbs() -> Iterator[str]:
    about_a_file = [verb for verb in verbs().values() if any(each.name == "file" for each in verb.params)]
    common = set.intersection(*({str(each.name) for each in verb.params} for verb in about_a_file))
    yield "## Verbs\n"
    yield "Every verb about a hosts file takes these:\n"
    yield _flags([each for each in about_a_file[0].params if each.name in common])
    for name, verb in verbs().items():
        yield f"### launch {name}\n"
        yield f"`{_usage(verb)}`\n"
        yield _prose(verb.help or "")
        rest = [each for each in verb.params if each.name not in common or verb not in about_a_file]
        if any(isinstance(each, click.Option) for each in rest):
            yield _flags(rest)


def _usage(verb: click.Command) -> str:
    # With the settings of the whole command line: click remembers for good which flags ask a verb for help.
    context = click.Context(verb, info_name=verb.name, **cli.context_settings)
    return " ".join([f"launch {verb.name}", *verb.collect_usage_pieces(context)])


def _prose(help_text: str) -> str:
    """Return a verb's help, in which the examples become blocks of code."""
    paragraphs = inspect.cleandoc(help_text).split("\n\n")
    return "\n\n".join(_example(each) if each.startswith("\b") else each for each in paragraphs) + "\n"


def _example(paragraph: str) -> str:
    lines = [re.sub("^Example:", "", line).strip() for line in paragraph.splitlines()[1:]]
    return "\n".join(["```sh", *lines, "```"])


def _flags(params: Sequence[click.Parameter]) -> str:
    options = [each for each in params if isinstance(each, click.Option)]
    rows = [[f"`{_flag(each)}`", _preset(each.default), each.help or ""] for each in options]
    return table(["flag", "default", "does"], rows)


def _preset(default: Any) -> str:
    """Return a flag's own default; empty where the flag has none.

    Click's mark for a missing default is no text or number.
    """
    return f"`{default}`" if isinstance(default, (str, int, float)) and not isinstance(default, bool) else ""


def _flag(option: click.Option) -> str:
    names = ", ".join(option.opts)
    return names if option.is_flag or option.count else f"{names} {option.metavar or _value(option.type)}"


def _value(kind: click.ParamType) -> str:
    return "|".join(map(str, kind.choices)) if isinstance(kind, click.Choice) else kind.name.upper().split(" ")[0]


def _keys() -> Iterator[str]:
    yield "## Keys of a hosts file\n"
    items = "`entry.host` is the key host of an item of a role, and `receiver.url` the key url of a receiver of `on`."
    yield textwrap.fill(f"[The hosts file](hosts-file.md) explains them. {items}", 120, break_on_hyphens=False) + "\n"
    rows = [[f"`{key}`", in_words(node), _default(node), str(node["description"])] for key, node in keys().items()]
    yield table(["key", "expects", "default", "meaning"], rows)


def _default(node: Mapping[str, Any]) -> str:
    default = node.get("default")
    if default is None:
        return "null" if "default" in node else ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _exit_codes() -> Iterator[str]:
    yield "## Exit codes\n"
    yield table(["code", "means"], list(EXIT_CODES.items()))


def _answers() -> Iterator[str]:
    yield "## Fields of --json\n"
    yield "One JSON object on stdout and nothing else. `tasks[].role` is the role of each of the tasks.\n"
    for verb, answer in ANSWERS.items():
        yield f"### launch {verb} --json\n"
        yield table(["field", "is"], [[f"`{path}`", meaning] for path, meaning in answer.items()])


def _events() -> Iterator[str]:
    yield "## Events of a run\n"
    yield "[The key `on`](hooks.md) names their receivers. Each receiver gets one JSON object for each event.\n"
    yield table(["event", "means"], [[f"`{event}`", meaning] for event, meaning in EVENTS.items()])
    yield table(["field", "is"], [[f"`{path}`", meaning] for path, meaning in meanings(HookEvent).items()])


def _environment() -> Iterator[str]:
    yield "## Environment of a task\n"
    rows: List[List[str]] = [[f"`{name}`", meaning] for name, meaning in ENVIRONMENT.items()]
    yield table(["variable", "is"], rows)


if __name__ == "__main__":
    print(text(), end="")
