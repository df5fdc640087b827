"""An agent that died and was started again: its tasks ended with it and begin anew, and that is nobody's failure."""

from launch.agent.protocol.messages import Advanced, End, Exited, Go, Joined, Start, Stop, StopRequested
from launch.agent.supervision.agent_lives import MOST, WINDOW_S, Ends, Lives
from launch.agent.supervision.run_state import Phase
from tests.support.agent.histories import Replay, advanced, started


def lives_on(replay: Replay, host: str, incarnation: str = "1") -> None:
    """Every host joins with an incarnation, and every task runs."""
    orders = replay.at(0.0, *(Joined(each, incarnation) for each in replay.run.plan.hosts), Go())
    for order in orders:
        replay.at(0.0, started(order.task), advanced(order.task))  # type: ignore[union-attr]


def test_the_same_agent_on_a_new_link_is_no_news() -> None:
    lives = Lives()
    assert [lives.record_join("b", life, 0.0) for life in ("1", "1", "2", "2")] == [False, False, True, False]


def test_the_tasks_of_an_agent_that_died_are_started_again_by_the_next_and_it_does_not_count_as_their_failure() -> None:
    replay = Replay(restart_max=0)
    lives_on(replay, "b")
    assert replay.at(5.0, Joined("b", "2", silent_s=1.5)) == [Start("worker:1", 1)]
    assert replay.states() == {"ps:0": "running", "worker:0": "running", "worker:1": "starting"}
    assert replay.run.tasks["worker:1"].failures == 0
    incident = replay.status()["incidents"][0]
    assert (incident["kind"], incident["host"], incident["cause"]) == ("agent", "b", "its agent ended")
    assert incident["at_s"] == 3.5  # when its agent fell silent
    assert incident["did"][0]["what"] == "a new agent joined; restarted tasks: worker:1"


def test_after_a_long_silence_the_tasks_of_all_hosts_begin_again_for_gone_hosts_are_dialled_seldom() -> None:
    replay = Replay(restart_max=0, lost_after_s=10.0, patience={"b": 900.0})
    lives_on(replay, "b")
    orders = replay.at(100.0, Joined("b", "2", silent_s=90.0))
    assert orders == [Stop("ps:0", 10.0, 0), Stop("worker:0", 10.0, 0), Start("worker:1", 1)]
    assert replay.at(101.0, Exited("ps:0", 0, -15), Exited("worker:0", 0, -15)) == [
        Start("ps:0", 1), Start("worker:0", 1)
    ]  # fmt: skip
    assert replay.run.tasks["worker:0"].failures == 0


def test_a_long_silence_of_a_host_that_a_boot_could_have_brought_back_is_an_incident() -> None:
    """Its own agent is back, with tasks that it had to kill: a simulated history found steps that nothing explained."""
    replay = Replay(restart_max=0, lost_after_s=10.0, patience={"b": 900.0})
    lives_on(replay, "b")
    assert replay.at(100.0, Joined("b", "1", silent_s=30.0)) == [Stop("ps:0", 10.0, 0), Stop("worker:0", 10.0, 0)]
    (incident,) = replay.status()["incidents"]
    assert (incident["kind"], incident["host"], incident["at_s"]) == ("host", "b", 70.0)
    assert incident["cause"] == "no message for 30 s (network cut, or host suspended)"
    assert [each["what"] for each in incident["did"]] == ["b joined again; the tasks of all other hosts restart"]


def test_what_a_host_reports_of_before_its_silence_is_no_training_again() -> None:
    """It names a task that it has killed since, and its last step: a simulated history found the loss hidden."""
    replay = Replay(restart_max=0, lost_after_s=10.0, patience={"b": 900.0})
    lives_on(replay, "b")
    replay.at(60.0, Advanced("worker:0", 0, {"step": 20, "examples": 20}))
    replay.at(100.0, Joined("b", "1", silent_s=30.0))
    replay.at(100.1, started("worker:1"), Advanced("worker:1", 0, {"step": 22, "examples": 22}))
    (incident,) = replay.status()["incidents"]
    assert incident["open"] and replay.status()["global_step"] == 22


def test_what_a_task_that_restarts_for_a_long_silence_still_reports_is_no_training_again() -> None:
    """Its host was asleep, or the lead's: a simulated history found the loss hidden."""
    replay = Replay(restart_max=0, lost_after_s=10.0, patience={"b": 900.0})
    lives_on(replay, "b")
    replay.at(60.0, Advanced("worker:0", 0, {"step": 20, "examples": 20}))
    replay.at(100.0, Joined("b", "1", silent_s=30.0))
    replay.at(100.1, Exited("ps:0", 0, -15), started("ps:0", 1))
    replay.at(100.2, Advanced("worker:0", 0, {"step": 22, "examples": 22}), Exited("worker:0", 0, -15))
    replay.at(101.0, started("worker:0", 1), Advanced("worker:0", 1, {"step": 11, "examples": 1}))
    (incident,) = replay.status()["incidents"]
    assert incident["lost_steps"] == replay.status()["lost_steps"] == 22  # there is no checkpoint


def test_what_a_ps_loses_that_takes_its_time_to_restart_for_a_long_silence_is_in_the_incident() -> None:
    """The others train with the old ps meanwhile: a simulated history found steps that nothing explained."""
    replay = Replay(restart_max=0, lost_after_s=10.0, patience={"b": 900.0})
    lives_on(replay, "b")
    replay.at(60.0, Advanced("worker:0", 0, {"step": 20, "examples": 20}))
    replay.at(100.0, Joined("b", "1", silent_s=30.0))
    replay.at(100.2, Exited("worker:0", 0, -15))
    replay.at(101.0, started("worker:0", 1), Advanced("worker:0", 1, {"step": 21, "examples": 1}))
    replay.at(102.0, Advanced("worker:0", 1, {"step": 25, "examples": 5}))
    replay.at(110.0, Exited("ps:0", 0, -9), started("ps:0", 1))
    replay.at(112.0, Advanced("worker:0", 1, {"step": 11, "examples": 6, "checkpoint_step": 10}))
    (incident,) = replay.status()["incidents"]
    assert incident["lost_steps"] == replay.status()["lost_steps"] == 15
    replay.at(120.0, Advanced("worker:0", 1, {"step": 26, "examples": 20, "checkpoint_step": 10}))
    replay.at(130.0, Advanced("worker:0", 1, {"step": 16, "examples": 21, "checkpoint_step": 15}))
    assert replay.status()["incidents"][0]["lost_steps"] == 15  # what comes later has nothing to do with it


def test_while_a_run_closes_no_host_that_was_long_silent_is_said_to_restart_tasks() -> None:
    replay = Replay(restart_max=0, lost_after_s=10.0, patience={"b": 900.0})
    lives_on(replay, "b")
    replay.at(90.0, StopRequested("enough"))
    assert replay.at(100.0, Joined("b", "1", silent_s=30.0)) == [] and replay.status()["incidents"] == []


def test_what_the_dead_agent_had_still_to_say_is_passed_over() -> None:
    replay = Replay(restart_max=0)
    lives_on(replay, "b")
    replay.at(5.0, Joined("b", "2"))
    assert replay.at(5.1, Exited("worker:1", 0, -9)) == []
    assert replay.states()["worker:1"] == "starting"


def test_a_task_that_was_told_to_start_before_its_agent_was_known_to_be_dead_is_started_by_the_next() -> None:
    replay = Replay()
    lives_on(replay, "b")
    replay.at(1.0, Exited("worker:1", 0, 1, "it broke"))
    assert replay.at(2.5) == [Start("worker:1", 1)]  # to an agent that is dead
    assert replay.at(3.0, Joined("b", "2")) == [Start("worker:1", 2)]


def test_while_a_run_closes_the_tasks_of_a_dead_agent_are_gone_and_not_started_again() -> None:
    replay = Replay()
    lives_on(replay, "b")
    assert Stop("worker:1", 10.0, 0) in replay.at(4.0, StopRequested("enough"))
    replay.at(5.0, Joined("b", "2"))
    assert replay.states()["worker:1"] == "stopped"
    replay.at(6.0, Exited("worker:0", 0, -15))
    assert replay.at(7.0, Exited("ps:0", 0, -15)) == [End("stopped")]


def test_a_host_whose_agents_keep_dying_fails_the_run_and_is_named() -> None:
    replay = Replay()
    lives_on(replay, "b")
    for life in range(MOST):
        replay.at(10.0 + life, Joined("b", f"again {life}"))
    assert replay.run.state.phase is Phase.TRAINING
    replay.at(20.0, Joined("b", "once more"))
    often = f"b: its agent ended {MOST + 1} times within 600 s"
    assert replay.run.state.cause == f"{often}; see the run's agent.log on that host"


def test_deaths_that_lie_far_apart_do_not_add_up() -> None:
    ends, times = Ends(), [end * WINDOW_S / 2 for end in range(20)]
    for at in times:
        ends.add(at)
    assert not ends.too_many(times[-1])


def test_of_very_many_ends_only_as_many_are_kept_as_are_too_many() -> None:
    ends = Ends()
    for _ in range(10 * MOST):
        ends.add(1.0)
    assert ends.too_many(1.0 + WINDOW_S) == MOST + 1
    assert ends.too_many(2.0 + WINDOW_S) == 0


def test_the_incident_of_an_agent_without_tasks_is_over_with_the_next_steps() -> None:
    replay = Replay("ps:0@a", "worker:0@a", "evaluator:0@b", min_workers=1)
    lives_on(replay, "b")
    replay.at(1.0, Exited("evaluator:0", 0, 1, retry=False))
    replay.at(5.0, Joined("b", "2", silent_s=1.0))
    for moment, step in ((6.0, 30), (7.0, 31)):
        replay.at(moment, advanced("worker:0", step, examples=step))
    incident = replay.status()["incidents"][-1]
    assert (incident["kind"], incident["open"], incident["again_s"]) == ("agent", False, 2.0)
