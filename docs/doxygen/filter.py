#!/usr/bin/env python3
"""A file as Doxygen reads it, to standard output: filter.py FILE. Run in the root of the repository.

Headers: the first comment is that of the file, and comments are plain text with code in backticks, so what Doxygen takes
for a command or a link is escaped. Guides: each heading gets an anchor of its own, of the form that links have on GitHub,
and links to guides and headings become references; what is not among the pages stays as text.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path.cwd()
SPECIAL = re.compile(r"([\\@<>&#%])")
CODE = re.compile(r"(`+[^`]+`+)")
COMMENT = re.compile(r"^(.*?)(///<?)( ?.*)$")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(\s*<?([^()\s>]+)>?\s*\)")
IMAGE = re.compile(r'<img src="[^"]*?([^"/]+)" alt="([^"]*)">')
HEADING = re.compile(r"^(#{1,6}) +(.*?) *#* *$")
PAGES = {"README.md", "CONTRIBUTING.md", "examples/README.md", "examples/library/README.md"}


def escaped(text):
    """Outside of backticks."""
    return "".join(part if part.startswith("`") else SPECIAL.sub(r"\\\1", part) for part in CODE.split(text))


def header(text):
    out = []
    lines = text.split("\n")
    for number, line in enumerate(lines):
        # Comparisons that the compiler writes are listed by Doxygen, but have no place to be linked to.
        if re.match(r" *friend .*\boperator.* = default;$", line):
            line = ""
        # Other operators, too, unless they look like members.
        line = re.sub(r"^( *)friend (?=.*\boperator)", r"\1static ", line)
        match = COMMENT.match(line)
        if match and match[1].strip().startswith("//"):
            match = None
        if match:
            # A code span may go on in the next line; Doxygen joins them.
            line = match[1] + match[2] + escaped(match[3])
        if number == 0 and line.startswith("///"):
            line = "/// @file\n" + line
        out.append(line)
    return "\n".join(out)


def page(path):
    """The name of a guide among the pages; None: it is none of them."""
    name = str(path)
    if name == "README.md":
        return "index"
    return re.sub(r"\W", "-", name[:-3]) if name in PAGES or re.match(r"docs/.*\.md$", name) else None


def slug(heading):
    """As GitHub makes it."""
    text = re.sub(r"`|\*|\[([^\]]*)\]\([^)]*\)", lambda m: m[1] or "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def prose(line):
    """Outside of backticks; Doxygen looks for commands in code too, in tables for tags as well."""
    def code(span):
        if not re.search("@" if not line.startswith("|") else "[<@]", span):
            return span
        inner = span.strip("`").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return "<code>" + re.sub(r"([@*])", r"\\\1", inner) + "</code>"
    def words(part):
        return re.sub(r"@(?!ref )|#(?=\w)|<(?=/?\w)", lambda m: "\\" + m[0], part)
    return "".join(code(part) if part.startswith("`") else words(part) for part in CODE.split(line))


def guide(path, text):
    name, seen, out, fence = page(path), {}, [], None

    def link(match):
        image, shown, target = match[1], match[2], match[3]
        if re.match(r"[a-z]+:", target):
            return match[0]
        if image:
            return f"![{shown}]({pathlib.Path(target).name})"
        file, _, anchor = target.partition("#")
        to = (ROOT / path.parent / file).resolve() if file else (ROOT / path).resolve()
        to_page = page(to.relative_to(ROOT)) if to.is_relative_to(ROOT) and to.is_file() else None
        if to_page is None:
            return shown
        plain = shown.replace("`", "").replace('"', "")
        return f'@ref {to_page}{"--" + anchor if anchor else ""} "{plain}"'

    first = True
    for line in text.split("\n"):
        if re.match(r" {0,3}(```|~~~)", line):
            fence = None if fence else line
            # A language that Doxygen does not know is none.
            out.append(re.sub(r"```(cpp|c|python)$", lambda m: "```{." + {"python": "py"}.get(m[1], m[1]) + "}", line))
            continue
        if fence or line.startswith("    "):
            out.append(line)
            continue
        heading = HEADING.match(line)
        if re.match(r" *</?(picture|source)\b", line):
            continue
        line = prose(LINK.sub(link, IMAGE.sub(r"![\2](\1)", line)))
        if heading:
            anchor = slug(heading[2])
            count = seen[anchor] = seen.get(anchor, -1) + 1
            anchor += f"-{count}" if count else ""
            plain = LINK.sub(lambda m: m[2], heading[2]).replace("`", "")
            name_here = ("mainpage" if name == "index" else name) if first else f"{name}--{anchor}"
            line = f"{heading[1]} {plain} {{#{name_here}}}"
            first = False
        out.append(line)
    return "\n".join(out)


def main():
    path = pathlib.Path(sys.argv[1])
    path = path.relative_to(ROOT) if path.is_absolute() else path
    text = path.read_text(encoding="utf-8")
    sys.stdout.write(header(text) if path.suffix == ".h" else guide(path, text))


if __name__ == "__main__":
    main()
