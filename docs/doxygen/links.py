#!/usr/bin/env python3
"""Checks every link, image and anchor among HTML pages: links.py FOLDER"""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name"):
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: Page(path) for path in sorted(folder.rglob("*.html"))}
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            url = urllib.parse.urlsplit(link)
            # Doxygen names this section at the head of a page though all classes in it are private and left out.
            if url.scheme or url.netloc or link == "#nested-classes":
                continue
            target = path.parent / urllib.parse.unquote(url.path) if url.path else path
            if not target.is_file():
                wrong.append(f"{path.name}: {link}: there is no such file")
            elif url.fragment and target in pages and urllib.parse.unquote(url.fragment) not in pages[target].anchors:
                wrong.append(f"{path.name}: {link}: the page has no such anchor")
    print(*sorted(set(wrong)), sep="\n")
    print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links, {len(wrong)} wrong")
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
