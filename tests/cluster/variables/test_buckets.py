"""What travels together, and in which order."""

from cluster.variables.layout import ALONE, Bucket, make_buckets

SIZES = {"a": 10, "b": 10, "c": 100, "d": 30, "e": 30, "f": 50}


def test_small_variables_of_a_server_share_a_bucket_and_large_ones_have_one_each() -> None:
    found = make_buckets(list("abcdef"), SIZES, dict.fromkeys(SIZES, 0), piece=60)
    assert [bucket.names for bucket in found] == [("a", "b"), ("c",), ("d", "e"), ("f",)]
    assert [bucket.place for bucket in found] == [0, 1, 2, 3]


def test_buckets_of_each_server_are_in_the_order_of_the_names() -> None:
    servers = {"a": 1, "b": 0, "c": 1, "d": 0, "e": 1, "f": 0}
    found = make_buckets(list("fedcba"), SIZES, servers, piece=60)
    assert found == [
        Bucket(0, 0, ("f",)),
        Bucket(0, 1, ("d", "b")),
        Bucket(1, 0, ("e",)),
        Bucket(1, 1, ("c",)),
        Bucket(1, 2, ("a",)),
    ]
    assert len({bucket.name for bucket in found}) == 5


def test_what_is_so_large_that_joining_it_costs_more_than_a_request_travels_alone() -> None:
    sizes = {"a": 1000, "b": ALONE, "c": 1000, "d": ALONE - 1000}
    found = make_buckets(list("abcd"), sizes, dict.fromkeys(sizes, 0), piece=2 * ALONE)
    assert [bucket.names for bucket in found] == [("b",), ("a", "c", "d")]


def test_nothing_to_send_makes_no_buckets() -> None:
    assert make_buckets([], {}, {}, piece=60) == []
