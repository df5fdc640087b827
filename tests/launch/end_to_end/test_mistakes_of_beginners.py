"""A beginner's mistakes in a first job, made for real: each ends at the first try, and names the next step."""

import re
import sys
from pathlib import Path
from typing import NamedTuple, Tuple

import pytest

from launch.agent.linux.sockets import free_ports
from launch.verbs import init
from tests.support.launch.launcher import shown_here
from tests.support.launch.machine import left_in, living_under
from tests.support.nightly import few

LOCAL = ("--local",)


class Mistake(NamedTuple):
    """What stands in a file of ``launch init``, what a beginner writes instead, and the end of what is printed."""

    file: str
    right: str
    wrong: str
    code: int
    sentence: str  # a regular expression
    options: Tuple[str, ...] = LOCAL


MISTAKES = {
    "a file that is missing": Mistake(
        "job.py", '"data.csv"', '"date.csv"', 1,
        r"/job\.py:10: \w+Error: date\.csv not found, in `rows = np\.loadtxt.*`; put the file beside the job: .*",
    ),
    "a loss that is a mean": Mistake(
        "job.py", "return tf.square(error),", "return tf.reduce_mean(tf.square(error)),", 1,
        r"/job\.py:27: model returned .*; expected one loss per example, of shape \[batch\]; leave the mean to .*",
    ),
    "tf.Variable": Mistake(
        "job.py", 'tf.get_variable("weights", [3, 1])', 'tf.Variable(tf.zeros([3, 1]), name="weights")', 0,
        r"held-out data: loss \d\d(\.\d+)?, error 3\.\d+",
    ),
    "no repeat()": Mistake(
        "job.py", ".repeat()", "", 1,
        r"/job\.py:22: the dataset of inputs ended after step \d+, .*; add \.repeat\(\) to it",
    ),
    "a typo in a key": Mistake(
        "hosts.yaml", "batch_size:", "batchsize:", 2,
        r"/hosts\.yaml:\d+:3: train\.batchsize: .* did you mean 'batch_size'\?",
    ),
    "a typo in a function": Mistake(
        "job.py", 'tf.get_variable("w', 'tf.get_vriable("w', 1,
        r"/job\.py:15: AttributeError: .*'get_vriable', in `weights = tf\.get_vriable\(.*`",
    ),
    "a Python without TensorFlow": Mistake(
        "hosts.yaml", "ps: [localhost]\n  worker: [{host: localhost, count: 2}]",
        "ps: [{host: localhost, port: PORT, python: BARE}]\n  worker: [localhost]", 3,
        r"localhost: .*/bare: expected a Python with TensorFlow, found none there; let `launch setup` build .*\n.*", (),
    ),
    "hosts that this machine does not know, without --local": Mistake(
        "hosts.yaml", "ps: [localhost]\n  worker: [{host: localhost", "ps: [a.invalid]\n  worker: [{host: b.invalid", 3,
        r"list every obstacle with `launch check .*`; `launch up --local .*` trains on this machine alone", (),
    ),
}  # fmt: skip


# Those that the chief finds while it builds its graph end in one way; tests/jobs/test_mistakes.py has their sentences.
ALIKE = {"a loss that is a mean", "a typo in a function"}


@pytest.mark.parametrize("name", few(MISTAKES, set(MISTAKES) - ALIKE))
def test_it_ends_at_the_first_try_with_the_next_step(name: str, tmp_path: Path) -> None:
    mistake = MISTAKES[name]
    text = init.write(tmp_path / "houses")[mistake.file]
    text = re.sub(r" {2,}#.*", "", text) if mistake.file == "hosts.yaml" else text
    assert mistake.right in text
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without the packages
    bare.chmod(0o755)
    wrong = mistake.wrong.replace("BARE", str(bare)).replace("PORT", str(free_ports(1)[0]))
    (tmp_path / "houses" / mistake.file).write_text(text.replace(mistake.right, wrong))
    hosts_file = tmp_path / "houses" / "hosts.yaml"
    hosts_file.write_text(f"{hosts_file.read_text()}workdir: {tmp_path}/w\n")
    ran = shown_here("up", *mistake.options, str(hosts_file), HOME=str(tmp_path))
    assert ran.returncode == mistake.code, ran.stdout
    assert re.search(f"{mistake.sentence}$", ran.stdout.rstrip()), ran.stdout
    assert mistake.code != 3 or not list((tmp_path / "w").rglob("attempt_*.log"))  # before any task starts
    assert not list((tmp_path / "w").rglob("attempt_1.log"))  # nothing is tried twice: that would take the time
    assert left_in(tmp_path / "w") == [] and list(living_under(tmp_path)) == []
