"""Update the servers' variables by the optimizer, on the servers, once the step's gradients are there.

TensorFlow's elementwise optimizers update each bucket as soon as its gradients are complete:

incremental_apply  apply an optimizer to some variables at a time, with slots made in few operations

Any other optimizer needs all variables, whole and under the author's names:

imported_update      build its update in a graph of its own, with the model's collections, and import that
counted_step         the global step that it sees there, and counts
optimizer_gradients  the part of it that each worker does before pushing; whether its minimize may be left out
passed_loss          what it may make of the loss

For both kinds:

grouped    one optimizer made of several, by the beginnings of names
nan_guard  stop at, or ignore, a loss or gradient that is not finite
"""
