"""A grammar of constructions: what an author may write, crossed with the manners in which it is trained.

axes        what an author may write, a value for each axis
rows        constructions that went wrong, as values of the axes
manners     the tasks of a run, and how they make a step together
drawing     a seed is a construction and a manner
models      the model of a construction; nets, functions, updates and wrappers have its parts
plain       trains it with plain TensorFlow
runs        trains it with parameter servers in this process, on servers that the next run uses again
answers     a process that does both
"""
