"""Compare each step of a run with a step of plain TensorFlow, which begins with the run's own values.

whole   the batch of all workers at once, as a script for one machine computes it
parts   each tower's part by itself, and the mean of the parts' gradients: the correct step of a run for a model whose
        examples depend on each other, by batch normalisation for example
"""

import re
from collections import Counter
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence
from typing import Counter as Counts

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from cluster.runtime.tf_errors import line_of
from cluster.variables.uses import ancestors
from cluster.verify.digests import DigestReport
from cluster.verify.kinds import Suspect, coupled, kind
from cluster.verify.named_values import Values
from cluster.verify.plain import Plain
from cluster.verify.plain_step import Reference, eps_of
from cluster.verify.verified_run import CutBatch, VerifiedRun, WholeBatch

_REDUCES = ("Mean", "Sum")
_NORMALIZES = re.compile("FusedBatchNorm(V[23])?$")
_UNKNOWN = "it looks like no kind of mistake that launch verify knows"


class Fault(NamedTuple):
    """A difference from plain TensorFlow in words, and the mistake that probably caused it.

    ``what`` describes the variable that differs. ``kind`` is the kind of mistake that probably caused the difference;
    None for an unknown kind.
    """

    what: str
    kind: Optional[str]

    @property
    def text(self) -> str:
        """Return the difference and its probable cause in one line."""
        return f"{self.what}; {self.kind or _UNKNOWN}"


class BesidePlain:
    """The comparison of a run with the author's functions in plain TensorFlow, step by step.

    Args:
      structures: for each worker, the structure of a batch from its dataset.

    Attributes:
      problem: the reason why no comparison is possible; None while the comparison is possible.
      steps: the number of compared steps; ``steps_by_parts`` of these were compared part by part.
      by_design: for each variable's name, the number of steps in which it differed because only one part updates it.
      missing: names of variables that only one side has.
      not_finite: steps that were not compared, because plain TensorFlow computed numbers that are not finite.
      not_full: steps that were not compared, because some examples of a batch of shards did not count.
    """

    def __init__(self, run: VerifiedRun, structures: Sequence[Mapping[str, Any]]):
        self._run, self._workers = run, len(structures)
        self._number = self._workers * run.parts  # the number of parts of a step
        self.steps = self.steps_by_parts = self.not_finite = self.not_full = 0
        self.by_design: Counts[str] = Counter()
        self.missing: List[str] = []
        self.problem: Optional[str] = None
        self._of_part: Optional[Plain] = None
        self._build(structures)

    def _build(self, structures: Sequence[Mapping[str, Any]]) -> None:
        self._batch = WholeBatch(structures, self._run.parts)
        try:
            self._whole = self._make(self._batch.whole)
            self._eps = coarsest(self._whole)
            self._takes_statistics = self._number > 1 and _takes_statistics(self._whole)
            self._is_by_parts = self._takes_statistics or (self._number > 1 and bool(self._whole.given))
        except JobError as error:
            self.problem = str(error)

    def _make(self, structure: Mapping[str, Any]) -> Plain:
        return Plain(self._run.fresh_job(), self._run.args, self._run.train.clip_norm, structure)

    def begin(self, first: Values) -> Optional[str]:
        """Compare the variables' names in plain TensorFlow with those in ``first``, the servers' first values.

        Return a message about a trained variable that is not on the servers; None if all are.
        """
        if self.problem is not None:
            return None
        names = self._whole.names
        self.missing = [*(name for name in first if name not in names), *(name for name in names if name not in first)]
        lacking = [name for name in self._whole.trained if name not in first]
        if not lacking:
            return None
        return f"expected all trained variables on the servers, found no {lacking[0]}, which plain TensorFlow trains"

    def check(self, step: int, before: Values, found: Values, reports: Sequence[DigestReport]) -> Optional[Fault]:
        """Compare a step, and return its fault; None if it has no fault, or cannot be compared.

        Args:
          before, found: the servers' values before and after the step, by name.
          reports: the reports of all workers, with their batches.
        """
        if self.problem is not None:
            return None
        try:
            cut = self._batch.cut(reports)
            if not cut.all_count:
                self.not_full += 1
                return None
            fault = self._check(before, found, cut)
        except tf.errors.OpError as error:
            self.problem = f"{type(error).__name__}: {line_of(error)}"
            return None
        return None if fault is None else fault._replace(what=f"step {step}: {fault.what}")

    def _check(self, before: Values, found: Values, cut: CutBatch) -> Optional[Fault]:
        if self._is_by_parts:
            reference = self._by_parts(before, cut)
        else:
            reference = Reference(self._whole, self._eps, before, [cut.whole])
        if not reference.is_finite:
            self.not_finite += 1
            return None
        self.steps += 1
        self.steps_by_parts += self._takes_statistics
        names = reference.unlike(found)
        reference.plain.settle(reference.after)
        if names and not self._is_by_parts and self._number > 1:
            return self._beside_parts(found, names, reference, self._by_parts(before, cut))
        return self._fault(found, names, reference) if names else None

    def _by_parts(self, before: Values, cut: CutBatch) -> Reference:
        if self._of_part is None:
            self._of_part = self._make(self._batch.part)
        return Reference(self._of_part, self._eps, before, cut.parts)

    def _beside_parts(self, found: Values, names: List[str], whole: Reference, parts: Reference) -> Optional[Fault]:
        """Return the fault, or None, of a step that differs from that of the whole batch."""
        others = parts.unlike(found)
        if others:
            both = [name for name in names if name in others]
            return self._fault(found, both or others, whole if both else parts)
        if all(self._is_state(name) for name in names):
            self.by_design.update(names)
            return None
        trained = [name for name in names if not self._is_state(name)]
        losses = f" (the loss of the whole batch is {whole.loss:.6g}, the mean of its parts {parts.loss:.6g})"
        return Fault(whole.difference(trained[0], found), coupled(self._number) + losses)

    def _is_state(self, name: str) -> bool:
        """Return whether a variable is the model's own, and has no gradient."""
        return name in self._whole.model_names and name not in self._whole.trained and name != "global_step"

    def _fault(self, found: Values, names: List[str], reference: Reference) -> Fault:
        structure = self._batch.part if reference.is_of_parts else self._batch.whole
        parts, workers = self._run.parts, self._workers
        suspect = Suspect(names, found, reference, parts, workers, again=lambda: self._make(structure))
        return Fault(reference.difference(names[0], found), kind(suspect))

    def result(self) -> Dict[str, float]:
        """Return the numbers of compared and skipped steps, and the skipped variables, as metrics of the run."""
        found: Dict[str, float] = {
            "verified_plain_steps": self.steps,
            "verified_plain_steps_by_parts": self.steps_by_parts,
        }
        found.update({f"differs_by_design/{name}": steps for name, steps in self.by_design.items()})
        found.update({f"not_compared/{name}": 1 for name in self.missing})
        if self.not_finite:
            found["not_compared_steps"] = self.not_finite
        if self.not_full:
            found["not_compared_steps_of_shards"] = self.not_full
        return found


def coarsest(plain: Plain) -> float:
    """Return the machine epsilon of the least precise type that a step of ``plain`` uses."""
    types = {tensor.dtype.base_dtype for op in ancestors([plain.train]) for tensor in op.outputs}
    return max(eps_of(each.name) for each in types if each.is_floating)


def _takes_statistics(plain: Plain) -> bool:
    """Return whether the loss uses a mean over the examples that also updates an average, as in batch normalisation."""
    of_loss = ancestors([plain.loss])
    shared = of_loss & plain.of_updates
    fed = {tensor.op for tensor in plain.fed}
    return any(_normalizes(op) for op in of_loss) or any(_reduces(op) and ancestors([op]) & fed for op in shared)


def _normalizes(op: Any) -> bool:
    return bool(_NORMALIZES.match(op.type)) and bool(op.get_attr("is_training"))


def _reduces(op: Any) -> bool:
    """Return whether an operation computes sums or means over the first axis."""
    if op.type not in _REDUCES or op.inputs[0].shape.ndims is None:
        return False
    axes = tf.get_static_value(op.inputs[1])
    return axes is not None and 0 in {int(axis) % max(op.inputs[0].shape.ndims, 1) for axis in axes.reshape([-1])}
