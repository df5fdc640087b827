"""``launch setup``: build the Python environment that a hosts file asks for on every host.

identity  the environment of a hosts file, and the name of its folder on a host
packages  the packages of an environment, pinned with their hashes; a folder of wheels of these
builder   build it on all hosts side by side
"""
