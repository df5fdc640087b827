"""Turn the gradients of all workers into one update: synchronous, overlapped or asynchronous.

exchange           the loads of a step: gradients sent, new values received
accumulators       gradients of several workers, collected on a server
ordered            the same in a fixed order, for ``launch verify``
token_sync         exactly one gradient of every worker to every step
sync_worker        such steps on one worker, and its return after a restart
overlapped_sync    the same step with pushes and pulls at once
overlapped_worker  overlapped steps on one worker, and its return after a restart
server_queues      one server's record of overlapped steps
send_window        the order of loads, and how many are under way
async_worker       a gradient applied as soon as it is there
stock              steps that TensorFlow's own class makes
replica            the parts of one worker's graph that a session needs
"""
