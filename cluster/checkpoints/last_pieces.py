"""Pieces with what has changed last: one run of all servers, which holds training up only until all of it is read.

A server reads rows and copies small variables into memory of its own, and reports that to the chief. What is read is
sent and written afterwards, while training goes on.
"""

import threading
from typing import Any, Dict, List, NamedTuple, Sequence

from cluster.checkpoints.background import Background
from cluster.checkpoints.pieces_of_variables import Fed, SmallVariables
from cluster.checkpoints.saved_tables import SavedTables
from cluster.runtime.tf_compat import tf


class Begun(NamedTuple):
    """Pieces that are being written: the paths of all, of those with rows, and what writes them."""

    pieces: List[str]
    of_rows: List[str]
    work: Background


class LastPieces:
    """Write small variables, and the rows that are left of tables. Make it on the device of the process that writes."""

    def __init__(self, small: Sequence[SmallVariables], tables: Sequence[SavedTables], fed: Fed):
        self._tables, self._path = list(tables), fed.path
        self._is_read = threading.Event()
        copies = [each.copies() for each in small]
        with tf.control_dependencies([tf.group(*copies, *(each.read_last for each in tables))]):
            self._report = tf.py_func(self._note_read, [], [])
        with tf.control_dependencies([self._report]):  # the writes would take all threads of this process
            self._variables = [
                each.write_copies(some, f"-copies-{number}") for number, (each, some) in enumerate(zip(small, copies))
            ]
            for each in tables:
                each.make_last_writes()

    def _note_read(self) -> None:
        self._is_read.set()

    def begin(self, session: Any, path: str, is_rehearsal: bool = False) -> Begun:
        """Begin to write pieces, whose paths begin with ``path``; return once all is read that they will have.

        The result of the work raises why that has failed. In a rehearsal no row has changed.
        """
        last = [each.last(is_rehearsal) for each in self._tables]
        operations = (
            [each.operation for each in self._variables],
            [operations for operations, _, _ in last],
            self._report,
        )
        feed = {key: value for _, fed, _ in last for key, value in fed.items()}
        endings = [*(each.ending for each in self._variables), *(ending for _, _, some in last for ending in some)]
        of_rows = [ending for _, _, some in last for ending in some[1:]]
        self._is_read.clear()
        work = Background(lambda goes_on: self._run(session, operations, {**feed, self._path: path}))
        self._is_read.wait()
        return Begun([path + each for each in endings], [path + each for each in of_rows], work)

    def _run(self, session: Any, operations: Any, feed: Dict[Any, Any]) -> None:
        try:
            _, found, _ = session.run(operations, feed)
        finally:
            self._is_read.set()  # also where a server has failed
        for tables, ran in zip(self._tables, found):
            tables.note_last(ran)
