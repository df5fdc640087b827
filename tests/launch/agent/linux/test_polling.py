"""Waiting for something to read."""

import os
import resource

import pytest

from launch.agent.linux.polling import readable


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
