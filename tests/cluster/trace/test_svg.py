"""A trace becomes a picture: boxes as long as what they stand for lasted."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, Dict, List

import pytest

from cluster.trace.chrome_format import Whole, picture, trace
from cluster.trace.spans import COMPUTE, PULLS, PUSHES, DevicePlace, TraceSpan, Transfer
from tests.support import ROOT

SVG = "{http://www.w3.org/2000/svg}"
WORKER, PS = DevicePlace("worker:1", "CPU:0"), DevicePlace("ps:0", "CPU:0")
SPANS = [
    TraceSpan(WORKER, PULLS, "a<b>", 0, 40_000, Transfer("a", 4_000_000, PS, WORKER), ["a<b>"]),
    TraceSpan(WORKER, PULLS, "c", 20_000, 20_000, Transfer("c", 8, PS, WORKER), ["c"]),
    TraceSpan(WORKER, COMPUTE, "mul", 40_000, 20_000),
    TraceSpan(PS, PUSHES, "a<b>", 60_000, 40_000, Transfer("g", 4_000_000, WORKER, PS), ["a<b>"]),
]
TRACE = trace(Whole("worker:1", 7, [(0, 100_000)]), SPANS, {})


def boxes(svg: str) -> Dict[str, List[Any]]:
    """The boxes by the first word of their titles."""
    found: Dict[str, List[Any]] = {}
    for box in ElementTree.fromstring(svg).iter(f"{SVG}rect"):
        title = box.find(f"{SVG}title")
        if title is not None:
            found.setdefault(str(title.text), []).append({name: box.get(name) for name in ("x", "y", "width", "fill")})
    return found


def test_a_box_is_as_long_as_what_it_stands_for_and_begins_where_that_did() -> None:
    found = boxes(picture(TRACE))
    (step,) = found["step 7: 100 ms"]
    (compute,) = found["mul: 20 ms"]
    whole = float(step["width"])
    assert float(compute["width"]) == pytest.approx(0.2 * whole, abs=0.1)
    assert float(compute["x"]) - float(step["x"]) == pytest.approx(0.4 * whole, abs=0.1)


def test_a_transfer_is_in_two_blocks_with_its_bytes_and_each_kind_has_a_colour() -> None:
    found = boxes(picture(TRACE))
    pulls, pushes = found["a<b>: 40 ms, 4,000,000 bytes"][:2], found["a<b>: 40 ms, 4,000,000 bytes"][2:]
    assert len(pulls) == len(pushes) == 2
    assert len({box["fill"] for boxes_of in found.values() for box in boxes_of}) == 4


def test_what_lasts_at_the_same_time_lies_above_each_other() -> None:
    found = boxes(picture(TRACE))
    first, second = found["a<b>: 40 ms, 4,000,000 bytes"][0], found["c: 20 ms, 8 bytes"][0]
    assert first["y"] != second["y"]


def test_the_texts_name_the_step_the_devices_the_lines_and_the_time() -> None:
    texts = [str(text.text) for text in ElementTree.fromstring(picture(TRACE)).iter(f"{SVG}text")]
    assert {"step 7 of worker:1", "worker:1 CPU:0", "ps:0", "pulls", "compute", "pushes", "100 ms"} <= set(texts)


def test_a_file_is_drawn_from_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "step.json"
    path.write_text(json.dumps(TRACE))
    argv = [sys.executable, "-m", "cluster.trace"]
    drawn = subprocess.run([*argv, str(path)], cwd=str(ROOT), stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    assert drawn.stdout == picture(TRACE)
    wrong = subprocess.run(argv, cwd=str(ROOT), stderr=subprocess.PIPE, text=True, timeout=60)
    assert wrong.returncode == 1 and "expected the file of one trace, found 0 arguments" in wrong.stderr
