"""How servers hold variables: the pieces of each, and what of them travels together."""

from typing import Dict

import pytest

from cluster.variables.layout import Layout, whole
from cluster.variables.placement import Piece, assign
from cluster.variables.profile import VariableProfile

MEASURED = {
    "first": VariableProfile((3000, 128), 4, is_dense=True),  # 1.5 MiB
    "bias": VariableProfile((128,), 4, is_dense=True),
    "table": VariableProfile((50001, 8), 4, lookups=6),
    "count": VariableProfile((), 8),
}


@pytest.fixture
def layout() -> Layout:
    return Layout(MEASURED, 3)


def servers(layout: Layout) -> Dict[str, int]:
    return assign(layout.sizes, 3)


def test_pieces_follow_each_other_along_one_axis_and_fill_the_whole(layout: Layout) -> None:
    for name, each in MEASURED.items():
        begin = [0] * len(each.shape)
        for piece in layout.pieces(name):
            assert list(piece.offset) == begin and layout.shapes[piece.name] == piece.shape
            if piece.name != name:
                begin[layout.cuts[name].axis] += piece.shape[layout.cuts[name].axis]
        if name in layout.cuts:
            assert begin[layout.cuts[name].axis] == each.shape[layout.cuts[name].axis]


def test_a_variable_that_is_not_cut_is_its_own_piece(layout: Layout) -> None:
    assert list(layout.pieces("bias")) == [Piece("bias", (128,), (0,))]
    assert list(layout.pieces("count")) == [Piece("count", (), ())]


def test_slices_of_a_table_are_of_rows_one_for_each_server(layout: Layout) -> None:
    names, shapes, offsets = zip(*layout.pieces("table"))
    assert names == ("table/part_0", "table/part_1", "table/part_2")
    assert shapes == ((16667, 8),) * 3 and offsets == ((0, 0), (16667, 0), (33334, 0))


def test_sizes_are_those_of_all_pieces(layout: Layout) -> None:
    assert sum(layout.sizes.values()) == sum(each.bytes for each in MEASURED.values())
    assert set(layout.sizes) == {piece.name for name in MEASURED for piece in layout.pieces(name)}


def test_a_variable_that_may_not_be_cut_stays_whole_however_large() -> None:
    kept = Layout({"first": VariableProfile((3000, 128), 4, is_dense=True, may_be_cut=False)}, 3)
    assert kept.cuts == {}


def test_buckets_have_every_piece_with_a_dense_gradient_once_and_nothing_else(layout: Layout) -> None:
    together = [name for bucket in layout.buckets(servers(layout)) for name in bucket.names]
    expected = [piece.name for name in ("first", "bias") for piece in layout.pieces(name)]
    assert sorted(together) == sorted(expected)


def test_what_was_made_last_goes_first(layout: Layout) -> None:
    (first, *_) = [each for each in layout.buckets(servers(layout)) if each.server == servers(layout)["bias"]]
    assert first.place == 0 and first.names[0] == "bias"


def test_a_step_reads_rows_of_a_table_and_what_travels_whole_in_the_numbers_of_the_wire(layout: Layout) -> None:
    assert layout.read_bytes("bias") == 128 * 4
    assert layout.read_bytes("bias", "bfloat16") == 128 * 2
    assert layout.read_bytes("table/part_1", "bfloat16") == 6 * 8 * 4 // 3
    assert layout.read_bytes("count", "bfloat16") == 8


@pytest.mark.parametrize(
    ("name", "expected"), [("w/part_0", "w"), ("a/w/part_12", "a/w"), ("w", "w"), ("w/part_0/Adam", "w/part_0/Adam")]
)
def test_the_whole_of_a_slice_is_told_by_its_name(name: str, expected: str) -> None:
    assert whole(name) == expected
