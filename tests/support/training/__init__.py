"""Clusters that tests train with. Many servers of TensorFlow live in a test's process, and cannot be stopped.

alone              steps of one process, and a model that has no servers
forks              task processes that begin with TensorFlow loaded
jobs               jobs for tests, each a module as a user writes one
kept               servers and sessions that the product keeps until its process exits
locks              what a graph's locks wait for
processes          a cluster of task processes
refused_requests   tests run again in which TensorFlow 2.x refused a request by mistake
serving            a server of a SavedModel, in a process of its own
threads            a cluster in the threads of one process
"""

import os

# Each server of TensorFlow 2.x makes 64 threads for the answers of other servers, unless it is given a number.
os.environ.setdefault("TF_GRPC_WORKER_CACHE_QUEUES", "4")
