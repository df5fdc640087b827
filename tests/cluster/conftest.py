"""What holds for the tests of training: a test's sessions rewrite no graph, and are closed at its end.

As in a worker, XLA takes no part in them (``tf_compat.leave_out_xla``).
"""

import sys
from typing import Any, Iterator, Optional

import pytest

from tests.support.training import kept, refused_requests


def pytest_runtest_protocol(item: Any, nextitem: Any) -> Optional[bool]:
    """Run a test in which TensorFlow 2.x refused a request by mistake once more."""
    if sys.version_info < (3, 8):  # TensorFlow 1.15 refuses none by chance
        return None
    refused_requests.run(item, nextitem)
    return True


@pytest.fixture(autouse=True)
def sessions_are_closed() -> Iterator[None]:
    with kept.sessions_closed():
        yield


@pytest.fixture(autouse=True)
def sessions_rewrite_no_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a session without a configuration leave its graph as it is, as sessions of workers do (``session_config``).

    A test runs its graph a few times, and rewriting takes a third of its time.
    """
    sessions: Any = sys.modules.get("tensorflow.python.client.session")  # absent where no module loads TensorFlow
    if sessions is None:
        return
    compat: Any = sys.modules.get("cluster.runtime.tf_compat")  # XLA takes no part in them, either
    if compat is not None:
        compat.leave_out_xla()
    begin = sessions.BaseSession.__init__

    def without_rewriting(session: Any, target: str = "", graph: Any = None, config: Any = None) -> None:
        if config is None:
            config = sessions.config_pb2.ConfigProto()
            config.graph_options.rewrite_options.disable_meta_optimizer = True
        begin(session, target, graph, config)

    monkeypatch.setattr(sessions.BaseSession, "__init__", without_rewriting)
