"""Pictures of the page of a run for the documentation, made of a real run in a real browser.

__main__   train digits on this machine, kill a worker, and take a picture of each stage
png        write pictures with few colours, in a third of the bytes
"""
