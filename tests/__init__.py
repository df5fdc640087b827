"""Tests; those of a module lie where the module lies: of ``launch/x/y.py`` in ``launch/x/test_y.py``.

launch        the launcher and its agents; ``launch/end_to_end`` has whole runs
cluster       training
jobs          the jobs that come with the project
differential  models beside plain TensorFlow in one process, in every way
chaos         random faults, injected into runs on fake hosts
attack        attacks on a run, as another user and as a neighbour
benchmarks    what is measured, and how
support       what tests share, in rooms with maps
"""
