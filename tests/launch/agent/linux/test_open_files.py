"""The limit on open files is raised where many are needed, never lowered; any of the files can be waited for."""

import os
import resource
import subprocess
import sys

import pytest

from launch.agent.linux.open_files import readable


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "now"), [(64, 4096, 2000, 2000), (64, 512, 2000, 512), (1024, 4096, 300, 1024)]
)
def test_the_limit_is_raised_as_far_as_needed_and_allowed(soft: int, hard: int, wanted: int, now: int) -> None:
    text = (
        "import resource; from launch.agent.linux.open_files import allow_open_files as allow;"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard})); allow({wanted});"
        "print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    ran = subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE, check=True)
    assert ran.stdout.split() == [b"%d" % now, b"%d" % hard]


def test_a_child_gets_the_limit_that_was_there_before_it_was_raised() -> None:
    text = (
        "import os, resource, subprocess; from launch.agent.linux import open_files, processes;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096)); open_files.allow_open_files(open_files.ALL);"
        "child = processes.spawn(['sh', '-c', 'ulimit -n; ulimit -Hn'], os.environ, '/', subprocess.PIPE);"
        "print(child.communicate()[0].decode(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    ran = subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE, check=True)
    assert ran.stdout.split() == [b"256", b"4096", b"4096"]


@pytest.mark.parametrize(("soft", "share"), [(400, 100), (4096, 1000)])
def test_a_share_of_the_files_is_no_more_than_what_was_wanted(soft: int, share: int) -> None:
    text = (
        "import resource; from launch.agent.linux.open_files import share_of_files as share;"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, 4096)); print(share(0.25, 1000))"
    )
    ran = subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE, check=True)
    assert int(ran.stdout) == share


def test_what_has_come_is_readable_and_so_is_the_end() -> None:
    out, into = os.pipe()
    assert not readable(out, 0.0)
    os.write(into, b".")
    assert readable(out, None)
    os.read(out, 1)
    os.close(into)
    assert readable(out, 0.0)
    os.close(out)


def test_a_file_above_those_that_select_knows_is_waited_for() -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= 3000:
        pytest.skip("needs 3,000 open files: ulimit -n permits fewer")
    out, into = os.pipe()
    high = os.dup2(out, 2999)
    os.write(into, b".")
    assert readable(high, 0.0)
    for number in (out, into, high):
        os.close(number)
