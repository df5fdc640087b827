"""The GPUs that each task of this host gets."""

from typing import Dict, List, Mapping, Sequence, Union

Wish = Union[str, Sequence[int]]  # "all", "share", or indices


def needs_list(wishes: Mapping[str, Wish]) -> bool:
    """Return whether any task wishes for GPUs at all."""
    return any(wish for wish in wishes.values())


def allotted(found: Sequence[str], environ: Mapping[str, str]) -> List[int]:
    """Return the indices of the GPUs that this process may use: in a step of Slurm those of the step, else all.

    Where Slurm does not hide the GPUs of other jobs, ``CUDA_VISIBLE_DEVICES`` alone has the step's.

    Args:
      found: the UUIDs of the host's GPUs, by index.
    """
    named = environ.get("CUDA_VISIBLE_DEVICES") if "SLURM_STEP_ID" in environ else None
    if named is None:
        return list(range(len(found)))
    numbers = {
        **{str(index): index for index in range(len(found))},
        **{uuid: index for index, uuid in enumerate(found)},
    }
    return [numbers[word] for word in named.split(",") if word in numbers]


def give_allotted(wishes: Mapping[str, Wish], found: Sequence[str], environ: Mapping[str, str]) -> Dict[str, List[int]]:
    """The GPUs of each task as nvidia-smi counts them; wishes count the ``allotted`` ones. Raises as ``give``."""
    usable = allotted(found, environ)
    return {task: [usable[number] for number in given] for task, given in give(wishes, len(usable)).items()}


def give(wishes: Mapping[str, Wish], available: int) -> Dict[str, List[int]]:
    """The GPUs of each task: {task: indices}, none of them given twice.

    ``share`` is an equal share of what the explicit wishes leave; what does not divide
    stays free, since unequal workers make every step wait for the slowest.

    Raises:
      ValueError: a task asks for a GPU that this host does not have.
    """
    given: Dict[str, List[int]] = {}
    for task, wish in wishes.items():
        if wish != "share":
            given[task] = list(range(available)) if wish == "all" else [int(i) for i in wish]
            missing = [index for index in given[task] if index >= available]
            if missing:
                raise ValueError(f"{task}: expected GPU {missing[0]}, found {available} GPU(s) on this host")
    sharing = [task for task, wish in wishes.items() if wish == "share"]
    free = [index for index in range(available) if not any(index in indices for indices in given.values())]
    each = len(free) // len(sharing) if sharing else 0
    for rank, task in enumerate(sharing):
        given[task] = free[rank * each : (rank + 1) * each]
    return given
