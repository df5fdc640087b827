"""Linear regression the classic way: one script, whose flags give its task and its cluster."""

import numpy as np
import tensorflow.compat.v1 as tf

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "Addresses of the parameter servers, with commas between them")
flags.DEFINE_string("worker_hosts", "", "Addresses of the workers, with commas between them")
flags.DEFINE_enum("job_name", None, ["ps", "worker"], "What this process is")
flags.DEFINE_integer("task_index", 0, "Which of them")
flags.DEFINE_integer("train_steps", 300, "The global step to stop at")
FLAGS = flags.FLAGS


def main(_):
    tf.disable_v2_behavior()
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()  # never returns
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        x = tf.placeholder(tf.float32, [None])
        y = tf.placeholder(tf.float32, [None])
        slope = tf.get_variable("slope", [], initializer=tf.zeros_initializer())
        offset = tf.get_variable("offset", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(slope * x + offset - y))
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    supervisor = tf.train.Supervisor(is_chief=FLAGS.task_index == 0, global_step=step, recovery_wait_secs=1)
    # Without filters a session waits for every worker, even for workers that have finished and exited.
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{FLAGS.task_index}"])
    examples = np.random.RandomState(FLAGS.task_index)
    with supervisor.prepare_or_wait_for_session(server.target, config) as session:
        done = 0
        while done < FLAGS.train_steps:
            batch = examples.uniform(-1, 1, 32)
            _, done, value = session.run([train, step, loss], {x: batch, y: 2 * batch + 1})
        print(f"worker {FLAGS.task_index}: step {done}, loss {value:.6f}, slope {session.run(slope):.3f}")


if __name__ == "__main__":
    tf.app.run(main)
