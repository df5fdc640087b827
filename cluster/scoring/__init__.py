"""The values of metrics over examples, exactly, in numpy.

columns    the tensors of a model's metrics in its graph, each once
examples   the examples that were fetched, all or the newest
readings   the values of all metrics over such examples
measures   one value over arrays: area under the curve, log loss, calibration, mean
ranking    how well scores rank examples of two kinds
slices     the slices of the data, by the number of their examples
window     the newest examples of all workers
"""
