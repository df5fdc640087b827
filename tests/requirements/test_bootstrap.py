"""requirements/bootstrap.sh finds a Python and builds the environment once."""

import shutil
from pathlib import Path

from tests.requirements.checkout import LOCK, UV, Checkout, locks

# ---- building, and finding that nothing is to be done


def test_a_first_run_installs_the_lock_by_hash_and_then_the_project(checkout: Checkout) -> None:
    checkout.python("3.7")
    calls = checkout.built()
    assert locks(calls) == ["stdin", "tf1.lock"]
    assert all("--require-hashes" in call for call in calls[:2])
    assert calls[2].endswith(f"--editable {checkout.root}")


def test_the_build_tools_of_the_lock_are_installed_before_everything_else(checkout: Checkout) -> None:
    checkout.python("3.7")
    checkout.built()
    names = [line.split("==")[0] for line in checkout.calls_file.read_text().splitlines() if "==" in line]
    assert names == ["pip", "setuptools"]


def test_what_an_import_of_tensorflow_needs_is_compiled_once_whatever_the_environment_says(checkout: Checkout) -> None:
    checkout.python("3.7")
    for compiled in (["compiled, bytecode written"], []):
        checkout.built(PYTHONDONTWRITEBYTECODE="1")
        lines = checkout.calls_file.read_text().splitlines()
        assert [line for line in lines if line.startswith("compiled")] == compiled


def test_a_second_run_calls_neither_pip_nor_uv(checkout: Checkout) -> None:
    checkout.python("3.7")
    checkout.built()
    assert checkout.built() == []


def test_test_after_run_only_adds_and_run_after_test_does_nothing(checkout: Checkout) -> None:
    checkout.python("3.7")
    checkout.built("run")
    assert locks(checkout.built("test")) == ["test-tf1.lock"]
    assert checkout.built("run") == []


def test_a_first_test_run_installs_everything_at_once(checkout: Checkout) -> None:
    checkout.python("3.7")
    assert locks(checkout.built("test")) == ["stdin", "test-tf1.lock"]
    assert checkout.built("run") == checkout.built("test") == []


def test_plots_only_add_to_the_tests_and_tests_after_plots_do_nothing(checkout: Checkout) -> None:
    checkout.python("3.7")
    assert locks(checkout.built("plots")) == ["stdin", "test-tf1.lock", "plots-tf1.lock"]
    assert checkout.built("plots") == checkout.built("test") == checkout.built("run") == []


def test_a_changed_lock_file_makes_the_environment_stale(checkout: Checkout) -> None:
    checkout.python("3.7")
    checkout.built()
    (checkout.root / "requirements" / "tf1.lock").write_text(LOCK.replace("1.19.5", "1.19.4"))
    assert locks(checkout.built()) == ["stdin", "tf1.lock"]


def test_an_interrupted_environment_is_built_anew(checkout: Checkout) -> None:
    checkout.python("3.7")
    checkout.built()
    (checkout.venv / "stamp-run").unlink()
    (checkout.venv / "tmp").mkdir()
    (checkout.venv / "left over").touch()
    assert locks(checkout.built()) == ["stdin", "tf1.lock"]
    assert not (checkout.venv / "left over").exists() and not (checkout.venv / "tmp").exists()


def test_an_environment_with_an_empty_stamp_is_built_anew(checkout: Checkout) -> None:
    checkout.python("3.7")
    checkout.built()
    (checkout.venv / "stamp-run").write_text("")
    assert locks(checkout.built()) == ["stdin", "tf1.lock"]


def test_an_environment_whose_python_is_gone_is_built_anew(checkout: Checkout) -> None:
    checkout.python("3.7")
    checkout.built()
    (checkout.venv / "bin" / "python").unlink()
    assert locks(checkout.built()) == ["stdin", "tf1.lock"]


def test_an_environment_that_was_moved_is_built_anew(checkout: Checkout) -> None:
    checkout.python("3.7")
    checkout.built()
    checkout.venv.rename(checkout.root / ".venv-moved")
    assert locks(checkout.built(VENV=".venv-moved")) == ["stdin", "tf1.lock"]


def test_a_second_environment_of_the_other_runtime_stands_beside_the_first(checkout: Checkout) -> None:
    checkout.python("3.7")
    checkout.python("3.12")
    checkout.built()
    assert locks(checkout.built(VENV=".venv-tf2", RUNTIME="tf2")) == ["stdin", "tf2.lock"]
    assert checkout.built() == []


def test_another_runtime_in_the_same_folder_replaces_it_and_stays_until_told_otherwise(checkout: Checkout) -> None:
    checkout.python("3.7")
    checkout.python("3.12")
    checkout.built()
    assert locks(checkout.built(RUNTIME="tf2")) == ["stdin", "tf2.lock"]
    assert checkout.built() == []


# ---- which Python


def test_a_python_that_does_not_run_is_passed_over(checkout: Checkout, tmp_path: Path) -> None:
    checkout.script(checkout.bin / "python3.7", "#!/bin/sh\necho 'pyenv: python3.7: command not found' >&2\nexit 127\n")
    checkout.python("3.7", tmp_path / "later")
    assert locks(checkout.built(PATH=f"{checkout.bin}:{tmp_path / 'later'}"))


def test_pyenv_is_searched_in_its_root_in_the_home_and_beside_its_command(checkout: Checkout, tmp_path: Path) -> None:
    for number, root in enumerate([tmp_path / "root", checkout.home / ".pyenv", tmp_path / "opt"]):
        checkout.python("3.7", root / "versions" / "3.7.16" / "bin")
        checkout.script(tmp_path / "opt" / "bin" / "pyenv", "#!/bin/sh\n")
        path = f"{checkout.bin}:{tmp_path / 'opt' / 'bin'}"
        assert locks(checkout.built(PATH=path, PYENV_ROOT=str(root) if number == 0 else "", VENV=f".venv{number}"))
        shutil.rmtree(str(root))


def test_uv_is_asked_and_may_install_a_python(checkout: Checkout, tmp_path: Path) -> None:
    python = checkout.python("3.7", tmp_path / "uv")
    install = f'echo "{python}" >"{tmp_path}/installed"'
    checkout.script(checkout.bin / "uv", UV.format(calls=checkout.calls_file, folder=tmp_path, install=install))
    calls = checkout.built()
    assert [call for call in calls if call.startswith("uv python install")] == ["uv python install 3.7"]
    assert locks(calls) == ["stdin", "tf1.lock"]


def test_without_python_37_the_newest_one_gets_the_second_runtime_and_one_line_says_so(checkout: Checkout) -> None:
    checkout.script(checkout.bin / "uv", "#!/bin/sh\nexit 2\n")
    checkout.python("3.9")
    checkout.python("3.12")
    done = checkout.run()
    assert done.returncode == 0
    lines = [line for line in done.stdout.splitlines() if "second runtime" in line]
    assert lines == ["No Python 3.7 was found: using the second runtime, Python 3.12.9 with TensorFlow 2.x."]
    assert (checkout.venv / "stamp-run").read_text().startswith("tf2 3.12.9 ")


def test_where_tensorflow_115_has_no_wheel_the_second_runtime_is_used(checkout: Checkout) -> None:
    (checkout.bin / "uname").unlink()
    checkout.script(checkout.bin / "uname", '#!/bin/sh\n[ "$1" = -s ] && echo Linux || echo aarch64\n')
    checkout.python("3.7")
    checkout.python("3.11")
    assert locks(checkout.built()) == ["stdin", "tf2.lock"]


def test_large_downloads_have_a_line_each_while_pip_works(checkout: Checkout) -> None:
    lines = [
        "Collecting a",
        "  Downloading https://host/a-1.whl (53 kB)",
        "  Downloading https://host/b-1.whl (411.5 MB)",
    ]
    lines += ["  Using cached c-1.whl (2.1 MB)", "Installing collected packages: a, tensorflow"]
    checkout.python("3.7", pip=" ".join(["printf '%s\\n'", *(f"'{line}'" for line in lines)]))
    done = checkout.run()
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == ["  b-1.whl (411.5 MB)", "  c-1.whl (2.1 MB)", "  Installing the packages."]
    assert all(line in (checkout.venv / "bootstrap.log").read_text().splitlines() for line in lines)
