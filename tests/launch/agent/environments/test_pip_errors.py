"""What pip prints becomes a stage that an operator follows, and a reason with the next step."""

from typing import List, Optional

import pytest

from launch.agent.environments.pip_build import explain_failure, stage_of

FETCHING = "Collecting tensorflow-gpu==1.15.0 (from -r /w/envs/e/all.txt (line 40))"
REFUSED = (
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)': /simple/tiny/\n"
    "ERROR: Could not install packages due to an OSError: HTTPSConnectionPool(host='pypi.org', port=443): "
    "Max retries exceeded\n"
)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], None),
        (["Looking in links: /w"], None),
        ([FETCHING, "  Downloading tensorflow_gpu-1.15.0.whl (411 MB)"], "fetching tensorflow-gpu"),
        ([FETCHING, "Collecting numpy==1.19.5"], "fetching numpy"),
        ([FETCHING, "Building wheels for collected packages: gast"], "building gast"),
        ([FETCHING, "Installing collected packages: six, numpy, tensorflow-gpu"], "installing 3 packages"),
    ],
)
def test_the_newest_line_that_tells_is_the_stage(lines: List[str], expected: Optional[str]) -> None:
    assert stage_of(lines) == expected


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full (12 MB are free); free some space"),
        (
            "/usr/bin/python3.11: No module named ensurepip",
            "Python 3.11 has no ensurepip, which makes environments; install it (Debian: apt install python3.11-venv)",
        ),
        ("/usr/bin/python3.11: No module named venv", "Python 3.11 has no venv, which makes environments; install it"),
        (
            "ERROR: Could not find a version\nERROR: No matching distribution found for tiny==2.0\n",
            "no file of tiny==2.0 suits Python 3.11 here; add one to the wheel folder or the index",
        ),
        (REFUSED, "the package index pypi.org:443 cannot be reached from that host; name another in setup.index_url"),
        (
            REFUSED.splitlines()[0] + "\nERROR: No matching distribution found for tiny==1.0\n",
            "the package index that pip is set up with cannot be reached",
        ),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n"
            "    tiny==1.0 from https://x/tiny.whl (from -r all.txt):\n        Expected sha256 a\n",
            "the index's file of tiny==1.0 is not the file in the lock; write the lock again",
        ),
        ("ERROR: tiny is broken\nnotice: a new pip", "ERROR: tiny is broken; correct that and retry"),
        ("Traceback\nValueError: no\n\n", "ValueError: no; correct that and retry (the whole output: /w/e.log)"),
        ("", "no reason given; correct that"),
    ],
)
def test_a_failure_is_named_with_the_next_step(output: str, reason: str) -> None:
    assert explain_failure(output, "/w/e.log", "3.11", 12).startswith(reason)


def test_an_index_that_is_known_is_named_where_pip_does_not() -> None:
    said = explain_failure(REFUSED.splitlines()[0], "/w/e.log", "3.11", 12, "pypi.example.org")
    assert said.startswith("the package index pypi.example.org cannot be reached from that host")


def test_a_disk_that_is_so_full_that_pip_could_not_say_so_is_named() -> None:
    assert explain_failure("Installing collected pack", "/w/e.log", "3.11", 0).startswith(
        "the disk is full (0 MB are free)"
    )
