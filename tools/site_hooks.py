"""What mkdocs does to a page: links to files of the repository, which are not part of the site, become their paths."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[([^\]]*)\]\((\.\./[^)#]+)\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """The text of a page, with paths in the place of links that lead out of the site."""
    folder = posixpath.dirname(page.file.src_uri)

    def as_path(link: re.Match[str]) -> str:
        text, path = link[1], posixpath.normpath(posixpath.join(folder, link[2]))
        if not path.startswith("../"):
            return link[0]
        path = path.removeprefix("../")
        named = text.strip("`") in (path, posixpath.basename(path))
        return f"`{path}`" if named else f"{text} (`{path}` in the repository)"

    return _LINK.sub(as_path, markdown)
