"""``launch setup``: build the Python environment that a hosts file asks for on every host.

identity   the environment of a hosts file, and the name of its folder on a host
lock_file  the packages of an environment, pinned with their hashes
wheels     a folder of wheels, for hosts that reach no package index
builder    build it on all hosts side by side
"""
