"""When the environment cannot be built, requirements/bootstrap.sh says why and what to do in one sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements.checkout import DF, Checkout, locks

VERSION = "{}.{}".format(*sys.version_info[:2])


def test_without_any_python_the_sentence_names_what_was_searched_and_what_to_install(checkout: Checkout) -> None:
    assert checkout.refused() == (
        "No Python 3.7, nor 3.9 to 3.13 with the venv module, was found on PATH, in pyenv or through uv; "
        "install one (apt install python3-venv, pyenv install 3.7, or uv) and try again.\n"
    )


def test_a_runtime_that_cannot_be_had_is_refused_with_the_way_out(checkout: Checkout) -> None:
    checkout.python("3.12")
    assert "RUNTIME=tf1 needs Python 3.7 on Linux x86_64 and none was found" in checkout.refused(RUNTIME="tf1")


def test_an_unknown_runtime_is_refused(checkout: Checkout) -> None:
    assert checkout.refused(RUNTIME="tf3").startswith("RUNTIME: expected tf1 or tf2, found 'tf3'")


def test_a_folder_that_is_no_environment_is_never_removed(checkout: Checkout) -> None:
    checkout.python("3.7")
    kept = checkout.home / "thesis.tex"
    kept.touch()
    assert "is in the way: expected a Python environment or nothing" in checkout.refused(VENV=str(checkout.home))
    assert kept.exists()


def test_an_environment_behind_a_link_is_another_checkouts_and_stays_as_it_is(checkout: Checkout) -> None:
    checkout.python("3.7")
    checkout.built()
    (checkout.root / ".venv-linked").symlink_to(checkout.venv)
    for which in ("run", "test"):
        assert "is a link, and what it leads to" in checkout.refused(which, VENV=".venv-linked")
    assert (checkout.root / ".venv-linked").is_symlink()
    assert checkout.built() == []


def test_a_folder_that_cannot_be_written_is_named(checkout: Checkout) -> None:
    checkout.python("3.7")
    (checkout.root / "file").touch()
    assert f"{checkout.root}/file/.venv cannot be written" in checkout.refused(VENV="file/.venv")


@pytest.mark.parametrize(
    ("pip", "sentence"),
    [
        ("echo '[Errno 28] No space left on device'; exit 1", "The disk is full"),
        ("echo 'WARNING: Retrying after connection broken by X'; exit 1", "The package index cannot be reached"),
        ("echo 'ERROR: hashes do not match'; exit 1", "could not be built (ERROR: hashes do not match)"),
    ],
)
def test_a_failing_pip_is_one_sentence_that_names_its_output(checkout: Checkout, pip: str, sentence: str) -> None:
    checkout.python("3.7", pip=pip)
    told = checkout.refused()
    assert sentence in told and f"(pip's output is in {checkout.venv}/bootstrap.log)" in told
    assert "ERROR" in (checkout.venv / "bootstrap.log").read_text() or "ERROR" not in pip


def test_without_enough_space_nothing_is_started_and_the_sentence_says_how_much_is_needed(checkout: Checkout) -> None:
    checkout.python("3.7")
    checkout.script(checkout.bin / "df", DF.format(mib=2048))
    assert "needs 3000 MB while it is built, and 2048 MB are free; free some space and try again" in checkout.refused()
    assert not checkout.calls_file.exists()


def test_after_a_failure_the_next_run_starts_over(checkout: Checkout) -> None:
    checkout.python("3.7", pip="exit 1")
    checkout.refused()
    checkout.python("3.7")
    assert locks(checkout.built()) == ["stdin", "tf1.lock"]


# ---- with the real interpreter and pip


@pytest.fixture
def real(checkout: Checkout) -> Checkout:
    """A checkout whose one Python is that which runs this test, with none of this machine's settings."""
    base = Path(sys.base_prefix) / "bin" / f"python{VERSION}"
    checkout.script(checkout.bin / f"python{VERSION}", f'#!/bin/sh\nexec "{base}" "$@"\n')
    return checkout


def test_without_a_network_the_sentence_says_so(real: Checkout) -> None:
    closed = "http://127.0.0.1:9/simple"
    told = real.refused(PIP_INDEX_URL=closed, PIP_CONFIG_FILE=os.devnull, PIP_RETRIES="1", PIP_NO_CACHE_DIR="1")
    assert told.startswith("The package index cannot be reached; connect to the network, or name a mirror")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it mounts a small disk")
def test_on_a_full_disk_the_sentence_says_so(real: Checkout, tmp_path: Path) -> None:
    (real.bin / "df").unlink()
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = f'mount -t tmpfs -o size=2m none "{disk}" && VENV="{disk}/.venv" exec "$0" run'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mounted, str(real.root / "requirements" / "bootstrap.sh")],
        env={"PATH": f"{real.bin}:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(real.home)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    told = f"The disk is full: {disk}/.venv needs 3000 MB while it is built, and 2 MB are free;"
    assert done.returncode == 1
    assert done.stderr.startswith(told) and done.stderr.count("\n") == 1
