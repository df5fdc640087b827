"""What the tests of synchronous and of asynchronous steps over shards share: numbered files, workers, runs."""

import uuid
from pathlib import Path
from typing import Any, Generic, List, Type, TypeVar

import numpy as np

from tests.cluster.steps.test_sync_worker import together

WORKERS, SIZE, SHARDS = 2, 2, 3


def numbered_files(folder: Path, examples: int) -> List[str]:
    """Paths of ``SHARDS`` files, in whose lines the examples are numbered."""
    found = [folder / f"{index}.txt" for index in range(SHARDS)]
    for numbers, path in zip(np.array_split(np.arange(examples), SHARDS), found):
        path.write_text("".join(f"{number}\n" for number in numbers))
    return [str(path) for path in found]


class ShardedWorker:
    """A worker of a run over shards; a subclass makes its graph, its ``stepper`` and its ``session``."""

    stepper: Any
    session: Any
    places: Any
    _initialise: List[Any]

    def open(self) -> None:
        self.stepper.close(self.session)
        self.session.run(self._initialise)
        self.stepper.open(self.session)
        self.stepper.begin_reading(self.session)

    def join(self) -> int:
        step: int = self.stepper.join(self.session, steps=1000)
        self.stepper.begin_reading(self.session)
        return step

    def step(self) -> int:
        step: int = self.stepper.step(self.session)[0]
        return step

    def run_to_the_end(self) -> None:
        while not self.stepper.has_ended:
            self.step()

    def end(self) -> None:
        self.stepper.stop_reading()
        self.session.close()


W = TypeVar("W", bound=ShardedWorker)


class ShardedRun(Generic[W]):
    """The workers of a run, each made by ``kind``, which may be replaced by others."""

    kind: Type[W]

    def __init__(self, targets: List[str], files: List[str], epochs: int = 1):
        self._made, self._targets = (uuid.uuid4().hex, files, epochs), targets
        self.workers = [self._worker(index) for index in range(WORKERS)]
        self.workers[0].open()
        self.workers[1].join()

    def _worker(self, index: int) -> W:
        container, files, epochs = self._made
        return self.kind(self._targets[index], container, index, files, epochs)  # type: ignore[call-arg]

    def replace(self, index: int) -> W:
        """The next process of a worker, which has not joined yet."""
        self.workers[index].end()
        self.workers[index] = self._worker(index)
        return self.workers[index]

    def finish(self) -> None:
        together(*[worker.run_to_the_end for worker in self.workers])

    def end(self) -> None:
        for worker in self.workers:
            worker.end()
