"""Tests of training. Many servers of TensorFlow live in a test's process, and cannot be stopped."""

import os

# Each server of TensorFlow 2.x makes 64 threads for the answers of other servers, unless it is given a number.
os.environ.setdefault("TF_GRPC_WORKER_CACHE_QUEUES", "4")
