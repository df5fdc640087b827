"""A recording of a command: what a terminal of 80 by 24 shows, as a picture that moves.

``python -m tests.recording docs/up.svg -- launch up hosts.yaml``

terminal   a terminal's screen, from the bytes that a program writes
svg        frames of a screen as one SVG file, animated by CSS
__main__   runs the command in a pseudo-terminal, and takes the frames
"""
