"""Turn the gradients of all workers into one update: synchronous, overlapped or asynchronous.

A synchronous step, on N workers of which worker 0 is the chief:

1. Every worker computes a gradient with its own copy of the variables.
2. Every worker pushes its gradient to the servers. Each server adds up N gradients.
3. The chief makes the servers update their variables, and sends each worker a token for the next step.
4. Every worker waits for its token, and fetches the new values.

How gradients and values travel:

exchange         sends gradients in pushes, fetches values in buckets; orders pushes, and limits those under way
accumulators     add up the gradients of N workers, on a server; in a fixed order for ``launch verify``

The optimizers, which build a step, and the workers, which take the step in a session:

token_sync       a step that first pushes everything, then fetches everything
sync_worker      takes such steps; rejoins after a restart
server_notes     one server's record of the gradients that each worker has sent
overlapped_sync  the same step, with pushes and pulls at the same time; rejoins in the middle of a step
server_queues    one server's record of an overlapped step
async_worker     steps without waiting: servers apply each gradient at once
local_steps      windows of steps on a worker's own copy: the servers get the sum of a window's updates
stock_worker     steps of TensorFlow's own ``SyncReplicasOptimizer``
base_worker      the inputs of a step; the base class of all workers; stops workers during the chief's last save
extension        parts that a model may have besides variables, such as embedding tables
replica          the parts of one worker's graph that a session needs
"""
