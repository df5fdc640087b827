"""The values of metrics over examples, exactly, in numpy.

metric_columns  the tensors of a model's metrics in its graph, each once
examples        the examples that were fetched: all, or the newest of all workers
readings        the values of all metrics over such examples, and over their slices
measures        one value over arrays: area under the curve, log loss, calibration, mean
"""
