"""TensorFlow sessions, servers, devices, and the variables and queues of servers. No module here knows a model.

tf_compat     the only import of TensorFlow, for the parts that 1.15 and 2.x have in common
devices       names of devices, and the devices of each tower of a task
server        the TensorFlow server of a task, the sessions that reach other servers, and the end of a run
waiting       waits with a timeout, and with the name of the awaited event
tf_errors     the words of a TensorFlow error that name the cause
code_lines    the line of a file that caused an error
server_state  variables of one operation, locks and queues on servers
process       the memory that this process may still take, the memory that it returns, and its log on a full disk
gradients     merging rows, copying, clipping and measuring gradients
subgraph      a copy of a part of a graph, for other inputs
tensors       small functions of tensors with few operations; constants, and a choice of branches
"""
