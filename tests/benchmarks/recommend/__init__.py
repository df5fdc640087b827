"""Recommenders in the shape of Criteo's logs, beside TensorFlow's own ways to train them: make bench-recommend

data         examples of known odds, written once; every system reads the same
cases        clusters and networks; the systems that are compared
job          this project's part
stock        TensorFlow 1.15: partitioned variables and SyncReplicasOptimizer, or one process
coordinator  TensorFlow 2.x: ParameterServerStrategy
area         the area under the ROC curve, for systems that have none
running      one measurement, on fake hosts
report       tables of the results

See docs/measurements/recommend.md.
"""
