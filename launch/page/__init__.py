"""The page of a run: one HTML file that needs no network. ``launch report`` prints it, ``launch view`` serves it.

run_page   the content of the page as JSON values, and the whole document
page.html  the document around values, style and script
page.css   the style
page.js    the script: it draws the values as text nodes and SVG, and never as markup
"""
