"""The page of a run: one HTML file that needs no network. ``launch report`` prints it, ``launch view`` serves it.

facts      what the page shows, as JSON values: a status in words and numbers
document   the HTML around these values, with its style and script
page.css   the style
page.js    the script: it draws the values as text nodes and SVG, and never as markup
"""
