"""TensorFlow sessions, servers, devices and what servers keep; nothing here knows a model.

tf_compat     the one import of TensorFlow, as 1.15 and 2.x both have it
devices       names of devices, and which of a task's each tower takes
server        the TensorFlow server of a task, and sessions that reach the others
shutdown      how a run ends: workers leave, the chief last, servers on its word
waiting       waits with a timeout and the name of what they wait for
tf_errors     the words of a TensorFlow error that name the cause
server_state  variables, locks and queues that servers keep beside the model
bandwidth     how quick the network to the servers is, measured
constants     small constants, each made once on each device
conditional   a choice between two branches, whatever control flow the job has switched on
declared      a server's variable as a single operation
allocator     return freed memory to the system
memory        how much of it this process may still take
gradients     merging rows, copying, clipping and measuring gradients
subgraph      a part of a graph once more, for other inputs
tensors       small functions of tensors, made of few operations
"""
