"""The reason why commands of the key ``after`` have failed on this host: ``after.json`` of its part of the run."""

from typing import Optional, Sequence

from launch.agent.state.run_folder import RunFolder

_FILE = "after.json"


def note(folder: RunFolder, problems: Sequence[str]) -> None:
    """Write down what went wrong."""
    folder.note(_FILE, {"problem": "; ".join(problems) or None})


def read(folder: RunFolder) -> Optional[str]:
    """Return what went wrong; None where nothing did, or no command has run."""
    problem = (folder.read_whole(_FILE) or {}).get("problem")
    return problem if isinstance(problem, str) else None
