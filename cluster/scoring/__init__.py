"""The values of metrics over examples, in numpy and in bounded memory.

metric_columns  the tensors of a model's metrics in its graph, each once
examples        the slices of examples; the newest examples of training, of all workers
measures        the values of all metrics over any number of examples, and over their slices
ranked_scores   areas under the ROC curve, and how far they may be from the exact ones
"""
