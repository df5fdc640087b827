"""Training by Supervisor, with its checkpoints in a relative folder."""

import argparse
import os
import signal

import tensorflow.compat.v1 as tf

STEPS, DIES_AT = 40, 20


def main() -> None:
    parser = argparse.ArgumentParser()
    for flag in ("job_name", "ps_hosts", "worker_hosts"):
        parser.add_argument(f"--{flag}")
    parser.add_argument("--task_index", type=int)
    options = parser.parse_args()
    tf.disable_v2_behavior()
    cluster = tf.train.ClusterSpec({"ps": options.ps_hosts.split(","), "worker": options.worker_hosts.split(",")})
    server = tf.train.Server(cluster, options.job_name, options.task_index)
    if options.job_name == "ps":
        server.join()
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        train = step.assign_add(1)
    supervisor = tf.train.Supervisor(is_chief=options.task_index == 0, logdir="train_logs", save_model_secs=0)
    with supervisor.managed_session(server.target) as session:
        begun = session.run(step)
        print("begins at", begun, flush=True)
        while session.run(step) < STEPS:
            at = session.run(train)
            if at == DIES_AT and begun < DIES_AT:
                supervisor.saver.save(session, supervisor.save_path, global_step=step)
                os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
