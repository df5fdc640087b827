"""The Python environments that ``launch setup`` builds on this host.

environment  one environment, identified by a hash of its contents
wheel_store  the package files that the launcher has sent to this host
pip_build    the build of an environment from a lock file with pip, and texts about its stages and failures
"""
