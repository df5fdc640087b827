"""Update the servers' variables by the optimizer, on the servers, once the step's gradients have arrived.

TensorFlow's elementwise optimizers update each bucket as soon as its gradients are complete:

incremental_apply  apply an optimizer to some variables at a time, with few operations for each slot
by_rule            optimizers that are one rule for elements or rows, also an author's own
rules              those that TensorFlow 1.15 lacks

Any other optimizer needs all variables, whole and under the author's names:

imported_update      build the optimizer's update in a separate graph with the model's collections, and import the graph
counted_step         the global step that the optimizer sees and counts in that graph
optimizer_gradients  the gradients that the optimizer computes on a worker, and changes on servers; its ``minimize``
passed_loss          the functions of the loss that the optimizer may differentiate

For both kinds:

grouped    one optimizer made of several, by the beginnings of names
nan_guard  stop at, or ignore, a loss or gradient that is not finite
"""
