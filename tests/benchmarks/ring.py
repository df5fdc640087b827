"""A real ring: the same model trained by Horovod's all-reduce over Gloo, without servers, to compare with.

One worker of it, under TF_CONFIG: ``python -m tests.benchmarks.ring JSON`` with steps and shapes. Every worker has all
variables. Horovod is no part of this project's environment: ``requirements/ring.sh`` builds one that has it.
"""

import json
import os
import socket
import sys
import threading
import time
from typing import Any, Dict, List

import tensorflow.compat.v1 as tf

from cluster.task import Task
from tests.benchmarks.speed import job

PATIENCE_S = 60.0
_CARD = "eth0"


def main() -> None:
    """Run one worker until it is ended from outside."""
    tf.disable_v2_behavior()
    options: Dict[str, Any] = json.loads(sys.argv[1])
    task = Task.from_environment(os.environ)
    hosts = [address.rpartition(":")[0] for address in task.cluster["worker"]]
    port = int(task.cluster["worker"][0].rpartition(":")[2])
    os.environ.update(place(task.index, hosts, port))
    if task.index == 0:
        meeting_point(hosts, port)
    wait_for(hosts[0], port)
    import horovod.tensorflow as hvd  # only here: it reads its place in the ring from the environment

    hvd.init()
    loss = job.loss(options["shapes"])
    train = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(0.01)).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(hvd.broadcast_global_variables(0))
        for step in range(options["steps"]):
            session.run(train)
            print(f"step {step + 1}/{options['steps']}", flush=True)


def place(rank: int, hosts: List[str], port: int) -> Dict[str, str]:
    """Return the environment that `horovodrun` would give the worker with this rank, one on each host."""
    ring = {"RANK": rank, "SIZE": len(hosts), "LOCAL_RANK": 0, "LOCAL_SIZE": 1}
    ring.update(CROSS_RANK=rank, CROSS_SIZE=len(hosts))
    gloo = {"RENDEZVOUS_ADDR": hosts[0], "RENDEZVOUS_PORT": str(port), "IFACE": _CARD}
    return {
        **{f"HOROVOD_{name}": str(value) for name, value in ring.items()},
        **{f"HOROVOD_GLOO_{name}": value for name, value in gloo.items()},
        "HOROVOD_HOSTNAME": hosts[rank],
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
    }


def meeting_point(hosts: List[str], port: int) -> None:
    """Serve, beside the first worker, what `horovodrun` serves: where each worker finds the others."""
    from horovod.runner.common.util.hosts import HostInfo, get_host_assignments
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

    server = RendezvousHTTPServer(("", port), RendezvousHandler, 0)
    server.init(get_host_assignments([HostInfo(host, 1) for host in hosts], len(hosts)))
    threading.Thread(target=server.serve_forever, daemon=True).start()


def wait_for(host: str, port: int) -> None:
    """Return once the first worker answers: Horovod itself gives up after a second and a half."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection((host, port), timeout=PATIENCE_S).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


if __name__ == "__main__":
    main()
