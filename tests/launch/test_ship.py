"""What is sent to a host: the code a run needs, known by its content, and nothing else."""

import io
import os
import shutil
import tarfile
from pathlib import Path
from typing import List

import pytest

from launch import ship
from launch.errors import UsageError
from launch.ship import PROJECT, Bundle, Code, JobCode, find_job, launcher_code, pack, with_folder


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# {name}\n")


def inside(bundle: Bundle) -> List[str]:
    with tarfile.open(fileobj=io.BytesIO(bundle.data), mode="r:gz") as archive:
        return archive.getnames()


def shipped(job: JobCode) -> List[str]:
    return inside(with_folder(Code({}), job).bundles["job"])


# -- bundles


def test_equal_content_is_the_same_bundle_whenever_and_by_whomever_it_was_written(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b")]
    write(folders[0], "one.py", "two/three.py")
    write(folders[1], "two/three.py", "one.py")
    os.utime(str(folders[1] / "one.py"), (0, 0))
    (folders[1] / "one.py").chmod(0o600)
    if os.getuid() == 0:
        os.chown(str(folders[1] / "one.py"), 1234, 1234)
    first, second = (with_folder(Code({}), JobCode(folder, "one.py")) for folder in folders)
    assert first.hashes == second.hashes and first.bundles == second.bundles


@pytest.mark.parametrize("change", ["content", "name", "mode"])
def test_another_content_name_or_executable_bit_is_another_bundle(tmp_path: Path, change: str) -> None:
    write(tmp_path, "one.py")
    before = pack([(tmp_path / "one.py", "one.py")])
    if change == "content":
        (tmp_path / "one.py").write_text("# other\n")
    if change == "mode":
        (tmp_path / "one.py").chmod(0o755)
    after = pack([(tmp_path / "one.py", "two.py" if change == "name" else "one.py")])
    assert before.digest != after.digest


def test_a_program_stays_executable(tmp_path: Path) -> None:
    write(tmp_path, "train.sh")
    (tmp_path / "train.sh").chmod(0o744)
    with tarfile.open(fileobj=io.BytesIO(pack([(tmp_path / "train.sh", "t")]).data)) as archive:
        assert archive.getmember("t").mode == 0o700


def test_the_launchers_own_code_is_what_runs_on_hosts_and_no_more() -> None:
    names = inside(launcher_code().bundles["launcher"])
    assert {"launch/agent/__main__.py", "cluster/outcome.py", "jobs/main.py", "launch/__init__.py"} <= set(names)
    assert not [name for name in names if name.startswith(("tests", "launch/cli", "cluster/spec"))]


# -- a job's folder


def test_what_is_generated_hidden_or_an_environment_is_not_sent(tmp_path: Path) -> None:
    write(
        tmp_path, "job.py", "lib/part.py", "data.csv", ".git/config", ".env", "__pycache__/job.pyc", "lib/old.pyc",
        "venv/pyvenv.cfg", "venv/lib/big.py", "node_modules/x.js", "job.egg-info/PKG-INFO",
    )  # fmt: skip
    assert shipped(JobCode(tmp_path, "job.py")) == ["data.csv", "job.py", "lib/part.py"]


def test_what_is_no_file_is_not_sent_and_what_a_link_names_is(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/real.py", "job/job.py")
    os.mkfifo(str(tmp_path / "job" / "pipe"))
    (tmp_path / "job" / "linked.py").symlink_to(tmp_path / "elsewhere" / "real.py")
    (tmp_path / "job" / "broken.py").symlink_to(tmp_path / "nowhere")
    bundle = with_folder(Code({}), JobCode(tmp_path / "job", "job.py")).bundles["job"]
    assert inside(bundle) == ["job.py", "linked.py"]


def test_of_a_package_only_the_package_is_sent(tmp_path: Path) -> None:
    write(tmp_path, "mine/__init__.py", "mine/train.py", "other/big.py")
    assert shipped(find_job("mine.train", tmp_path)) == ["mine/__init__.py", "mine/train.py"]


def test_a_module_that_is_installed_on_the_hosts_is_not_sent(tmp_path: Path) -> None:
    assert with_folder(Code({}), find_job("installed.train", tmp_path)).bundles == {}


def test_a_folder_that_is_too_large_is_refused_with_its_largest_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ship, "LIMIT_MIB", 1)
    write(tmp_path, "job.py")
    for name, mib in (("small.bin", 1), ("large.bin", 3)):
        with open(str(tmp_path / name), "wb") as file:
            file.truncate(mib << 20)
    with pytest.raises(UsageError) as caught:
        with_folder(Code({}), JobCode(tmp_path, "job.py"))
    assert str(caught.value) == (
        f"job: the folder {tmp_path} is shipped to every host; expected at most 1 MiB, found 4 MiB, "
        f"3 of them in {tmp_path}/large.bin; move the job into a folder of its own, and data to where the hosts read it"
    )


# -- finding a job


def test_a_path_is_looked_for_beside_the_hosts_file(tmp_path: Path) -> None:
    write(tmp_path, "sub/job.py")
    assert find_job("sub/job.py", tmp_path) == JobCode(tmp_path / "sub", "job.py")
    assert find_job(str(tmp_path / "sub" / "job.py"), Path("/")) == JobCode(tmp_path / "sub", "job.py")


def test_a_path_may_begin_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path, "job.py")
    assert find_job("~/job.py", Path("/")) == JobCode(tmp_path, "job.py")


def test_a_job_that_is_a_link_is_sent_with_the_folder_that_the_link_is_in(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/real.py", "jobs/part.py")
    (tmp_path / "jobs" / "job.py").symlink_to(tmp_path / "elsewhere" / "real.py")
    job = find_job("jobs/job.py", tmp_path)
    assert job.entry in shipped(job)
    assert "part.py" in shipped(job)


def test_a_bare_name_is_a_job_beside_the_hosts_file_or_one_of_the_projects(tmp_path: Path) -> None:
    assert find_job("digits", tmp_path) == JobCode(PROJECT / "jobs", "digits.py")
    write(tmp_path, "jobs/digits.py")
    assert find_job("digits", tmp_path) == JobCode(tmp_path / "jobs", "digits.py")


def test_a_dotted_name_is_a_module_of_a_package_beside_the_hosts_file(tmp_path: Path) -> None:
    write(tmp_path, "mine/train.py")
    assert find_job("mine.train", tmp_path) == JobCode(tmp_path, "mine.train", "mine")
    assert find_job("theirs.train", tmp_path) == JobCode(None, "theirs.train")


def test_a_job_that_is_nowhere_is_refused_with_where_it_was_looked_for_and_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        find_job("digit", tmp_path)
    text = str(caught.value)
    assert text.startswith(
        f"job: expected a file, found none at {tmp_path}/jobs/digit.py and {PROJECT}/jobs/digit.py; "
    )
    known = text.split(": ")[-1].split(", ")
    assert "digits" in known and not {"main", "__init__", "describe"} & set(known)


def test_a_path_that_is_nowhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"found none at {tmp_path}/sub/job.py;"):
        find_job("sub/job.py", tmp_path)


def test_a_folder_that_was_copied_is_the_same_bundle(tmp_path: Path) -> None:
    write(tmp_path, "a/job.py", "a/lib/part.py")
    shutil.copytree(str(tmp_path / "a"), str(tmp_path / "b"))
    assert len({with_folder(Code({}), JobCode(tmp_path / name, "job.py")).hashes["job"] for name in "ab"}) == 1
