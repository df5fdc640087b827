"""TensorFlow sessions, servers, devices and what servers keep; nothing here knows a model.

tf_compat        the one import of TensorFlow, as 1.15 and 2.x both have it
devices          names of devices, and which of a task's each tower takes
server           the TensorFlow server of a task, and sessions that reach the others
shutdown         how a run ends: workers leave, the chief last, servers on its word
waiting          waits with a timeout and the name of what they wait for
tf_errors        the words of a TensorFlow error that name the cause
server_state     taking, filling and emptying many queues of a server at once
bandwidth        how quick the network to the servers is, measured
constants        small constants, each made once on each device
declared         a server's variable as a single operation
allocator        return freed memory to the system
gradients        merging rows, copying, clipping and measuring gradients
graph_functions  computations that a graph has once, however often it calls them
"""
