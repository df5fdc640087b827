"""Keep pages outside the navigation out of the search: they are for contributors, or name the place of a moved page."""

from typing import Any


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Exclude a page that ``not_in_nav`` of mkdocs.yml matches from the search."""
    if page.file.inclusion.name == "NOT_IN_NAV":
        page.meta["search"] = {"exclude": True}
    return markdown
