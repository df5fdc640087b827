"""Which words of a command name a folder in which no checkpoint is whole."""

import json
from typing import List

import pytest

from launch.plan.split_folders import split_folders
from tests.launch.plan.plans import TWO, Read

HERE = "\ncluster: {ps: [gpu01], worker: [gpu01, gpu02]}"


def words(read: Read, command: List[str], cluster: str = TWO) -> List[str]:
    return [
        each.what.split(" is a different")[0]
        for each in split_folders(read(f"command: {json.dumps(command)}{cluster}"))
    ]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["--train_dir=logdir"], "--train_dir=logdir"),
        (["--model-dir", "./m"], "--model-dir ./m"),
        (["-logdir=out/x"], "-logdir=out/x"),
        (["--my_checkpoint_path=c"], "--my_checkpoint_path=c"),
        (["--model_dir={run_folder}/m"], "--model_dir={run_folder}/m"),
        (["--model_dir={state_folder}"], "--model_dir={state_folder}"),
    ],
)
def test_a_folder_that_is_another_one_on_each_host_is_named(read: Read, given: List[str], named: str) -> None:
    assert words(read, ["train", *given]) == [named]
    assert words(read, ["train", *given], HERE) == []


@pytest.mark.parametrize(
    "given",
    [
        ["--train_dir=/shared/x"], ["--train_dir", "~/x"], ["--train_dir=hdfs://n/x"], ["--train_dir=$DIR"],
        ["--data_dir=data"], ["--train_dir"], ["--train_dir="], ["--log_dir", "--steps=3"], ["--model=resnet"],
    ],
)  # fmt: skip
def test_other_words_are_not(read: Read, given: List[str]) -> None:
    assert words(read, ["train", *given]) == []


def test_a_finding_names_the_hosts_and_the_way_out(read: Read) -> None:
    (found,) = split_folders(read('command: [t, "--logdir={state_folder}"]' + TWO))
    assert found.hosts == ("gpu01", "cpu01", "cpu02")
    assert found.mend.startswith("name a folder that these hosts share, or run every ps on gpu01: ")
    assert "workdir on a disk" in found.mend
    (found,) = split_folders(read("command: {ps: [t, --logdir=a], worker: [t, --logdir=b]}" + TWO))
    assert found.what.startswith("--logdir=b is a different") and "workdir" not in found.mend


ALONE = "\ncluster: {worker: [gpu01, gpu01, gpu02]}"


@pytest.mark.parametrize("given", ["--output_dir=out", "--ckpt-dir=c", "--model_dir={state_folder}"])
def test_without_a_ps_a_folder_that_workers_of_other_hosts_do_not_see_is_named(read: Read, given: str) -> None:
    (found,) = split_folders(read(f'command: [t, "{given}"]{ALONE}'))
    assert found.hosts == ("gpu01", "gpu02")
    assert (
        found.what
        == f"{given} is a different folder on each host, and after a restart the workers find different checkpoints"
    )
    assert "unless every worker saves, or one worker restores for all" in found.mend
    assert ("workdir on a disk" in found.mend) == ("{" in given)
    assert words(read, ["t", given], "\ncluster: {worker: [gpu01, gpu01]}") == []


@pytest.mark.parametrize("given", ["--log_dir=logs", "--summary-path=s", "--output_dir=/shared/out", "--seed=1"])
def test_without_a_ps_other_words_are_not(read: Read, given: str) -> None:
    assert words(read, ["t", given], ALONE) == []


def test_a_job_has_no_such_words(read: Read) -> None:
    assert split_folders(read("job: digits" + TWO)) == []
