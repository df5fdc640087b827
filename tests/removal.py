"""Take each part out of a copy of the repository, and list the tests that fail: python -m tests.removal

A part is a rule of supervision or a callback of training. Without a part that a run can do without, no test may fail
but the part's own: those in files that are named for its class or its module. The module goes too, where no other one
imports it. The exit code is 1 where another test fails, or none of the part's own does. ``NEEDED`` has the others.
"""

import ast
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import List, NamedTuple, Sequence

from tests.support import ROOT
from tests.support.sources import Source

RULES, CALLBACKS = "launch/agent/supervision/supervisor.py", "cluster/training/worker_graph.py"
RUNS = "summaries step_times training_metrics first_batches unread_args best_checkpoint chief_pauses"
TESTS = {  # those that could notice: the others of training have no callback, or train for minutes
    RULES: ["--fast", "tests/launch/agent/supervision"],
    CALLBACKS: [f"tests/cluster/training/test_{name}.py" for name in RUNS.split()],
}


class Part(NamedTuple):
    """A class, and patterns of what its registry does not have without it.

    ``shows``: parts whose work can be seen by this one alone, so that their tests are its own, too.
    """

    name: str
    registry: str
    patterns: Sequence[str]
    shows: Sequence[str] = ()

    @property
    def module(self) -> str:
        """The file from which the registry imports the class."""
        text = (ROOT / self.registry).read_text()
        (dotted,) = re.findall(rf"^from (\S+) import .*\b{self.name}\b", text, re.MULTILINE)
        return f"{dotted.replace('.', '/')}.py"

    def owns(self, test: str) -> bool:
        """Whether a test lies in a file that is named for the part, or for one that it shows."""
        classes = [re.sub(r"\B(?=[A-Z])", "_", name).lower() for name in (self.name, *self.shows)]
        return any(name in Path(test.split("::")[0]).stem for name in (*classes, Path(self.module).stem))

    def left(self, text: str) -> str:
        """The registry's text without the part.

        Raises:
          ValueError: a pattern no longer fits.
        """
        for pattern in self.patterns:
            text, found = re.subn(pattern, "", text, flags=re.MULTILINE)
            if found != 1:
                raise ValueError(f"{self.name}: expected {pattern!r} once in {self.registry}, found it {found} times")
        if len(re.findall(rf"\b{self.name}\b", text)) == 1:  # its import
            text = re.sub(
                rf"^from \S+ import {self.name}\n|, {self.name}\b|\b{self.name}, ", "", text, flags=re.MULTILINE
            )
        return text


PARTS = [
    Part("Watch", RULES, [r"^ *Watch\(.*\n"]),
    Part("CheckpointProblems", RULES, [r"^ *CheckpointProblems\(.*\n"]),
    Part("GpuFailures", RULES, [r"^ *GpuFailures\(.*\n"]),
    Part("Quietness", RULES, [r"^ *Quietness\(.*\n"]),
    Part("LearningCurve", RULES, [r"^ *LearningCurve\(.*\n"]),
    Part("SplitCheckpoints", RULES, [r"^ *SplitCheckpoints\(.*\n"]),
    Part("Departures", RULES, [r"^ *self\.departures,.*\n"]),
    Part("Deadline", RULES, [r"^ *Deadline\(.*\n"]),
    Part("Together", RULES, [r"^ *Together\(.*\n"]),
    Part("StepTimes", CALLBACKS, [r"^ *times = .*\n", r"(?<=\[)times, ", r", \*\*times\.scalars\(\)"]),
    Part("TrainingMetrics", CALLBACKS, [r"(?<=metrics = )TrainingMetrics\(.*\) if .* else (?=None)"]),
    Part("FirstBatches", CALLBACKS, [r"^ *batches = FirstBatches\(.*\n", r", batches(?=\])"]),
    Part("UnreadArgs", CALLBACKS, [r"UnreadArgs\(.*?\), "]),
    Part("Scopes", CALLBACKS, [r", Scopes\(.*?\)(?=\])"]),
    Part("Summaries", CALLBACKS, [r"^ *summaries = Summaries\((?:\n {12}.*)*\n *\)\n", r"summaries, "], ["StepTimes"]),
    Part("Evaluating", CALLBACKS, [r"^ *if .*\n *made\.append\(Evaluating\(.*\n"]),
    Part("BestCheckpoint", CALLBACKS, [r"^ *if .*\n *made\.append\(BestCheckpoint\(.*\n"]),
    Part("Verifying", CALLBACKS, [r"^ *if settings\.verify:(?:\n {12}.*)*"]),
]
NEEDED = {
    "TaskEvents": "records the start and the progress of tasks",
    "HostEvents": "starts again what a lost host ran",
    "ProgramSteps": "expects steps of a program that reports them, also under the next lead",
    "TaskEnds": "records the end of tasks",
    "Requests": "stops a run, which also ends one that never succeeds",
    "Success": "closes a run that has succeeded",
    "Gathering": "starts the first tasks",
    "Formations": "changes the tasks that train, for lost hosts, drains, GpuFailures and Departures",
    "Restarts": "starts a task again",
    "Ending": "ends the tasks in their order",
    "LastStep": "is the end of the loop of steps",
    "ChiefSaving": "saves, and answers whoever stops a run",
}


def without(part: Part, folder: Path) -> Path:
    """A copy of the repository without a part."""
    copy = folder / "copy"
    skipped = shutil.ignore_patterns(".git", ".venv*", "build", "__pycache__", ".*_cache")
    shutil.copytree(str(ROOT), str(copy), ignore=skipped)
    registry, module = copy / part.registry, copy / part.module
    registry.write_text(part.left(registry.read_text()))
    dotted = part.module[: -len(".py")].replace("/", ".")
    product = [path for room in ("cluster", "launch", "jobs") for path in (copy / room).rglob("*.py")]
    sources = [Source(path.relative_to(copy).as_posix(), ast.parse(path.read_text())) for path in product]
    if not any(f"{each.module}.".startswith(f"{dotted}.") for source in sources for each in source.imports()):
        module.unlink()
    return copy


def failing(copy: Path, tests: List[str]) -> List[str]:
    """The tests that fail in a copy, each as FILE::NAME, or the file that cannot be read.

    Raises:
      RuntimeError: pytest itself failed.
    """
    options = ["-q", "--tb=no", "-rfE", "--continue-on-collection-errors", "-p", "no:cacheprovider"]
    argv = [sys.executable, "-m", "pytest", *options, *tests]
    ran = subprocess.run(argv, cwd=str(copy), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ran.returncode not in (0, 1):
        raise RuntimeError(ran.stdout)
    return re.findall(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, re.MULTILINE)


def main(names: List[str]) -> int:
    """Print a row for each part, or for those that are named; return the exit code."""
    code = 0
    print("| without | tests of its own that fail | other tests that fail |\n|---|---|---|", flush=True)
    for part in [each for each in PARTS if not names or each.name in names]:
        with tempfile.TemporaryDirectory() as folder:
            failed = failing(without(part, Path(folder)), TESTS[part.registry])
        own = [test for test in failed if part.owns(test)]
        others = [test for test in failed if test not in own]
        print(f"| `{part.name}` | {len(own)} | {len(others)} |", *others, sep="\n    ", flush=True)
        code |= bool(others) or not own
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
