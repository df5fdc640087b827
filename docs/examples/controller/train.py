"""Linear regression by one controller outside of the cluster; in each step every worker computes for it."""

import numpy as np
import tensorflow.compat.v1 as tf

flags = tf.app.flags
flags.DEFINE_string("worker_hosts", "", "Addresses of the workers, with commas between them")
flags.DEFINE_enum("job_name", None, ["controller", "worker"], "What this process is")
flags.DEFINE_integer("task_index", 0, "Which of the workers")
flags.DEFINE_integer("train_steps", 300, "How many steps")
FLAGS = flags.FLAGS


def main(_):
    tf.disable_v2_behavior()
    workers = FLAGS.worker_hosts.split(",")
    if FLAGS.job_name == "worker":
        cluster = tf.train.ClusterSpec({"worker": workers})
        tf.train.Server(cluster, job_name="worker", task_index=FLAGS.task_index).join()  # never returns
    with tf.device("/job:worker/task:0"):
        x = tf.placeholder(tf.float32, [len(workers), None])
        slope = tf.get_variable("slope", [], initializer=tf.zeros_initializer())
        offset = tf.get_variable("offset", [], initializer=tf.zeros_initializer())
    losses = []
    for index in range(len(workers)):
        with tf.device(f"/job:worker/task:{index}"):
            losses.append(tf.reduce_mean(tf.square(slope * x[index] + offset - (2 * x[index] + 1))))
    loss = tf.add_n(losses) / len(workers)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, colocate_gradients_with_ops=True)
    examples = np.random.RandomState(0)
    with tf.Session(f"grpc://{workers[0]}") as session:
        session.run(tf.global_variables_initializer())
        for _ in range(FLAGS.train_steps):
            _, value = session.run([train, loss], {x: examples.uniform(-1, 1, [len(workers), 32])})
        print(f"controller: step {FLAGS.train_steps}, loss {value:.6f}, slope {session.run(slope):.3f}")


if __name__ == "__main__":
    tf.app.run(main)
