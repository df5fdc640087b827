"""Draw the learning curves of runs. ``launch.status.run_history`` records the curve of a run, and
``launch.view.robust_scale`` has the scale of the drawing.

overlay          several curves in one drawing, in lines of text
comparison       two runs side by side: their curves, their results, and the arguments that differ
comparison_page  the comparison of two runs as one HTML file
"""
