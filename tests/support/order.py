"""The order in which processes of pytest take test files: the longest first, so that none begins when the others end.

xdist's own order, the most tests first, has the shortest tests first: a test that waits a minute is alone in its file.
``SECONDS`` are of two cores that do nothing else; their ranks matter. ``--durations=0`` shows new ones.
"""

from typing import Any

from xdist.scheduler import LoadFileScheduling

SECONDS = {
    "launch/end_to_end/test_on_hosts.py": 198,
    "test_commands.py": 147,
    "chaos/test_short.py": 125,
    "cluster/test_training.py": 110,
    "cluster/tables/test_drawn_models.py": 100,
    "test_arrangements.py": 93,
    "test_docs.py": 87,
    "benchmarks/speed/test_running.py": 85,
    "launch/environments/test_setup_on_hosts.py": 73,
    "launch/end_to_end/test_leftovers_on_hosts.py": 62,
    "launch/end_to_end/test_elastic_on_hosts.py": 75,
    "launch/end_to_end/test_drain.py": 45,
    "cluster/steps/test_overlapped_sync.py": 61,
    "cluster/tables/test_checkpoints.py": 60,
    "launch/end_to_end/test_security_on_hosts.py": 55,
    "launch/end_to_end/test_frozen_runs.py": 52,
    "differential/test_sample.py": 50,
    "cluster/tables/test_against_one_process.py": 50,
    "launch/monitoring/test_seen_from_here.py": 46,
    "differential/test_generated.py": 45,
    "test_site.py": 45,
    "launch/run/test_failover_on_hosts.py": 44,
    "launch/agent/test_agents.py": 42,
    "jobs/test_describe.py": 42,
    "cluster/training/test_evaluator.py": 40,
    "launch/agent/protocol/test_broken_links.py": 40,
    "launch/hosts/test_channels.py": 39,
    "launch/end_to_end/test_cut_off.py": 39,
    "test_architecture.py": 38,
    "launch/plan/test_estimate.py": 37,
    "attack/test_short.py": 37,
    "launch/end_to_end/test_up.py": 36,
    "launch/end_to_end/test_verbs.py": 35,
    "benchmarks/test_starts.py": 35,
    "cluster/test_backup_workers.py": 34,
    "launch/check/test_check_on_hosts.py": 34,
    "launch/end_to_end/test_up_without_sshd.py": 30,
    "cluster/steps/test_stock_worker.py": 28,
    "launch/page/test_in_browser.py": 28,
    "launch/end_to_end/test_mistakes_of_beginners.py": 27,
    "launch/run/test_restart.py": 26,
    "launch/end_to_end/test_local_names.py": 26,
    "cluster/test_sparse_training.py": 25,
    "launch/diagnosis/test_diagnose_on_hosts.py": 23,
    "cluster/verify/test_verification.py": 23,
    "launch/end_to_end/test_reordered_hosts.py": 22,
    "jobs/test_jobs.py": 22,
    "test_tutorial.py": 22,
    "launch/remote/test_over_ssh.py": 20,
    "jobs/test_pictures.py": 20,
    "test_programs.py": 19,
    "jobs/test_recommend.py": 19,
    "cluster/test_in_graph.py": 17,
    "launch/end_to_end/test_working_folders.py": 17,
    "launch/agent/verbs/test_down.py": 17,
    "cluster/checkpoints/test_streamed_saver.py": 16,
    "cluster/steps/test_sync_worker.py": 16,
    "differential/test_ways.py": 15,
    "cluster/trace/test_traced_training.py": 15,
    "support/hosts/test_host.py": 15,
    "launch/run/test_verify.py": 14,
    "test_wheel.py": 14,
    "jobs/test_synthetic.py": 13,
    "launch/history/test_remembered.py": 12,
    "launch/history/test_newest_run.py": 12,
    "launch/agent/gpus/test_booking.py": 11,
    "cluster/steps/test_async_worker.py": 11,
    "jobs/test_main.py": 11,
    "test_from_the_textbook.py": 11,
    "launch/check/test_check_here.py": 10,
    "launch/test_main.py": 10,
    "launch/agent/service/test_liveness_pipe.py": 10,
    "support/hosts/test_share.py": 10,
    "cluster/variables/test_tables.py": 9,
    "cluster/checkpoints/test_saver.py": 9,
    "cluster/updates/test_imported_update.py": 9,
    "launch/agent/test_bootstrap.py": 9,
    "jobs/test_pipeline.py": 9,
    "launch/end_to_end/test_two_hosts_here.py": 8,
    "cluster/model/test_shares.py": 8,
    "launch/remote/test_with_asyncssh.py": 8,
    "support/hosts/test_cleanup.py": 8,
    "launch/test_answers.py": 8,
    "launch/test_cli.py": 8,
    "requirements/test_bootstrap_failures.py": 8,
    "cluster/test_graph_size.py": 7,
    "launch/monitoring/test_tensorboard.py": 7,
    "launch/agent/verbs/test_board.py": 7,
    "cluster/training/test_graph_agreement.py": 7,
    "launch/agent/facts/test_host.py": 6,
    "launch/agent/test_hostile_files.py": 6,
    "launch/agent/verbs/test_check.py": 6,
    "launch/monitoring/test_page_server.py": 6,
    "launch/view/test_live_view_of_a_run.py": 6,
    "launch/end_to_end/test_no_locks.py": 6,
    "launch/remote/test_keys.py": 5,
    "launch/agent/diagnosis/test_sections.py": 5,
    "launch/run/test_resume.py": 5,
    "support/hosts/test_ssh.py": 5,
    "support/training/test_processes.py": 5,
}


class LongestFirst(LoadFileScheduling):  # type: ignore[misc]
    """Like ``--dist loadfile``, with the files of ``SECONDS`` before all others."""

    def _assign_work_unit(self, node: Any) -> None:
        self.workqueue.move_to_end(max(self.workqueue, key=seconds), last=False)
        super()._assign_work_unit(node)


def seconds(file: str) -> int:
    """Return how long the tests of a file take; 0 for a file that takes a moment."""
    return SECONDS.get(file.replace("tests/", "", 1), 0)
