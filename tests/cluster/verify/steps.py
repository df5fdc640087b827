"""One step of a run that is beside plain TensorFlow, made of a model and of what a run may make of that model.

What stands for the run is plain TensorFlow as well: its functions are the author's with a mistake in them. So a mistake
is what a test names, whatever this project does.
"""

from types import ModuleType
from typing import Any, Callable, Dict, NamedTuple, Optional

import numpy as np

from cluster.job import Job
from cluster.runtime.tf_compat import tf
from cluster.task import Train
from cluster.verify.beside_plain import BesidePlain, Fault, coarsest
from cluster.verify.digests import DigestReport, flat
from cluster.verify.plain import Plain
from cluster.verify.plain_step import Reference
from cluster.verify.verified_run import VerifiedRun, WholeBatch

EXAMPLES, FEATURES = 4, 3  # of each worker


def descent(args: Any) -> Any:
    return tf.train.GradientDescentOptimizer(0.1)


class Author(NamedTuple):
    """A model and what trains it."""

    model: Callable[..., Any]
    optimizer: Callable[[Any], Any] = descent

    def job(self) -> Job:
        """The same as a job of this file."""
        module = ModuleType("steps")
        module.__file__ = __file__
        vars(module).update(inputs=lambda task, args: None, model=self.model, optimizer=self.optimizer)
        return Job.from_module(module).with_args({})


def batch_of(worker: int) -> Dict[str, Any]:
    """What one worker's dataset gives, in the current graph: x [examples, features], y [examples]."""
    x = np.random.RandomState(worker).normal(size=[EXAMPLES, FEATURES]).astype(np.float32)
    return {"x": tf.constant(x), "y": tf.constant(np.sin(x.sum(1)))}


class Step:
    """The first step of ``run`` where ``author`` is what was written.

    Args:
      by_parts: whether the run computes each part by itself, as towers do.
      more: makes tensors of a batch besides x and y.
    """

    def __init__(
        self,
        author: Author,
        run: Optional[Author] = None,
        workers: int = 2,
        towers: int = 2,
        by_parts: bool = False,
        more: Callable[[], Dict[str, Any]] = dict,
        **train: Any,
    ):
        settings = Train.from_dict({"batch_size": 2, "towers": towers, **train})
        with tf.Graph().as_default(), tf.Session() as session:
            structures = [{**batch_of(worker), **more()} for worker in range(workers)]
            self._reports = [DigestReport(0, 0, session.run(flat(each)), []) for each in structures]
            self.beside = BesidePlain(VerifiedRun(author.job(), settings, {}, [], ["CPU:0"] * towers), structures)
            batch = WholeBatch(structures, towers * settings.accumulate)
        cut = batch.cut(self._reports)
        plain = Plain((run or author).job(), {}, settings.clip_norm, batch.part if by_parts else batch.whole)
        self.before = plain.first()
        self.found = Reference(plain, coarsest(plain), self.before, cut.parts if by_parts else [cut.whole]).after
        self.complaint = self.beside.begin(self.before)

    def fault(self) -> Optional[Fault]:
        """What is wrong with the step."""
        return self.beside.check(1, self.before, self.found, self._reports)


def fault(author: Author, run: Optional[Author] = None, **way: Any) -> Fault:
    """What is wrong with the first step of ``run``; something must be."""
    found = Step(author, run, **way).fault()
    assert found is not None
    return found
