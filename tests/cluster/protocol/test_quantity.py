"""A noun behind a number is in the singular for one, and in the plural for all other numbers."""

from cluster.protocol.quantity import quantity


def test_only_one_is_singular() -> None:
    assert [quantity(number, "worker") for number in (0, 1, 2)] == ["0 workers", "1 worker", "2 workers"]
    assert [quantity(number, "process", "processes") for number in (1, 1200)] == ["1 process", "1,200 processes"]
