"""What the documents say is so: their examples run, their links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import List, Set

import pytest

from cluster.spec import load
from launch.agent.linux.sockets import free_ports
from launch.cli import VERBS
from launch.verbs import init

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
README = (ROOT / "README.md").read_text()
SOURCES = [
    path.relative_to(ROOT)
    for room in ("cluster", "launch", "jobs", "tests", "docs")
    for path in (ROOT / room).rglob("*.py")
]
RUNNABLE = [
    *SOURCES,
    *(path.parent for path in SOURCES if path.name == "__main__.py"),
    *map(Path, init.texts("houses")),
]  # a file, python -m with a package, or what `launch init` writes
UNDATED = {"index", "differential"}  # the latter is written by a program, and depends on no machine


def blocks(text: str, language: str) -> List[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_every_picture_is_small_and_has_a_text_in_its_place() -> None:
    pictures = {path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.png")}
    assert [str(path) for path in pictures if (ROOT / path).stat().st_size > 100_000] == []
    shown = [(page.parent, *found) for page in PAGES for found in re.findall(r"!\[(.*?)\]\((.*?)\)", page.read_text())]
    assert [link for _, text, link in shown if len(text.split()) < 3] == []
    assert pictures <= {Path(os.path.relpath(str(folder / link), str(ROOT))) for folder, _, link in shown}


def anchors(page: Path) -> Set[str]:
    """The headings of a page as links name them."""
    headings = (
        re.sub(r"[^\w\s-]", "", heading) for heading in re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    )
    return {re.sub(r"[-\s]+", "-", heading.strip().lower()) for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_heading_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)", page.read_text())
    assert [link for link in links if link[1] not in anchors(page.parent / link[0] if link[0] else page)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_python_file_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`([\w/]+\.py)(?:::\w+)?`", page.read_text())
    named += [module.replace(".", "/") for module in re.findall(r"python -m (tests[\w.]*)", page.read_text())]
    assert [
        name for name in named if not any(f"/{path}".endswith((f"/{name}", f"/{name}.py")) for path in RUNNABLE)
    ] == []


def test_every_page_that_the_code_names_exists_and_was_not_moved() -> None:
    named = {
        page
        for room in ("cluster", "launch", "jobs")
        for path in (ROOT / room).rglob("*.py")
        for page in re.findall(r"\b(docs/[\w/-]+\.md|[a-z-]+\.md(?=#))", path.read_text())
    }
    pages = {page if page.startswith("docs/") else f"docs/{page}" for page in named}
    assert len(pages) > 4 and [page for page in pages if not (ROOT / page).exists()] == []
    assert [page for page in pages if "(moved)" in (ROOT / page).read_text().split("\n")[0]] == []


def test_a_page_of_measurements_has_a_date_and_a_command() -> None:
    pages = {path for path in (ROOT / "docs" / "measurements").glob("*.md") if path.stem not in UNDATED}
    without = {path.name for path in pages if not re.search(r"\b20\d\d-\d\d-\d\d\b", path.read_text())}
    without |= {path.name for path in pages if not re.search(r"\b(?:make|python -m) \w", path.read_text())}
    assert len(pages) > 5 and not without


def test_the_three_machines_of_the_readme_are_a_right_hosts_file(tmp_path: Path) -> None:
    (tmp_path / "three.yaml").write_text(blocks(README, "yaml")[0])
    spec = load(tmp_path / "three.yaml")
    assert [(task.name, task.host, task.gpus) for task in spec.tasks] == [
        ("ps:0", "cpu01", ()),
        ("worker:0", "gpu01", (0, 1)),
        ("worker:1", "gpu02", (0, 1)),
    ]


def test_the_job_of_the_readme_trains(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(blocks(README, "python")[0])
    ps, worker = free_ports(2)
    (tmp_path / "hosts.yaml").write_text(
        f"job: job.py\ncluster: {{ps: ['localhost:{ps}'], worker: ['localhost:{worker}']}}\n"
        f"train: {{steps: 20, towers: 2}}\nworkdir: {tmp_path}/work\n"
    )
    argv = [sys.executable, "-m", "launch", "up", str(tmp_path / "hosts.yaml")]
    ran = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout
    assert "succeeded: step 20" in ran.stdout


def test_the_page_on_gpus_has_the_cuda_that_this_tensorflow_was_built_for() -> None:
    page = (ROOT / "docs/gpus.md").read_text()
    argv = [sys.executable, "-c", blocks(page, "python")[0] + "import tensorflow\nprint(tensorflow.__version__)"]
    ran = subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=120)
    cuda, cudnn, version = ran.stdout.splitlines()
    assert f"{version} prints `{cuda}` and `{cudnn}`" in page


# Whatever else runs on this machine may have the first ports.
FREE_PORTS = 'launch() { if [ "$1" = up ]; then command launch "$@" --local; else command launch "$@"; fi; }'


def test_the_lines_of_the_readme_work_as_printed(tmp_path: Path) -> None:
    """After ``make up``: in a shell with an empty home that knows no launcher but that of the checkout's .venv."""
    lines = [line.split("  #")[0].strip() for line in "".join(blocks(README, "sh")).splitlines()]
    assert [line.split()[0] for line in lines] == ["make", ".", "launch", "launch", "launch", "launch"]
    assert lines[-1] == "launch up three.yaml"  # needs three machines
    (tmp_path / "three.yaml").write_text(blocks(README, "yaml")[0])
    (tmp_path / "hosts.yaml").write_text((ROOT / "hosts.yaml").read_text())
    (tmp_path / ".venv").symlink_to(sys.prefix)
    env = {"HOME": str(tmp_path), "PATH": os.defpath, "PYTHONPATH": str(ROOT)}
    argv = ["bash", "-e", "-c", "\n".join([FREE_PORTS, *lines[1:-1]])]
    ran = subprocess.run(
        argv, cwd=str(tmp_path), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200
    )
    assert ran.returncode == 0, ran.stdout
    assert "succeeded: step 400" in ran.stdout and "succeeded: step 100" in ran.stdout


def test_every_verb_is_in_the_groups_of_the_readme_and_has_a_row_in_the_table_of_verbs() -> None:
    groups = README.split("\n## Verbs\n")[1].split("\n\n")[0]
    rows = re.findall(r"^\| `launch ([a-z]+)( [a-z]+)?", (ROOT / "docs/verbs.md").read_text(), re.MULTILINE)
    table = {verb + word if verb + word in VERBS else verb for verb, word in rows}
    assert set(re.findall("`(.*?)`", groups)) == table == set(VERBS)


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= 900


def test_the_plan_of_the_docs_is_what_is_printed(tmp_path: Path) -> None:
    page = (ROOT / "docs/plan.md").read_text()
    (tmp_path / "vgg.yaml").write_text(blocks(page, "yaml")[0])
    command, _, expected = blocks(page, "console")[0].partition("\n")
    argv = [sys.executable, "-m", *command.split()[1:]]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(argv, cwd=str(tmp_path), env=env, capture_output=True, text=True, timeout=120)
    assert [line.rstrip() for line in ran.stdout.splitlines()] == expected.splitlines(), ran.stderr


def too_long(text: str) -> List[str]:
    """The lines of a page that an editor would have to fold: not tables, code and pictures."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line for line in prose.split("\n") if len(line) > 120 and not line.startswith(("    ", "|", "!["))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_of_a_page_is_longer_than_120_characters(page: Path) -> None:
    assert too_long(page.read_text()) == []


def test_a_long_line_is_found_and_a_row_of_a_table_is_none() -> None:
    long = "word " * 30
    assert too_long(f"{long}\n| {long}\n```\n{long}\n```\n") == [long]
