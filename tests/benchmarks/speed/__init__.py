"""How long a step takes beside its bound and beside TensorFlow's own SyncReplicasOptimizer: make bench-speed

Fake hosts with network cards of a known rate train the same variables, one way after the other, in turns. What
takes the time is the network: the model costs next to nothing. See docs/measurements/speed.md.
"""
