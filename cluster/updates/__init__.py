"""Update the servers' variables by the optimizer, on the servers, once the step's gradients have arrived.

TensorFlow's elementwise optimizers update each bucket as soon as its gradients are complete:

incremental_apply  apply an optimizer to some variables at a time, with slots of few operations

Any other optimizer needs all variables, whole and under the author's names:

imported_update      build its update in a separate graph, with the model's collections, and import that graph
counted_step         the global step that it sees there, and counts
optimizer_gradients  the part that each worker does before pushing; whether its minimize may be skipped
passed_loss          the functions of the loss that it may differentiate

For both kinds:

grouped    one optimizer made of several, by the beginnings of names
nan_guard  stop at, or ignore, a loss or gradient that is not finite
"""
