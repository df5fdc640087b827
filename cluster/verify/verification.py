"""The chief's part of ``launch verify``: after every step, compare the servers' variables with one process."""

from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set

from cluster.errors import TrainingError
from cluster.job import Job
from cluster.runtime.tf_compat import tf
from cluster.steps.replica import Replica
from cluster.task import TRAINERS, Task, Train
from cluster.variables.layout import whole
from cluster.variables.masters import plain_name, saved_variables
from cluster.verify.beside_plain import BesidePlain
from cluster.verify.digests import DigestReport, unlike_batch, unlike_gradient
from cluster.verify.givens import refuse_other_number
from cluster.verify.named_values import Values, difference, joined
from cluster.verify.one_process import OneProcess
from cluster.verify.verified_run import BatchReader, VerifiedRun


class Verification:
    """The chief's comparison of the servers' variables with those of one process.

    Create a ``Verification`` in the graph of ``replica``, before that graph is finalized.

    Args:
      job: the job, with its args bound.
      task: the chief; its ``batch_size`` is the batch size of its towers together.
      devices: the devices of the towers of each worker.
    """

    def __init__(
        self, job: Job, task: Task, devices: List[str], train: Train, args: Mapping[str, Any], replica: Replica
    ):
        self._run = VerifiedRun(job, replace(train, towers=len(devices)), args, _workers(task), devices)
        self._replica = replica
        apart = _apart(replica)
        compared = [each for each in replica.variables if id(each) not in apart]
        self._servers = {plain_name(each): _read(each) for each in compared}
        self._saved = saved_variables(compared)
        self._model = [plain_name(each) for each in replica.agreed if id(each) not in apart]
        self.steps = 0  # the number of compared steps

    def begin(self, session: Any) -> None:
        """Build the training in one process, and start it with the servers' first values.

        Raises:
          TrainingError: the run does not begin at step 0, or its workers have different numbers of examples.
          JobError: the model cannot be verified.
        """
        first = session.run(self._servers)
        self._refuse_unlike_workers(session)
        step = int(session.run(self._replica.global_step))
        if step:
            _refuse(f"expected a run that begins at step 0, found it at step {step}; launch verify cannot resume a run")
        structures = self._structures()
        self._one = OneProcess(self._run, self._replica.layout, self._replica.buckets, structures)
        self._refuse_other_names()
        refuse_other_number(self._one.given, self._replica.reports.given)
        self._one.begin({name: first[name] for name in self._model})
        _refuse(self._bits(0, first))
        self._plain = BesidePlain(self._run, structures)
        self._before = self._whole_values(first)
        _refuse(self._plain.begin(self._before))

    def step(self, session: Any, step: int) -> None:
        """Train one step in one process, and compare its variables with the servers'.

        Args:
          step: the global step that the servers have reached.

        Raises:
          TrainingError: a worker's batch, or a variable, differs; the error names the first.
        """
        reports = self._with_batches(step, session.run(self._replica.reports.received))
        gradients = self._one.step(reports)
        found = session.run(self._servers)
        bits = self._bits(step, found)
        before, self._before = self._before, self._whole_values(found)
        fault = self._plain.check(step, before, self._before, reports)
        if fault is not None and (fault.kind or bits is None):
            _refuse(fault.text)
        hosts = [task.cluster[task.role][task.index].rsplit(":", 1)[0] for task in self._run.tasks]
        _refuse(bits and bits + unlike_gradient([each.gradient_digest for each in reports], gradients, hosts))
        self.steps += 1

    def _structures(self) -> List[Any]:
        """Return the batch structure of each worker's dataset; begin to read it unless workers report batches."""
        run, sent = self._run, self._replica.reports.structure
        if sent is not None:
            self._readers = []
            return [sent] * len(run.tasks)
        self._readers = [BatchReader(run, task) for task in run.tasks]
        return [reader.structure for reader in self._readers]

    def _with_batches(self, step: int, reports: Sequence[DigestReport]) -> Sequence[DigestReport]:
        """Return the report of each worker, with its batch."""
        if not self._readers:
            return reports
        read = [reader.next() for reader in self._readers]
        _refuse(unlike_batch(step, [each.batch_digest for each in reports], [digest for _, digest in read]))
        return [each._replace(batch=values) for each, (values, _) in zip(reports, read)]

    def result(self) -> Dict[str, float]:
        """Return the numbers of compared steps, and of whole variables of the model and of its optimizer.

        Raises:
          TrainingError: no step was compared.
        """
        if not self.steps:
            _refuse("expected at least one step to compare, found none; set train.steps to at least 1")
        if self._plain.problem is not None:
            print(f"not compared with plain TensorFlow: {self._plain.problem}", flush=True)
        names = {whole(name) for name in self._model}
        others = {name for name in self._servers if whole(name) not in names and name not in self._model}
        return {
            "verified_steps": self.steps,
            "verified_variables": len(names),
            "verified_optimizer_variables": len(others),
            **self._given(),
            **self._plain.result(),
        }

    def _given(self) -> Dict[str, float]:
        """Return the values that both sides take from the run, as metrics."""
        found = {f"not_compared_{name}": 1.0 for each in self._replica.extensions for name in each.not_compared()}
        return {**found, "given_random_numbers": float(self._one.draws)} if self._one.draws else found

    def _bits(self, step: int, found: Mapping[str, Any]) -> Optional[str]:
        return difference(step, found, self._one.values(list(found)))

    def _whole_values(self, found: Mapping[str, Any]) -> Values:
        return joined(self._saved, [found[plain_name(each.variable)] for each in self._saved])

    def _refuse_unlike_workers(self, session: Any) -> None:
        shares = self._replica.model.parts.shares
        if shares is not None and float(session.run(shares.share)) != 1.0:
            _refuse(
                "train.towers: expected the same number of towers on every worker, found different numbers; set"
                " it to a number instead of auto for launch verify"
            )

    def _refuse_other_names(self) -> None:
        missing = [name for name in self._servers if name not in self._one.variables]
        known = {*self._servers, *map(whole, self._servers)}
        extra = [name for name in self._one.variables if name not in known]
        if missing or extra:
            _refuse(
                f"expected the same variables on the servers and in one process, found {(missing + extra)[0]} only on"
                " one side; launch verify cannot compare this optimizer"
            )


def _workers(chief: Task) -> List[Task]:
    """Return every worker, the chief first, with as many examples as the chief."""
    return [
        replace(chief, role=role, index=index) for role in TRAINERS for index in range(len(chief.cluster.get(role, ())))
    ]


def _apart(replica: Replica) -> Set[int]:
    """Return the variables on the servers that one process does not have: rows of tables, and places in shards."""
    return {id(variable) for each in replica.extensions for variable in each.agreed}


def _read(variable: Any) -> Any:
    with tf.device(variable.device):
        return variable.read_value()


def _refuse(text: Any) -> None:
    if text is not None:
        raise TrainingError(text)
