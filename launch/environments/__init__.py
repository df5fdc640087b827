"""``launch setup``: build the Python environment that a hosts file asks for on every host.

identity  the packages of an environment, pinned with their hashes, and the name of its folder on a host
builder   build it on all hosts side by side
"""
