"""A host lists the runs of every name that it took part in; only their lead reports how they went, by its own clock."""

import os
from pathlib import Path
from typing import Any, List

import pytest

from cluster.protocol.typed_json import to_values
from launch.agent.linux.processes import inspect
from launch.agent.state import process_records, runs
from launch.agent.state.run_folder import RunFolder
from launch.agent.verbs import runs as verb
from launch.agent.wire.verb_requests import RunsRequest
from launch.status.incident_status import IncidentStatus
from launch.status.run import EffectiveTime, KnownRun, RunRecord, RunStatus

OLD, NEW = "a-20261120-120000", "b-20261121-120000"
STARTED, ENDED = "2026-11-20T12:00:01+00:00", "2026-11-20T13:00:00+00:00"


def make_run(workdir: Path, name: str, generation: int, host: str = "h", lead: str = "h", **plan: Any) -> RunFolder:
    folder = RunFolder(workdir, name, host)
    folder.create()
    runs.note_generation(folder, generation)
    folder.write("plan.json", {"lead": {"host": lead}, "file": "r.yaml", "user": "anna@desk7", **plan})
    return folder


def publish(folder: RunFolder, **fields: Any) -> None:
    folder.write("status.json", to_values(RunStatus(run=folder.run, started=STARTED, **fields)))


def listed(workdir: Path, host: str = "h") -> List[KnownRun]:
    return verb.runs(RunsRequest(host, str(workdir))).runs


def test_runs_of_all_names_are_listed_the_one_that_began_last_first(tmp_path: Path) -> None:
    make_run(tmp_path, NEW, 8)
    make_run(tmp_path, OLD, 9)
    make_run(tmp_path, "c-20261122-120000", 10, host="other")
    assert [(each.record.run, each.record.name) for each in listed(tmp_path)] == [(OLD, "a"), (NEW, "b")]
    assert listed(tmp_path / "none") == []


def test_the_lead_reports_how_its_run_went(tmp_path: Path) -> None:
    folder = make_run(tmp_path, OLD, 9, run_plan={"hosts": ["h", "i"]})
    failures = [IncidentStatus(1), IncidentStatus(4)]  # a long list keeps the first and the newest
    publish(
        folder, state="failed", cause="boom", ended=ENDED, updated=ENDED, global_step=8, steps=20, incidents=failures,
        effective=EffectiveTime(0.75, 3.0, 4.0),
    )  # fmt: skip
    assert listed(tmp_path) == [
        KnownRun(9, False, RunRecord(
            OLD, "a", "r.yaml", "anna@desk7", "h", ["h", "i"], "failed", "boom", STARTED, ENDED, ENDED, 8, 20, 4, 0.75
        ))
    ]  # fmt: skip


def test_the_lead_names_the_run_that_its_run_has_continued(tmp_path: Path) -> None:
    make_run(tmp_path, OLD, 9, resume_from={"run": NEW, "step": 840})
    (found,) = listed(tmp_path)
    assert (found.record.continues, found.record.began_at) == (NEW, 840)


def test_a_member_reports_who_leads_and_nothing_of_the_run(tmp_path: Path) -> None:
    folder = make_run(tmp_path, OLD, 9, lead="i")
    folder.write("status.json", {"run": OLD, "tasks": {}})
    (found,) = listed(tmp_path)
    assert (found.record.lead, found.record.state, found.record.started) == ("i", None, None)


def test_a_run_whose_agent_is_gone_has_failed_and_the_record_says_since_when(tmp_path: Path) -> None:
    publish(make_run(tmp_path, OLD, 9), state="running")
    (found,) = listed(tmp_path)
    assert found.record.state == "failed" and "the agent on h ended after" in (found.record.cause or "")
    assert found.record.ended is not None


def test_a_run_that_lives_has_the_state_that_it_published_or_starts(tmp_path: Path) -> None:
    folder, me = make_run(tmp_path, OLD, 9), inspect(os.getpid())
    assert me is not None
    process_records.write_agent(folder, me, me)
    (found,) = listed(tmp_path)
    assert (found.lives, found.record.state) == (True, "starting")
    publish(folder, state="running")
    assert listed(tmp_path)[0].record.state == "running"


def test_a_member_that_lives_does_not_report_that_the_run_starts(tmp_path: Path) -> None:
    folder, me = make_run(tmp_path, OLD, 9, lead="i"), inspect(os.getpid())
    assert me is not None
    process_records.write_agent(folder, me, me)
    assert [(each.lives, each.record.state) for each in listed(tmp_path)] == [(True, None)]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"state": 3}', "[" * 100_000])
def test_a_record_in_pieces_leaves_the_state_unknown(text: str, tmp_path: Path) -> None:
    (make_run(tmp_path, OLD, 9).own / "status.json").write_text(text)
    assert [each.record.state for each in listed(tmp_path)] == [None]


def test_a_run_of_an_older_version_is_that_of_the_files_owner(tmp_path: Path) -> None:
    make_run(tmp_path, OLD, 9, user=None)
    (found,) = listed(tmp_path)
    assert found.record.user and "@" not in found.record.user
