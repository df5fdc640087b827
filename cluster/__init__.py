"""The training of one task in a cluster, on TensorFlow 1.15 and 2.x through ``compat.v1``.

A worker has its own copy of the model. The parameter servers (ps) hold the authoritative variables. In a synchronous
step every worker pushes gradients to the servers, the servers update their variables, and every worker fetches the new
values. ``steps`` explains a step in four lines.

Authors of jobs may import ``Task`` and the modules of this folder, and no package in it:

  task, job     a task of a cluster and its settings; the functions of a job's file
  layers, optimizers, schedules, datafiles, stages, towers, embedding, estimator, metrics, shards
                the modules that a model's file may import
  errors        every error that this folder raises

Packages, each above the packages before it:

  protocol      agreements of launcher, agent and task process, without TensorFlow
  spec          the hosts file; only the launcher reads it
  runtime       sessions, servers, devices
  variables     the server of each variable, and the number of its slices; values that are sent
  sharing       several copies of a model on one set of variables
  updates       the optimizer's update, on the servers
  checkpoints   written and read only by the chief
  scoring       the values of metrics over examples
  model         the model of a job, as plain TensorFlow would build it
  steps         from the gradients of all workers to one update
  trace         a timeline of one step
  verify        compare a run with one process
  training      one worker, from graph to outcome
  recommend     embedding tables, examples that are trained exactly once: extensions of a model
  model_fn      the function of an Estimator as a job's model
  serving       measure each checkpoint while training continues; export one as a SavedModel
"""

from cluster.task import Task

__all__ = ["Task"]
