"""``ParameterServerStrategy`` of TensorFlow 2.x: the chief coordinates; workers and ps only serve."""

import tensorflow as tf

STEPS, BATCH = 200, 32


def examples():
    """Return endless batches of points on a line; every worker draws its own points."""
    points = tf.data.Dataset.random().map(lambda _: tf.random.uniform([BATCH], -1, 1))
    return points.map(lambda x: (x, 2 * x + 1))


def train(cluster):
    strategy = tf.distribute.ParameterServerStrategy(cluster)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        slope, offset, done = tf.Variable(0.0), tf.Variable(0.0), tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(batches):
        x, y = next(batches)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(slope * x + offset - y))
        for variable, gradient in zip([slope, offset], tape.gradient(loss, [slope, offset])):
            variable.assign_sub(0.1 * gradient)
        done.assign_add(1)
        return loss

    batches = iter(coordinator.create_per_worker_dataset(examples))
    for _ in range(STEPS):
        loss = coordinator.schedule(step, args=(batches,))
    coordinator.join()
    print(f"chief: step {done.numpy()}, loss {loss.fetch():.6f}, slope {slope.numpy():.3f}")


def main():
    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if cluster.task_type == "chief":
        train(cluster)
    else:
        server = tf.distribute.Server(cluster.cluster_spec(), cluster.task_type, cluster.task_id)
        server.join()  # never returns


if __name__ == "__main__":
    main()
