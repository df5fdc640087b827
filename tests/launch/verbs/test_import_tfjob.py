"""``launch import tfjob`` and ``launch manifest`` print what docs/tfjob.md shows."""

import re
import shlex
from pathlib import Path
from typing import Dict, List

import pytest

from cluster.spec import load
from launch import cli
from tests.support import ROOT

PAGE = (ROOT / "docs" / "tfjob.md").read_text()
BLOCKS: Dict[str, str] = {}
for language, block in re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
    BLOCKS.setdefault(language, block)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tfjob.yaml").write_text(BLOCKS["tfjob"])


def run(capsys: "pytest.CaptureFixture[str]", *arguments: str) -> List[object]:
    """[exit code, stdout, stderr] of a command line."""
    with pytest.raises(SystemExit) as caught:
        cli.main(list(arguments))
    printed = capsys.readouterr()
    return [caught.value.code, printed.out, printed.err]


def test_a_manifest_becomes_the_hosts_file_of_the_page(capsys: "pytest.CaptureFixture[str]") -> None:
    code, out, err = run(capsys, *shlex.split(BLOCKS["sh"])[1:])
    assert (code, out) == (0, BLOCKS["yaml"]) and BLOCKS[""] in str(err)


def test_a_hosts_file_returns_from_its_manifest_byte_by_byte(capsys: "pytest.CaptureFixture[str]") -> None:
    arguments = shlex.split(BLOCKS["sh"])[1:]
    Path("hosts.yaml").write_text(BLOCKS["yaml"])
    code, out, _ = run(capsys, "manifest", "hosts.yaml", "--image", "registry/train:1")
    assert code == 0
    Path("tfjob.yaml").write_text(str(out))
    code, out, err = run(capsys, *arguments)
    env = 'env:\n  worker: {STEPS: "2000"}\n'
    assert (code, out) == (0, BLOCKS["yaml"]) and env in BLOCKS["yaml"]
    assert "the run succeeds when" not in str(err)


def test_an_empty_entrypoint_makes_a_command_of_args_alone(capsys: "pytest.CaptureFixture[str]") -> None:
    Path("tfjob.yaml").write_text(BLOCKS["tfjob"].replace("command: [python, train.py]", "args: [python, m.py]", 1))
    code, out, _ = run(capsys, "import", "tfjob", "tfjob.yaml", "--entrypoint", "")
    assert code == 0 and '\n  ps: ["python", "m.py"]\n' in str(out)
    code, out, err = run(capsys, "import", "tfjob", "tfjob.yaml")
    assert (code, out) == (2, "") and "the command is `python m.py`" in str(err)


def test_without_hosts_every_task_has_a_placeholder(capsys: "pytest.CaptureFixture[str]") -> None:
    code, out, _ = run(capsys, "import", "tfjob", "tfjob.yaml")
    Path("hosts.yaml").write_text(str(out))
    assert code == 0 and load("hosts.yaml").hosts == ("ps-0.invalid", *(f"worker-{n}.invalid" for n in range(4)))
    assert "\n  # Replace each host that ends in .invalid by your own host.\n" in str(out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["import", "tfjob", "no.yaml"], "no.yaml: expected a manifest that can be read, found no such file or direct"),
        (["import", "tfjob", "tfjob.yaml", "a,a"], "HOSTS: expected hosts, each once, found a twice"),
        (["import", "tfjob", "tfjob.yaml", "--entrypoint", "'"], "--entrypoint: expected words as in a shell, found"),
        (["import", "tfjob", "tfjob.yaml", "localhost,gpu01"], "the generated hosts file is invalid:"),
        (["manifest", "no.yaml", "--image", "a"], "no.yaml: expected a hosts file that can be read"),
        (
            ["manifest", "hosts.yaml", "--image", "-x"],
            "--image: expected the name of an image such as registry/train:1",
        ),
        (["manifest", "hosts.yaml", "--image", "a", "--set", "name=A"], "--set name: expected a Kubernetes name"),
    ],
)
def test_bad_input_prints_nothing_and_exits_with_2(
    arguments: List[str], message: str, capsys: "pytest.CaptureFixture[str]"
) -> None:
    Path("hosts.yaml").write_text(BLOCKS["yaml"])
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "") and str(err).startswith(message), err


def test_all_that_is_wrong_with_a_manifest_is_printed(capsys: "pytest.CaptureFixture[str]") -> None:
    text = BLOCKS["tfjob"].replace("replicas: 4", "replicas: four").replace("32Gi", "much")
    Path("tfjob.yaml").write_text(text)
    code, _, err = run(capsys, "import", "tfjob", "tfjob.yaml")
    assert code == 2 and [line.partition(": ")[0] for line in str(err).splitlines()] == [
        "tfjob.yaml:18:17", "tfjob.yaml:32:53"
    ]  # fmt: skip


def test_a_host_file_may_still_have_any_name(capsys: "pytest.CaptureFixture[str]") -> None:
    Path("tfjob").write_text("gpu01 slots=2\n")
    code, out, _ = run(capsys, "import", "./tfjob", "--job", "digits")
    assert code == 0 and 'ps: ["gpu01"]' in str(out)
