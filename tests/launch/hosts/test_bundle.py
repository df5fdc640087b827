"""What is sent to a host: the code a run needs, known by its content, and nothing else."""

import io
import os
import shutil
import socket
import tarfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, List

import pytest

from launch.agent.tasks.work_folder import MANIFEST
from launch.errors import UsageError
from launch.hosts import job_files
from launch.hosts.bundle import PROJECT, Bundle, Code, JobCode, find_job, launcher_code, pack, with_folder
from launch.target import Target


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# {name}\n")


def inside(bundle: Bundle) -> List[str]:
    with tarfile.open(fileobj=io.BytesIO(bundle.data), mode="r:gz") as archive:
        return [name for name in archive.getnames() if name != MANIFEST]


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


def test_a_bundle_is_compressed_when_it_is_first_sent_and_then_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    compressed: List[str] = []
    made = zlib.compressobj

    def noted(**named: Any) -> Any:
        compressed.append("once")
        return made(**named)

    monkeypatch.setattr(zlib, "compressobj", noted)
    bundle = Bundle(os.urandom(8), "")
    assert compressed == []
    assert bundle.data is bundle.data and len(compressed) == 1


def test_a_program_stays_executable(tmp_path: Path) -> None:
    write(tmp_path, "train.sh")
    (tmp_path / "train.sh").chmod(0o744)
    with tarfile.open(fileobj=io.BytesIO(pack([(tmp_path / "train.sh", "t")]).data)) as archive:
        assert archive.getmember("t").mode == 0o700


def test_the_launchers_own_code_is_what_runs_on_hosts_and_no_more() -> None:
    names = inside(launcher_code().bundles["launcher"])
    needed = {"launch/agent/__main__.py", "cluster/protocol/outcome.py", "jobs/main.py", "launch/__init__.py"}
    assert needed <= set(names)
    assert not [name for name in names if name.startswith(("tests", "launch/cli", "cluster/spec"))]


# -- a job's folder


def test_what_is_generated_hidden_or_an_environment_is_not_sent(tmp_path: Path) -> None:
    write(
        tmp_path, "job.py", "lib/part.py", "data.csv", ".git/config", ".env", "__pycache__/job.pyc", "lib/old.pyc",
        "venv/pyvenv.cfg", "venv/lib/big.py", "node_modules/x.js", "job.egg-info/PKG-INFO",
    )  # fmt: skip
    assert shipped(JobCode(tmp_path, "job.py")) == ["data.csv", "job.py", "lib/part.py"]


def test_what_links_lead_to_is_sent_folders_too(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/real.py", "elsewhere/more/part.py", "job/job.py", "job/lib/a.py")
    (tmp_path / "job" / "linked.py").symlink_to(tmp_path / "elsewhere" / "real.py")
    (tmp_path / "job" / "folder").symlink_to("../elsewhere")
    (tmp_path / "job" / "twice").symlink_to("lib")
    assert shipped(JobCode(tmp_path / "job", "job.py")) == [
        "folder/more/part.py", "folder/real.py", "job.py", "lib/a.py", "linked.py", "twice/a.py",
    ]  # fmt: skip


def refusal_of(folder: Path) -> str:
    """Why a folder cannot be sent, without its own path."""
    with pytest.raises(UsageError) as caught:
        with_folder(Code({}), JobCode(folder, "job.py"))
    return str(caught.value).replace(f"{folder}/", "")


IS_SHIPPED = "is in a folder that is shipped to every host"


def test_a_link_that_leads_back_or_nowhere_is_named(tmp_path: Path) -> None:
    write(tmp_path, "a/job.py", "b/lib/part.py")
    (tmp_path / "a" / "gone").symlink_to("nowhere")
    assert refusal_of(tmp_path / "a") == (
        f"job: gone {IS_SHIPPED}; expected an intact link, found one to nowhere, which does not exist; remove it"
    )
    (tmp_path / "b" / "lib" / "up").symlink_to("..")
    assert refusal_of(tmp_path / "b") == (
        f"job: lib/up {IS_SHIPPED}; expected a link to a file or to another folder, "
        "found one to a folder that contains it; remove it"
    )


def test_links_that_lead_to_each_other_are_named(tmp_path: Path) -> None:
    write(tmp_path, "job.py")
    (tmp_path / "x").symlink_to("y")
    (tmp_path / "y").symlink_to("x")
    assert "job: x is in a folder" in refusal_of(tmp_path) and "symbolic links" in refusal_of(tmp_path)


@pytest.mark.parametrize("kind", ["a pipe", "a device"])
def test_what_is_neither_file_nor_folder_is_named(tmp_path: Path, kind: str) -> None:
    write(tmp_path, "job.py")
    if kind == "a pipe":
        os.mkfifo(str(tmp_path / "x"))
    else:
        (tmp_path / "x").symlink_to("/dev/zero")
    assert refusal_of(tmp_path).startswith(
        f"job: x {IS_SHIPPED}; expected files and folders, found {kind}; remove it, or"
    )


def test_sockets_and_the_working_folder_of_runs_stay_here(tmp_path: Path) -> None:
    write(tmp_path, "job.py", "w/runs/r-1/worker.0/attempt_0.log", "w2/part.py")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "x"))
    assert shipped(JobCode(tmp_path, "job.py", workdir=tmp_path / "w")) == ["job.py", "w2/part.py"]


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    write(tmp_path, "job.py")
    (tmp_path / "x").symlink_to("/proc/self/mem")  # also root reads nothing at its beginning
    assert refusal_of(tmp_path).startswith(
        f"job: x {IS_SHIPPED}; expected read access, found input/output error; change its permissions, or move"
    )


@contextmanager
def as_nobody(folder: Path) -> Iterator[None]:
    """What is done meanwhile is done by a user without rights, who may go to ``folder``: root may read all."""
    if os.getuid() != 0:
        yield
        return
    opened = [above for above in (folder, *folder.parents) if above.stat().st_mode & 0o055 != 0o055]
    before = {above: above.stat().st_mode for above in opened}
    for above in opened:
        above.chmod(before[above] | 0o055)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        for above in opened:
            above.chmod(before[above])


@pytest.mark.parametrize("name", ["secret.txt", "closed"])
def test_what_the_user_may_not_read_is_named_with_what_to_do(tmp_path: Path, name: str) -> None:
    write(tmp_path, "job.py", "closed/part.py")
    (tmp_path / "secret.txt").touch()
    for path, mode in (("closed", 0o755), ("secret.txt", 0o644)):  # whatever the umask is
        (tmp_path / path).chmod(mode)
    (tmp_path / name).chmod(0)
    with as_nobody(tmp_path):
        text = refusal_of(tmp_path)
    assert text == (
        f"job: {name} {IS_SHIPPED}; expected read access, found permission denied; change its permissions, or "
        "move the job into a folder of its own, and data to where the hosts read it"
    )
    assert UsageError.exit_code == 2


def test_a_folder_of_too_many_files_is_refused_before_they_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_files, "MOST", 30)
    write(tmp_path, *(f"{folder}/{name}.txt" for folder in "abc" for name in range(11)))
    assert refusal_of(tmp_path).startswith(
        f"job: the folder {tmp_path} is shipped to every host; expected at most 30 files and folders, found more, "
    )
    write(tmp_path, "job.py")
    shutil.rmtree(str(tmp_path / "c"))
    assert len(shipped(JobCode(tmp_path, "job.py"))) == 23


def test_a_very_deep_folder_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "job.py", "deep/" * 66 + "x")
    assert "expected folders at most 64 deep, found a deeper one; move the job" in refusal_of(tmp_path)


def test_of_a_package_only_the_package_is_sent(tmp_path: Path) -> None:
    write(tmp_path, "mine/__init__.py", "mine/train.py", "other/big.py")
    assert shipped(find_job("mine.train", tmp_path)) == ["mine/__init__.py", "mine/train.py"]


def test_a_module_that_is_installed_on_the_hosts_is_not_sent(tmp_path: Path) -> None:
    assert with_folder(Code({}), find_job("installed.train", tmp_path)).bundles == {}


def test_a_folder_that_is_too_large_is_refused_with_its_largest_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_files, "LIMIT_MIB", 1)
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
        "did you mean digits? the jobs that come with this project: "
    )
    known = text.split(": ")[-1].split(", ")
    assert "digits" in known and not {"main", "__init__", "describe"} & set(known)


def test_a_name_is_compared_with_the_users_own_jobs_too_and_where_it_stands_is_told(tmp_path: Path) -> None:
    write(tmp_path, "jobs/translate.py", "train.py")
    (tmp_path / "hosts.yaml").write_text("job: tranlate\ncluster: {ps: [a], worker: [b]}\n")
    asked = Target(str(tmp_path / "hosts.yaml"))
    with pytest.raises(UsageError) as caught:
        asked.job(asked.spec())
    assert str(caught.value).startswith(f"{tmp_path}/hosts.yaml:1:6: job: expected a file, found none at ")
    assert "; did you mean translate? " in str(caught.value)
    with pytest.raises(UsageError, match=r"did you mean train\.py\? "):
        find_job("trains.py", tmp_path)
    overridden = Target(str(tmp_path / "hosts.yaml"), overrides=("job=digitz",))
    with pytest.raises(UsageError, match=r"^--set job: expected a file, .*; did you mean digits\? "):
        overridden.job(overridden.spec())


def test_a_path_that_is_nowhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"found none at {tmp_path}/sub/job.py;"):
        find_job("sub/job.py", tmp_path)


@pytest.mark.parametrize("hidden", ["cluster.py", "jobs.py", "launch.py", "cluster/__init__.py", "launch/__init__.py"])
def test_a_module_beside_the_job_that_this_projects_own_would_replace_is_refused(tmp_path: Path, hidden: str) -> None:
    write(tmp_path, "train.py", hidden)
    with pytest.raises(UsageError) as caught:
        find_job("train.py", tmp_path, "hosts.yaml:1:6: job")
    assert str(caught.value) == (
        "hosts.yaml:1:6: job: expected other names of files and folders than cluster, jobs, launch, found "
        f"{tmp_path}/{hidden}; a task imports this project's package of that name instead; rename yours, and change"
        " its imports"
    )


def test_a_dotted_job_in_a_package_that_this_projects_own_would_replace_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "jobs/mine.py")
    with pytest.raises(UsageError, match=f"found {tmp_path}/jobs/mine.py; a task imports this project's package"):
        find_job("jobs.mine", tmp_path)
    assert find_job("jobs.digits", tmp_path).entry == "jobs.digits"  # this project's


def test_a_job_may_have_a_packages_name_itself_and_lie_beside_folders_that_are_no_packages(tmp_path: Path) -> None:
    write(tmp_path, "launch.py", "jobs/mine.py", "cluster/data.csv")
    assert find_job("launch.py", tmp_path).entry == "launch.py"
    assert find_job("jobs.digits", PROJECT).package == "jobs"


def test_a_folder_that_was_copied_is_the_same_bundle(tmp_path: Path) -> None:
    write(tmp_path, "a/job.py", "a/lib/part.py")
    shutil.copytree(str(tmp_path / "a"), str(tmp_path / "b"))
    assert len({with_folder(Code({}), JobCode(tmp_path / name, "job.py")).hashes["job"] for name in "ab"}) == 1
