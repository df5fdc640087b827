"""An author's ``model_fn``, as ``cluster.estimator`` calls it.

model_calls  the calls of ``model_fn`` and ``input_fn``, and what they return
minimized    the optimizer that minimises the loss; a ``train_op`` that does more is refused
"""
