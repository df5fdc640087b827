"""A job is found by name, path or module, and its mistakes are told with file and line."""

from pathlib import Path

import pytest

from cluster.errors import JobError
from cluster.job import Job, load
from tests.support import ROOT

JOBS = ROOT / "jobs"
WHOLE = "def inputs(task, args): ...\ndef model(x): ...\ndef optimizer(args): ...\n"


def written(folder: Path, text: str) -> str:
    path = folder / "job.py"
    path.write_text(text)
    return str(path)


def refused(name: str) -> str:
    with pytest.raises(JobError) as caught:
        load(name, JOBS)
    return str(caught.value)


@pytest.mark.not_fast
def test_a_path_a_dotted_module_and_a_bare_name_name_the_same_job() -> None:
    paths = {load(name, JOBS).path for name in ("polynomial", "jobs.polynomial", str(JOBS / "polynomial.py"))}
    assert paths == {str(JOBS / "polynomial.py")}


def test_an_unknown_bare_name_is_told_with_the_jobs_there_are() -> None:
    assert "expected a file" in refused("digit")
    assert "; jobs there: cifar_resnet, clicks, digits, mnist, " in refused("digit")


def test_a_path_or_a_module_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert "expected a Python file, found none" in refused(str(tmp_path / "no.py"))
    assert "a name with a dot must be an importable module" in refused("no.such.job")


def test_an_import_that_fails_is_told_with_file_and_line(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE + "import no_such_package\n")
    assert refused(path) == (
        f"{path}:4: ModuleNotFoundError: No module named 'no_such_package', in `import no_such_package`"
    )


def test_a_syntax_error_is_told_with_file_and_line(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE + "def broken(:\n")
    assert refused(path).startswith(f"{path}:4: SyntaxError: invalid syntax")


def test_a_missing_function_is_told_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, "def model(x): ...\n")
    head = f"{path}: expected the functions inputs, model, optimizer; found no"
    assert refused(path) == f"{head} inputs, optimizer; a script that trains by itself goes under `command:`"
    assert refused(written(tmp_path, "def model(x): ...\ndef inputs(task, args): ...\n")) == f"{head} optimizer"


def test_an_exception_in_the_jobs_code_is_told_with_the_innermost_line_of_its_file(tmp_path: Path) -> None:
    text = "def inputs(task, args):\n    return deeper()\ndef deeper():\n    return int('x')\n"
    job = load(written(tmp_path, text + "def model(x): ...\ndef optimizer(args): ...\n"), JOBS)
    with pytest.raises(JobError, match=r"job\.py:4: ValueError: invalid .*, in `return int\('x'\)`$"), job.blame():
        job.inputs(None, {})


def test_a_model_that_names_args_gets_them_and_another_does_not(tmp_path: Path) -> None:
    def with_args(x: int, args: dict) -> int:  # type: ignore[type-arg]
        return x + int(args["more"])

    def job(model: object) -> Job:
        return Job("job.py", print, model, print).with_args({"more": 2})  # type: ignore[arg-type]

    assert job(with_args).model(x=1) == 3
    assert job(abs).model is abs


def test_a_model_that_names_training_is_told_whether_it_trains_or_is_evaluated() -> None:
    def told(x: int, training: bool) -> bool:
        return training

    job = Job("job.py", print, told, print).with_args({})
    assert job.model(x=1) is True
    assert job.for_evaluation().model(x=1) is False
