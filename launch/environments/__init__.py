"""``launch setup``: build the Python environment from a hosts file on every host.

identity  the packages of an environment, pinned by hashes, and the name of its folder on a host
builder   the build of the environment on all hosts in parallel
"""
