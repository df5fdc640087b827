"""What is read of the chief's lines and of two readings of the counters."""

from tests.benchmarks.recommend.cases import SYSTEMS, Case, case_of
from tests.benchmarks.recommend.running import Lines, Pace, Reading, keys_of, rates

LINES = [
    (10.0, "joined at step 0"),
    (11.0, "step 1/100 loss 0.7 5 ms/step"),
    (12.0, "step 21/100"),
    (13.0, "step 60/100"),
    (15.0, "step 81/100"),
    (16.0, "step 100/100"),
    (17.0, "finished at step 100: loss 0.5, auc 0.712"),
]


def test_counters_are_read_after_the_warm_up_and_while_every_task_is_still_there() -> None:
    lines = Lines(Pace(steps=100, warm=20))
    read = []
    for line in LINES:
        if lines.take(*line):
            read.append(lines.newest)
            lines.readings.append(Reading(*lines.newest, received=0, sent=0, used_s=0, busy=0))
    assert read == [(12.0, 21), (15.0, 81)]
    assert (lines.first_s, lines.auc) == (11.0, 0.712)


def test_rates_are_those_of_all_workers_and_bytes_those_of_one_worker_in_one_step() -> None:
    first, last = Reading(5.0, 20, 1000, 0, 3.0, 4.0), Reading(10.0, 30, 81_000, 40_000, 11.0, 14.0)
    found = rates(Case("dlrm", 2, 4, batch=512), first, last)
    assert found["examples_per_s"] == 10 * 4 * 512 / 5 and found["examples_per_cpu_s"] == 10 * 4 * 512 / 8
    assert (found["received_kb"], found["sent_kb"]) == (2.0, 1.0)
    assert (found["cores"], found["busy_cores"]) == (1.6, 2.0)


def test_a_case_is_read_from_its_name() -> None:
    for case in (Case("dlrm", 2, 4), Case("wide_and_deep", 1, 8, 100.0)):
        assert case_of(case.name.replace("-", ":")) == case


def test_only_a_coordinated_system_has_a_chief_of_its_own() -> None:
    case = Case("dlrm", 2, 3)
    assert len(keys_of(case, SYSTEMS["ours"])) == 5 and len(keys_of(case, SYSTEMS["alone"])) == 1
    assert keys_of(case, SYSTEMS["coordinator"])[-1] == ("chief", 0)
