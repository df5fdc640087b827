"""The bounds are those of the network cards, whatever is trained."""

import pytest

from tests.benchmarks.speed.bounds import bytes_per_s, colocated_s, one_way_s, overlapped_s, serial_s, tcp_share


def test_tcp_carries_the_packet_less_its_headers() -> None:
    assert tcp_share() == 1448 / 1514
    assert bytes_per_s(1000) == pytest.approx(119.55e6, rel=1e-4)


def test_a_workers_own_card_bounds_a_step_where_there_are_ps_enough() -> None:
    assert one_way_s(40e6, workers=4, ps=8, rate=20e6) == 2.0


def test_the_cards_of_the_ps_bound_a_step_where_there_are_few_of_them() -> None:
    assert one_way_s(40e6, workers=4, ps=2, rate=20e6) == 4.0


def test_reading_first_and_then_giving_takes_twice_as_long_as_both_at_once() -> None:
    assert serial_s(40e6, 4, 4, 20e6) == 2 * overlapped_s(40e6, 4, 4, 20e6)


def test_on_shared_hosts_the_bound_is_the_all_reduces() -> None:
    assert colocated_s(40e6, hosts=4, rate=20e6) == 3.0
    assert colocated_s(40e6, hosts=1, rate=20e6) == 0.0
