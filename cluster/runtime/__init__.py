"""TensorFlow sessions, servers, devices and what servers keep; nothing here knows a model.

tf_compat     the one import of TensorFlow, as 1.15 and 2.x both have it
devices       names of devices, and which of a task's each tower takes
server        the TensorFlow server of a task, sessions that reach the others, and the end of a run
waiting       waits with a timeout and the name of what they wait for
tf_errors     the words of a TensorFlow error that name the cause
code_lines    the line of a file at which an error is
server_state  variables of one operation, locks and queues that servers keep
process       the memory that this process may take and gives back, and its log on a full disk
gradients     merging rows, copying, clipping and measuring gradients
subgraph      a part of a graph once more, for other inputs
tensors       small functions of tensors, made of few operations; constants, and a choice of branches
"""
