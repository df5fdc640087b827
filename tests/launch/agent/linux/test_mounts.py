"""The table of mounts as the kernel writes it."""

from pathlib import Path

from launch.agent.linux.procfs import mounts_in

LINES = """27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
66 27 254:0 /data {0}/run/my\\040data rw,relatime shared:3 - ext4 /dev/vda rw
67 27 254:0 /data {0}/run-2 rw - ext4 /dev/vda rw
68 27 0:5 / {0}/run/a rw - tmpfs tmpfs rw
"""


def test_mounts_in_a_folder_are_found_by_their_path_and_not_those_beside_it(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    (tmp_path / "link").symlink_to(tmp_path / "run")
    table.write_text(LINES.format(tmp_path))
    expected = [f"{tmp_path}/run/a", f"{tmp_path}/run/my data"]
    assert mounts_in(tmp_path / "run", table) == mounts_in(tmp_path / "link", table) == expected
    assert mounts_in(tmp_path / "run-2", table) == [f"{tmp_path}/run-2"]
    assert mounts_in(tmp_path / "run" / "b", table) == []


def test_this_machine_has_a_table() -> None:
    assert "/" in mounts_in(Path("/"))
