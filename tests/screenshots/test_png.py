"""A picture with a palette has the colours of the picture that the browser took."""

import struct
import zlib

import numpy as np

from tests.screenshots.png import with_palette

IMAGE = np.zeros((20, 30, 3), np.uint8)
IMAGE[:, 10:] = [200, 100, 50]
IMAGE[3, 4] = [250, 0, 0]
IMAGE[5, 6] = [201, 100, 50]  # a shade


def read(png: bytes) -> np.ndarray:
    """The colours of a PNG with a palette and unfiltered lines."""
    chunks, at = {}, 8
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        kind, data, crc = png[at + 4 : at + 8], png[at + 8 : at + 8 + size], png[at + 8 + size : at + 12 + size]
        assert struct.unpack(">I", crc) == (zlib.crc32(kind + data),)
        chunks[kind], at = data, at + 12 + size
    width, height, depth, colours, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, colours) == (8, 3)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any()
    return np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)[lines[:, 1:]]


def test_colours_are_kept_and_shades_become_the_most_frequent() -> None:
    found = read(with_palette(IMAGE))
    assert found[5, 6].tolist() == [200, 100, 50]
    found[5, 6] = IMAGE[5, 6]
    assert (found == IMAGE).all()


def test_of_too_many_colours_the_rarest_become_their_nearest() -> None:
    found = read(with_palette(IMAGE, 2))
    assert found[3, 4].tolist() == [200, 100, 50]
    assert (found[:, 10:] == [200, 100, 50]).all() and not found[0, :10].any()
