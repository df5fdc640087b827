"""The training of one task in a cluster, on TensorFlow 1.15 and 2.x through ``compat.v1``.

A worker has its own copy of the model. The parameter servers (ps) hold the variables that count. In a synchronous step
every worker pushes gradients to the servers, the servers update their variables, and every worker fetches the new
values. ``steps`` explains that in four lines.

Authors of jobs may import what lies loose here, and nothing else:

  task, job     a task of a cluster and its settings; the functions of a job's file
  layers, optimizers, schedules, datafiles, stages, towers, embedding, metrics, shards
                what a model's file may import
  errors        everything that can be wrong on the cluster's side

Packages, each above those before it:

  protocol      what launcher, agent and task process agree on, without TensorFlow
  spec          the hosts file; only the launcher reads it
  runtime       sessions, servers, devices
  variables     which server holds which variable, in how many slices; values on their way
  sharing       several copies of a model on one set of variables
  updates       the optimizer's update, on the servers
  checkpoints   written and read by the chief
  scoring       the values of metrics over examples
  model         what plain TensorFlow would build of a job
  steps         how gradients of all workers become one update
  trace         a timeline of one step
  verify        compare a run with one process
  training      one worker, from graph to outcome
  recommend     embedding tables, examples that count once: extensions of a model
  serving       what checkpoints are for: measure each beside the training, export one as a SavedModel
"""
