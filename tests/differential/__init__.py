"""Small models, trained by this project and by plain TensorFlow in one process: they must come to the same variables.

The models (``models/``) are jobs as TensorFlow's authors write them; ``recipes`` and ``constructions/`` put others
together at random. ``reference`` trains one of them and loads nothing of this project, ``ours`` and ``reused`` train it
with parameter servers, and ``verdict`` compares what came of both.
"""
