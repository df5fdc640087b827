"""What a cluster is, and how one task of it trains.

``errors``, ``spec``, ``task`` and ``outcome`` need no TensorFlow and are shared
with the launcher; ``server``, ``placement``, ``towers``, ``sync`` and ``session``
are the training itself, on TensorFlow 1.15 and 2.x through ``compat.v1``.
"""
