"""How gradients of all workers become one update: synchronous, overlapped, asynchronous.

exchange           what a step sends, load by load
accumulators       where gradients of several workers meet on a server
ordered            the same in a fixed order, for ``launch verify``
token_sync         exactly one gradient of every worker to every step
sync_worker        how a worker takes such steps, and comes back
finisher           applies steps beside the chief's own
overlapped_sync    the same step with pushes and pulls at once
overlapped_worker  how a worker takes overlapped steps, and comes back
server_queues      what a server keeps of overlapped steps
send_window        when a load may be sent
async_worker       a gradient applied as soon as it is there
stock              steps that TensorFlow's own class makes
stock_graph        the graph of TensorFlow's documentation for them
replica            what a session needs of one worker's graph
"""
