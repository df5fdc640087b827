"""Small models, trained by this project and by plain TensorFlow in one process: they must come to the same variables.

The models (``models/``) are jobs as TensorFlow's authors write them. ``reference`` trains one of them in a process that
loads nothing of this project, ``ours`` trains it with parameter servers, and ``verdict`` compares what came of both.
"""
