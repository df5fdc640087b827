"""The order in which processes of pytest take test files: the longest first, so that none begins when the others end.

xdist's own order, the most tests first, has the shortest tests first: a test that waits a minute is alone in its file.
``SECONDS`` are of two busy cores; their ranks matter. ``--durations=0`` shows new ones. A file that is missing here is
taken last, and other processes wait for it.
"""

from typing import Any, Optional

from xdist.scheduler import LoadFileScheduling

SECONDS = {
    "simulation/test_world.py": 240,
    "simulation/mutants/test_mutants.py": 200,
    "launch/end_to_end/test_on_hosts.py": 120,
    "differential/constructions/test_sample.py": 110,
    "cluster/checkpoints/test_live_save.py": 105,
    "launch/end_to_end/test_leftovers_on_hosts.py": 102,
    "launch/end_to_end/test_elastic_on_hosts.py": 94,
    "launch/end_to_end/test_quiet_runs.py": 90,
    "simulation/launcher/test_launcher.py": 80,
    "launch/agent/test_agents.py": 72,
    "launch/end_to_end/test_in_podman.py": 71,
    "simulation/test_disks.py": 70,
    "launch/environments/test_setup_on_hosts.py": 70,
    "cluster/test_training.py": 70,
    "launch/end_to_end/test_foreign_programs_on_hosts.py": 70,
    "test_docs.py": 68,
    "cluster/recommend/tables/test_against_one_process.py": 65,
    "cluster/steps/test_overlapped_sync.py": 65,
    "launch/end_to_end/test_security_on_hosts.py": 65,
    "differential/test_sample.py": 62,
    "test_arrangements.py": 60,
    "cluster/recommend/tables/test_checkpoints.py": 60,
    "launch/end_to_end/test_two_networks_on_hosts.py": 60,
    "launch/end_to_end/test_mute_hosts_on_hosts.py": 60,
    "launch/monitoring/test_seen_from_here.py": 54,
    "test_site.py": 53,
    "cluster/test_shards.py": 52,
    "launch/end_to_end/test_up_without_sshd.py": 50,
    "launch/end_to_end/test_foreign_programs.py": 50,
    "launch/run/test_failover_on_hosts.py": 47,
    "launch/end_to_end/test_drain.py": 47,
    "launch/end_to_end/test_frozen_runs.py": 45,
    "cluster/recommend/once/test_async_steps.py": 45,
    "launch/end_to_end/test_up.py": 45,
    "cluster/recommend/once/test_once_steps.py": 45,
    "launch/end_to_end/test_local_names.py": 45,
    "launch/end_to_end/test_cut_off.py": 45,
    "launch/end_to_end/test_mistakes_of_beginners.py": 43,
    "cluster/serving/test_export.py": 43,
    "launch/end_to_end/test_export.py": 42,
    "launch/agent/protocol/test_broken_links.py": 42,
    "cluster/training/test_warm_start.py": 42,
    "cluster/test_sparse_training.py": 41,
    "cluster/recommend/tables/test_drawn_models.py": 40,
    "test_commands.py": 40,
    "launch/end_to_end/test_verbs.py": 40,
    "launch/run/test_reboot_on_hosts.py": 40,
    "launch/end_to_end/ends/test_ends.py": 40,
    "launch/end_to_end/test_stop.py": 40,
    "launch/openssh/test_over_openssh.py": 40,
    "cluster/verify/test_verification.py": 38,
    "cluster/serving/test_evaluator.py": 38,
    "launch/check/test_check_on_hosts.py": 37,
    "launch/end_to_end/test_working_folders.py": 36,
    "cluster/checkpoints/test_deltas.py": 35,
    "test_programs.py": 34,
    "cluster/steps/test_stock_worker.py": 32,
    "cluster/steps/test_sync_worker.py": 32,
    "launch/run/test_restart.py": 31,
    "simulation/test_many.py": 30,
    "simulation/test_shorten.py": 30,
    "test_tutorial.py": 30,
    "cluster/training/test_local_steps.py": 30,
    "cluster/steps/test_every_death.py": 30,
    "launch/history/test_remembered.py": 29,
    "launch/page/test_in_browser.py": 28,
    "support/hosts/test_host.py": 27,
    "test_recommend_page.py": 26,
    "launch/plan/test_estimate.py": 25,
    "cluster/steps/test_local_steps.py": 25,
    "cluster/steps/test_async_worker.py": 25,
    "jobs/test_pictures.py": 24,
    "jobs/test_recommend.py": 23,
    "jobs/test_synthetic.py": 23,
    "launch/agent/service/test_keeper.py": 23,
    "launch/verbs/test_runs.py": 22,
    "launch/diagnosis/test_diagnose_on_hosts.py": 22,
    "launch/remote/test_over_ssh.py": 21,
    "launch/history/test_newest_run.py": 21,
    "requirements/test_bootstrap.py": 21,
    "jobs/test_jobs.py": 20,
    "launch/hosts/test_channels.py": 20,
    "jobs/test_describe.py": 20,
    "launch/end_to_end/test_reordered_hosts.py": 20,
    "launch/run/test_verify.py": 20,
    "requirements/test_bootstrap_failures.py": 20,
    "launch/remote/test_with_asyncssh.py": 20,
    "launch/end_to_end/test_rules_of_a_run.py": 20,
    "launch/run/test_outliving_on_hosts.py": 20,
    "launch/history/test_generation.py": 20,
    "cluster/verify/test_beside_plain.py": 20,
    "cluster/test_in_graph.py": 19,
    "cluster/checkpoints/test_warm_start.py": 18,
    "launch/slurm/test_on_slurm.py": 18,
    "cluster/checkpoints/test_streamed_saver.py": 17,
    "cluster/test_backup_workers.py": 17,
    "cluster/recommend/tables/test_loaded_rows.py": 16,
    "benchmarks/speed/test_running.py": 15,
    "test_wheel.py": 15,
    "launch/end_to_end/test_program_progress.py": 15,
    "launch/end_to_end/test_versions.py": 15,
    "cluster/training/test_graph_agreement.py": 15,
    "launch/agent/verbs/test_down.py": 14,
    "test_architecture.py": 14,
    "launch/end_to_end/test_two_hosts_here.py": 14,
    "launch/check/test_check_here.py": 12,
    "launch/end_to_end/test_no_locks.py": 11,
    "launch/test_scale.py": 11,
    "cluster/model/test_shares.py": 11,
    "jobs/test_pipeline.py": 10,
    "cluster/recommend/tables/test_store.py": 10,
    "launch/agent/service/test_liveness_pipe.py": 10,
    "launch/agent/gpus/test_booking.py": 10,
    "support/hosts/test_share.py": 10,
    "launch/end_to_end/test_selecting_verbs.py": 10,
    "cluster/training/test_training_metrics.py": 10,
    "cluster/training/test_step_errors.py": 10,
    "cluster/verify/test_verified_run.py": 10,
    "launch/test_answers.py": 9,
    "launch/agent/test_bootstrap.py": 9,
    "differential/test_ways.py": 9,
    "launch/agent/test_hostile_files.py": 8,
    "cluster/training/test_best_checkpoint.py": 8,
    "launch/run/test_resume.py": 8,
    "launch/diagnosis/test_diagnose.py": 8,
    "launch/agent/service/test_predecessors.py": 7,
    "launch/verbs/test_tensorboard.py": 7,
    "test_from_the_textbook.py": 7,
    "launch/monitoring/test_page_server.py": 7,
    "launch/agent/tasks/test_log_reader.py": 6,
    "support/training/test_processes.py": 6,
    "launch/monitoring/test_exporter.py": 6,
    "launch/agent/facts/test_host.py": 6,
    "launch/remote/test_keys.py": 6,
    "launch/verbs/test_shell_completion.py": 6,
    "jobs/test_main.py": 6,
    "launch/verbs/test_prune.py": 6,
    "launch/agent/environments/test_builder.py": 6,
    "launch/agent/verbs/test_check.py": 6,
    "launch/agent/supervision/test_incidents.py": 5,
}


class LongestFirst(LoadFileScheduling):  # type: ignore[misc]
    """Like ``--dist loadfile``, with the files of ``SECONDS`` before all others."""

    def _assign_work_unit(self, node: Any) -> None:
        self.workqueue.move_to_end(max(self.workqueue, key=seconds), last=False)
        super()._assign_work_unit(node)

    def remove_node(self, node: Any) -> Optional[str]:
        """Queue what a process that died had left, without the files it had completed; return the test it died in.

        xdist 3.5 queues those too. A process that takes one as its next file has nothing to run, and waits for ever.
        """
        files = self.assigned_work[node]
        for file in [file for file, tests in files.items() if all(tests.values())]:
            del files[file]
        died_in: Optional[str] = super().remove_node(node)
        return died_in


def seconds(file: str) -> int:
    """Return how long the tests of a file take; 0 for a file that takes a moment."""
    return SECONDS.get(file.replace("tests/", "", 1), 0)
