"""A cluster and the training of one of its tasks, on TensorFlow 1.15 and 2.x through ``compat.v1``.

For authors of jobs:

  task, job     a task of a cluster and its settings; the functions of a job's file
  layers, optimizers, schedules, datafiles, stages, towers
                what a model's file may import
  errors        everything that can be wrong on the cluster's side

Rooms, each above those before it:

  protocol      what launcher, agent and task process agree on, without TensorFlow
  spec          the hosts file; only the launcher reads it
  runtime       sessions, servers, devices
  variables     the properties of variables, and the places of their values
  sharing       several copies of a model on one set of variables
  updates       how gradients change variables
  model         what plain TensorFlow would build of a job
  steps         how gradients of all workers become one update
  checkpoints   written and read by the chief
  trace         a timeline of one step
  verify        compare a run with one process
  training      one worker, from graph to outcome
"""
