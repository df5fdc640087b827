"""What travels together, and in which order."""

from cluster.variables.buckets import ALONE, Parcel, packed

SIZES = {"a": 10, "b": 10, "c": 100, "d": 30, "e": 30, "f": 50}


def test_small_variables_of_a_server_share_a_parcel_and_large_ones_have_one_each() -> None:
    found = packed(list("abcdef"), SIZES, dict.fromkeys(SIZES, 0), piece=60)
    assert [parcel.names for parcel in found] == [("a", "b"), ("c",), ("d", "e"), ("f",)]
    assert [parcel.place for parcel in found] == [0, 1, 2, 3]


def test_parcels_of_each_server_are_in_the_order_of_the_names() -> None:
    servers = {"a": 1, "b": 0, "c": 1, "d": 0, "e": 1, "f": 0}
    found = packed(list("fedcba"), SIZES, servers, piece=60)
    assert found == [
        Parcel(0, 0, ("f",)),
        Parcel(0, 1, ("d", "b")),
        Parcel(1, 0, ("e",)),
        Parcel(1, 1, ("c",)),
        Parcel(1, 2, ("a",)),
    ]
    assert len({parcel.name for parcel in found}) == 5


def test_what_is_so_large_that_joining_it_costs_more_than_a_request_travels_alone() -> None:
    sizes = {"a": 1000, "b": ALONE, "c": 1000, "d": ALONE - 1000}
    found = packed(list("abcd"), sizes, dict.fromkeys(sizes, 0), piece=2 * ALONE)
    assert [parcel.names for parcel in found] == [("b",), ("a", "c", "d")]


def test_nothing_to_send_makes_no_parcels() -> None:
    assert packed([], {}, {}, piece=60) == []
