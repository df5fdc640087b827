"""A folder that the agent puts into PYTHONPATH of programs under ``command:``.

sitecustomize  lets a Python program write the stacks of its threads on request
"""
