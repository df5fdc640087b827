# The names that `import launch` has; launch/__init__.py loads them when they are used first.
from launch.api import Run as Run
from launch.api import runs as runs
from launch.api import status as status
from launch.api import up as up
