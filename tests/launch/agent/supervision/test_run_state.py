"""A run turns from phase to phase as its table has it, and in no other way."""

import itertools

import pytest

from launch.agent.supervision.run_state import TURNS, IllegalTurn, Phase, RunState

LEGAL = {
    ("gathering", "training"), ("gathering", "closing"),
    ("training", "re-forming"), ("training", "closing"),
    ("re-forming", "training"), ("re-forming", "closing"),
    ("closing", "ended"),
}  # fmt: skip
WAY = {  # to each phase from the first
    Phase.GATHERING: (),
    Phase.TRAINING: (Phase.TRAINING,),
    Phase.REFORMING: (Phase.TRAINING, Phase.REFORMING),
    Phase.CLOSING: (Phase.CLOSING,),
    Phase.ENDED: (Phase.CLOSING, Phase.ENDED),
}


def enter(state: RunState, phase: Phase) -> None:
    """Turn to a phase by the method for it."""
    if phase is Phase.CLOSING:
        state.close("stopped", "enough")
    else:
        state.turn(phase)


def run_in(phase: Phase) -> RunState:
    """A run in this phase."""
    state = RunState()
    for each in WAY[phase]:
        enter(state, each)
    return state


@pytest.mark.parametrize(("before", "after"), list(itertools.product(Phase, Phase)), ids=lambda phase: str(phase.value))
def test_every_turn_is_legal_or_an_error_that_names_both_phases_and_changes_nothing(
    before: Phase, after: Phase
) -> None:
    state = run_in(before)
    result = state.result
    if (before.value, after.value) in LEGAL:
        enter(state, after)
        assert state.phase is after
        return
    with pytest.raises(IllegalTurn, match=f"^{before.value}: expected .* found {after.value}$"):
        enter(state, after)
    assert (state.phase, state.result) == (before, result)


def test_a_run_can_close_in_every_phase_before_it_and_ends_only_from_there() -> None:
    assert {phase for phase in Phase if Phase.CLOSING in TURNS[phase]} == set(Phase) - {Phase.CLOSING, Phase.ENDED}
    assert {phase for phase in Phase if Phase.ENDED in TURNS[phase]} == {Phase.CLOSING}


def test_a_run_closes_only_with_a_result_and_the_first_stands() -> None:
    state = run_in(Phase.TRAINING)
    with pytest.raises(IllegalTurn, match="expected a result"):
        state.turn(Phase.CLOSING)
    state.close("failed", "worker:1@b: it broke")
    with pytest.raises(IllegalTurn):
        state.close("succeeded", None)
    assert (state.result, state.cause) == ("failed", "worker:1@b: it broke")


def test_the_published_state_is_the_result_only_once_every_task_is_gone() -> None:
    state = RunState()
    assert state.label == "starting"
    state.turn(Phase.TRAINING)
    state.was_up = True
    state.close("failed", None)
    assert state.label == "running"
    state.turn(Phase.ENDED)
    assert state.label == "failed"
