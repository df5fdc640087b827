"""The servers of runs over shards."""

from typing import List

import pytest

from tests.cluster.recommend.once.sharded import WORKERS
from tests.cluster.steps.test_sync_worker import servers_of


@pytest.fixture(scope="module")
def targets() -> List[str]:
    return servers_of([("ps", 1), ("worker", WORKERS)])
