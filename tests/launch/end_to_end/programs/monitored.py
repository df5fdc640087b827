"""Asynchronous training by MonitoredTrainingSession, with its checkpoints in a relative folder."""

import argparse
import os
import signal
import time

import tensorflow.compat.v1 as tf

STEPS, DIES_FROM = 60, 20


def main() -> None:
    parser = argparse.ArgumentParser()
    for flag in ("job_name", "ps_hosts", "worker_hosts"):
        parser.add_argument(f"--{flag}")
    parser.add_argument("--task_index", type=int)
    options = parser.parse_args()
    tf.disable_v2_behavior()
    cluster = tf.train.ClusterSpec({"ps": options.ps_hosts.split(","), "worker": options.worker_hosts.split(",")})
    if options.job_name == "worker" and options.task_index:
        time.sleep(2)  # a session that does not find the chief's variables at once waits for 30 s
    own = f"/job:worker/task:{options.task_index}"
    config = tf.ConfigProto(device_filters=["/job:ps", own])
    server = tf.train.Server(cluster, options.job_name, options.task_index, config=config)
    if options.job_name == "ps":
        server.join()
    with tf.device(tf.train.replica_device_setter(worker_device=own, cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        x = tf.get_variable("x", [], initializer=tf.zeros_initializer(), use_resource=True)
        train = tf.group(x.assign_add(1.0), step.assign_add(1))
    hooks = [tf.train.StopAtStepHook(last_step=STEPS)]
    with tf.train.MonitoredTrainingSession(
        server.target, options.task_index == 0, "logdir", save_checkpoint_steps=10, hooks=hooks, config=config
    ) as session:
        begun = session.run(step)
        print("begins at", begun, flush=True)
        while not session.should_stop():
            session.run(train)
            if options.task_index:
                time.sleep(0.2)  # the chief takes most steps, so it does not find them all taken
            elif begun < DIES_FROM <= _saved():
                os.kill(os.getpid(), signal.SIGKILL)


def _saved() -> int:
    """The step of the newest checkpoint."""
    newest = tf.train.latest_checkpoint("logdir")
    return int(newest.rpartition("-")[2]) if newest else -1


if __name__ == "__main__":
    main()
