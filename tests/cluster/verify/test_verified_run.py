"""What a job's file makes once is made again for each graph."""

from pathlib import Path
from types import ModuleType
from typing import Any

from cluster.job import Job, load
from cluster.task import Train
from cluster.verify.verified_run import VerifiedRun

TEXT = """
MADE = []

def inputs(task, args): ...

def model(x, args):
    MADE.append(x)
    return MADE, args

def optimizer(args): ...
"""


def fresh(job: Job, **args: Any) -> Job:
    return VerifiedRun(job, Train.from_dict({}), args, [], []).fresh_job()


def test_a_list_that_the_file_makes_belongs_to_one_copy_and_the_args_are_bound(tmp_path: Path) -> None:
    (tmp_path / "lists.py").write_text(TEXT)
    job = load(str(tmp_path / "lists.py"), tmp_path).with_args({"a": 1})
    assert job.model(x=1) == ([1], {"a": 1})
    assert fresh(job, a=2).model(x=2) == ([2], {"a": 2})
    assert job.model(x=3)[0] == [1, 3]


def test_functions_of_several_files_are_used_as_they_are() -> None:
    module = ModuleType("several")
    module.__file__ = "several.py"
    vars(module).update(inputs=len, model=load, optimizer=max)
    job = Job.from_module(module)
    assert fresh(job) is job
