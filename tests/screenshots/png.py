"""PNG files of few colours: pictures of pages are a third as large with a palette."""

import base64
import struct
import zlib

import numpy as np

from tests.support.browser import Page

# The pixels of a PNG, row by row: a browser reads every kind of PNG, Python's library none.
PIXELS = """
(async () => {
  const picture = await createImageBitmap(await (await fetch("data:image/png;base64,%s")).blob());
  const drawn = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  drawn.drawImage(picture, 0, 0);
  const pixels = drawn.getImageData(0, 0, picture.width, picture.height).data;
  const reader = new FileReader();
  const read = new Promise((done) => { reader.onload = () => done(reader.result.split(",")[1]); });
  reader.readAsDataURL(new Blob([pixels]));
  return [picture.width, picture.height, await read];
})()
"""


def pixels(page: Page, picture: bytes) -> np.ndarray:
    """Return the colours of a PNG: [height, width, 3], each from 0 to 255. The page must be an empty one."""
    width, height, data = page.evaluate(PIXELS % base64.b64encode(picture).decode())
    return np.frombuffer(base64.b64decode(data), np.uint8).reshape(height, width, 4)[:, :, :3]


def with_palette(image: np.ndarray, colours: int = 256) -> bytes:
    """Return an image of [height, width, 3] as PNG of few colours, without the shades that no eye tells apart.

    Of colours that differ by less than 8 in each part, the most frequent stays; of these, the most frequent stay.
    Every other colour becomes the nearest of them.

    Args:
      colours: at most 256.
    """
    height, width, _ = image.shape
    flat = image.reshape(-1, 3).astype(np.int64)
    found, where, counts = np.unique(flat @ [65536, 256, 1], return_inverse=True, return_counts=True)
    values = np.stack([found >> 16, found >> 8 & 255, found & 255], 1)
    ranked = values[np.argsort(-counts, kind="stable")]
    _, first = np.unique(ranked >> 3, axis=0, return_index=True)
    palette = ranked[np.sort(first)[:colours]]
    nearest = np.array([np.argmin(((palette - value) ** 2).sum(1)) for value in values], np.uint8)
    rows = nearest[where].reshape(height, width)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], 1)  # each line begins with the number of no filter
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = [
        (b"IHDR", header),
        (b"PLTE", palette.astype(np.uint8).tobytes()),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in [*parts, (b"IEND", b"")])


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
