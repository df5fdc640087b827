"""``python -m launch``"""

from launch.cli import main

main()
