"""Several copies of a model in one graph, which share one set of variables.

variables          the variables that later copies take from the first
keras_graphs       Keras layers in such a graph, on both runtimes
graph_collections  the entries of one copy in the graph's collections, including counts of variable scopes
"""
