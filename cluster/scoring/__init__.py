"""The values of metrics over examples, exactly, in numpy.

metric_columns  the tensors of a model's metrics in its graph, each once
examples        the fetched examples, all or the newest of all workers; their slices
measures        the values of all metrics over such examples, and over their slices
"""
