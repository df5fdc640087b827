"""The key ``keep``, as ``launch plan`` shows it."""

import pytest

from cluster.protocol.settings import DEFAULT_KEEP, Keep
from launch.plan.text_view import keep_line
from tests.launch.plan.plans import Read


@pytest.mark.parametrize(
    ("keep", "rule", "words"),
    [
        ("null", DEFAULT_KEEP, "r that left nothing but logs and records, 90 days after their last use"),
        ("{}", Keep(), ""),
        ("{runs: 20}", Keep(20), "r beyond the newest 20"),
        (
            "{runs: 20, days: 0.5, gib: 50}", Keep(20, 0.5, 50),
            "r beyond the newest 20, or 0.5 days after their last use, or beyond 50 GiB",
        ),
    ],
)  # fmt: skip
def test_a_rule_is_that_of_the_file_and_is_shown_in_a_line(read: Read, keep: str, rule: Keep, words: str) -> None:
    spec = read(f"job: digits\ncluster: {{ps: [a], worker: [a]}}\nkeep: {keep}")
    assert spec.keep == rule
    assert keep_line(spec.name, rule) == (
        f"keep: hosts remove past runs of {words}" if words else "keep: hosts remove no past run of r"
    )
