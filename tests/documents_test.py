#!/usr/bin/env python3
"""Checks the links between the documents of the repository, and the files that documents quote.

    documents_test.py ROOT           check the tree at ROOT
    documents_test.py ROOT WAYMARK   check the commands in the documents against the program's --help
    documents_test.py --self-test    check that the check finds mistakes planted in a small tree

Reported are:
  - links and images in Markdown files whose target does not exist in the tree, or lies outside it
  - links to a heading that the target does not have (anchors as GitHub forms them)
  - mentions of docs/NAME.md in sources, scripts and tests, where there is no such document
  - QUOTED files that their document does not contain word for word, as one fenced block
  - TESTED documents: rows of tables whose last column names no test, a test that does not exist, or a case that the
    test before it does not have; `no test` gives a reason instead
  - with WAYMARK: commands of Waymark in indented or fenced blocks whose subcommand or options do not exist
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import urllib.parse

TESTED = ["docs/perf-pains.md"]
QUOTED = {"examples/library/decode_capture.cc": "README.md"}

SKIPPED_FOLDERS = {".git", "build", "dist", "node_modules", "tmp", "__pycache__"}
SOURCES = {".cc", ".h", ".py", ".sh", ".ts", ".tsx", ".mjs", ".cmake", ".c", ".txt", ""}
FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$")
CODE_SPAN = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^()\s>]+(?:\([^()\s]*\))?)>?(?:\s+\"[^\"]*\")?\s*\)")
HTML_LINK = re.compile(r"\b(?:src|srcset|href)=\"([^\"]+)\"")
HTML_ANCHOR = re.compile(r"\b(?:id|name)=\"([^\"]+)\"")
MENTION = re.compile(r"(?<![\w./-])docs/[\w./-]+\.md\b")


def files_of(root):
    """All files of the tree, apart from built files."""
    found = []
    for path in sorted(root.iterdir()):
        if path.is_dir():
            if path.name not in SKIPPED_FOLDERS and not path.is_symlink():
                found += files_of(path)
        else:
            found.append(path)
    return found


def prose(text):
    """The lines outside fenced blocks, numbered from 1."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if match and (fence is None or match.group(1).startswith(fence)):
            fence = match.group(1) if fence is None else None
        elif fence is None:
            yield number, line


def anchors(text):
    """The anchors to which links to the headings of a Markdown text lead."""
    found = set()
    for _, line in prose(text):
        found.update(HTML_ANCHOR.findall(line))
        match = HEADING.match(line)
        if not match:
            continue
        title = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", match.group(1))
        slug = re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()).replace(" ", "-")
        name, again = slug, 0
        while name in found:
            again += 1
            name = f"{slug}-{again}"
        found.add(name)
    return found


def check_links(root, path, known):
    """The errors in the links of one document; `known` keeps the anchors of documents already read."""
    wrong = []
    for number, line in prose(path.read_text(encoding="utf-8")):
        for target in LINK.findall(CODE_SPAN.sub("", line)) + HTML_LINK.findall(line):
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue  # another site
            where = f"{path.relative_to(root)}:{number}: link to '{target}'"
            name, _, anchor = target.partition("#")
            file = (path.parent / urllib.parse.unquote(name)).resolve() if name else path
            if target.startswith("/") or not file.is_relative_to(root):
                wrong.append(f"{where}: leads out of the repository")
            elif not file.exists():
                wrong.append(f"{where}: there is no such file")
            elif anchor:
                if file not in known:
                    known[file] = anchors(file.read_text(encoding="utf-8")) if file.suffix == ".md" else set()
                if anchor not in known[file]:
                    wrong.append(f"{where}: {file.relative_to(root)} has no such heading")
    return wrong


def check_mentions(root, path):
    wrong = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        for name in MENTION.findall(line):
            if not (root / name).exists():
                wrong.append(f"{path.relative_to(root)}:{number}: mentions {name}, which does not exist")
    return wrong


def check_quotes(root, quoted):
    wrong = []
    for name, document in quoted.items():
        if not (root / name).exists() or not (root / document).exists():
            wrong.append(f"{name} or {document}, which quotes it, does not exist")
            continue
        text = (root / name).read_text(encoding="utf-8")
        blocks = re.findall(r"^```\w*\n(.*?)^```$", (root / document).read_text(encoding="utf-8"), re.S | re.M)
        if text not in blocks:
            wrong.append(f"{document}: no fenced block holds {name} as it is; copy the file into the block")
    return wrong


def commands(text):
    """(line number, words) of each command of Waymark in the blocks of a Markdown text, without `$` and paths."""
    found, fence, lines = [], None, text.splitlines()
    for number, line in enumerate(lines, 1):
        for more in lines[number:]:
            if not line.endswith("\\"):
                break
            line = line[:-1] + more
        match = FENCE.match(line)
        if match:
            fence = None if fence else match.group(1)
        elif fence or line.startswith("    "):
            for command in re.split(r"&&|\||;", line):
                try:
                    words = shlex.split(command.replace("…", ""), comments=True)
                except ValueError:
                    continue  # an unpaired quote: not a command
                words = words[1:] if words[:1] == ["$"] else words
                if len(words) > 1 and words[0].rpartition("/")[2] == "waymark":
                    found.append((number, words[1:]))
    return found


def check_command(words, help_of):
    """The error in a command, or None. `help_of(subcommands)` is the text of --help all, or None."""
    if words[0] == "help":
        return None
    subcommands, rest = [], list(words)
    while rest and help_of([*subcommands, rest[0]]) is not None:
        subcommands.append(rest.pop(0))
    if not subcommands:
        return None if words[0].startswith("--") and words[0] in help_of([]) else f"there is no command '{words[0]}'"
    ours = rest[:rest.index("--")] if "--" in rest else rest
    known = set(re.findall(r"(?<![\w-])-{1,2}[a-z][\w-]*", help_of(subcommands)))
    for word in ours:
        option = word.partition("=")[0]
        if re.match(r"--?[a-z]", option) and option not in known:
            return f"'waymark {' '.join(subcommands)}' has no option {option}"
    return None


def check_commands(root, program):
    """(number of commands, sentences on errors)"""
    texts = {}

    def help_of(subcommands):
        key = tuple(subcommands)
        if key not in texts:
            plain = all(re.fullmatch(r"[a-z][a-z-]*", word) for word in key)
            done = subprocess.run([program, *key, "--help", "all"], capture_output=True, text=True, timeout=60) if plain else None
            # A word that is not a subcommand is taken as an argument: then the help of the preceding command is
            # printed.
            text = done.stdout if done is not None and done.returncode == 0 else None
            texts[key] = None if key and text == help_of(list(key[:-1])) else text
        return texts[key]

    number, wrong = 0, []
    for path in (path for path in files_of(root) if path.suffix == ".md"):
        for line, words in commands(path.read_text(encoding="utf-8")):
            number += 1
            mistake = check_command(words, help_of)
            if mistake:
                wrong.append(f"{path.relative_to(root)}:{line}: {mistake}")
    return number, wrong


def check_tests(root, path):
    """Errors in the tests that the rows of a document's tables name in their last column."""
    wrong = []
    for number, line in prose(path.read_text(encoding="utf-8")):
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 3 or cells[0] or re.fullmatch(r"[\s|:-]*", line) or not cells[1].isdigit():
            continue
        where, file, cases = f"{path.relative_to(root)}:{number}", None, 0
        for name in (span for _, span in CODE_SPAN.findall(cells[-2])):
            if "/" in name:
                file, cases = root / name, cases + 1
                if not file.is_file():
                    wrong.append(f"{where}: there is no test {name}")
            elif file is None:
                wrong.append(f"{where}: {name} is a case of no test")
            elif file.is_file() and not re.search(rf"\bdef {name}\(|\bTEST\w*\(\w+, {name}\)",
                                                  file.read_text(encoding="utf-8")):
                wrong.append(f"{where}: {file.relative_to(root)} has no case {name}")
        if cases == 0 and "no test" not in cells[-2]:
            wrong.append(f"{where}: names no test")
    return wrong


def check(root, quoted, tested=()):
    """(number of documents, sentences on errors)"""
    root = root.resolve()
    files = files_of(root)
    documents = [path for path in files if path.suffix == ".md"]
    wrong, known = [], {}
    for path in documents:
        wrong += check_links(root, path, known)
    for path in files:
        if path.suffix in SOURCES and path.name != pathlib.Path(__file__).name and path.stat().st_size < 1 << 20:
            wrong += check_mentions(root, path)
    for name in tested:
        wrong += check_tests(root, root / name) if (root / name).exists() else [f"there is no {name}"]
    return len(documents), wrong + check_quotes(root, quoted)


def self_test():
    good = {
        "README.md": "# Top\n[a](docs/a.md#one-two) [b](#top) [c](https://example.org/x) `[d](none)`\n"
                     "```cpp\nint x;\n[e](none)\n```\n<img src=\"docs/a.png\">\n```\nint main() {}\n```\n",
        "docs/a.md": "# One, `two`\n## Same\n## Same\n[up](../README.md) [same](#same-1) [folder](../src)\n",
        "docs/a.png": "",
        "src/x.cc": "// docs/a.md, 2.1\n",
        "main.cc": "int main() {}\n",
        "docs/t.md": "| # | test |\n|---|---|\n| 1 | `src/t.py` `test_a`, `test_b` |\n| 2 | `src/t.cc` `One` |\n"
                     "| 3 | no test: it cannot be |\n",
        "src/t.py": "def test_a(self):\ndef test_b(self):\n",
        "src/t.cc": "TEST_F(Suite, One) {\n",
        "build/b.md": "[x](none)\n",
    }
    cases = [
        ({}, []),
        ({"docs/a.md": "# Other\n"}, ["README.md:2: link to 'docs/a.md#one-two': docs/a.md has no such heading"]),
        ({"docs/a.md": None}, ["'docs/a.md#one-two': there is no such file", "src/x.cc:1: mentions docs/a.md"]),
        ({"docs/a.png": None}, ["README.md:7: link to 'docs/a.png': there is no such file"]),
        ({"docs/b.md": "[x](/etc/passwd)\n"}, ["leads out of the repository"]),
        ({"docs/b.md": "[x](../../x.md)\n"}, ["leads out of the repository"]),
        ({"docs/b.md": "text\n![x](none.png)\n"}, ["docs/b.md:2: link to 'none.png': there is no such file"]),
        ({"docs/b.md": "[x](a.md#same-2)\n"}, ["has no such heading"]),
        ({"docs/b.md": "[x](a.md 'c') [y](<a.md>) [z](a.md \"t\")\n"}, []),
        ({"main.cc": "int main() { return 0; }\n"}, ["README.md: no fenced block holds main.cc"]),
        ({"main.cc": None}, ["main.cc or README.md"]),
        ({"src/t.py": "def test_a(self):\n"}, ["docs/t.md:3: src/t.py has no case test_b"]),
        ({"src/t.cc": "TEST(Suite, Other) {\n"}, ["docs/t.md:4: src/t.cc has no case One"]),
        ({"src/t.cc": None}, ["docs/t.md:4: there is no test src/t.cc"]),
        ({"docs/t.md": "| 1 | nothing |\n"}, ["docs/t.md:1: names no test"]),
        ({"docs/t.md": "| 1 | `test_a` |\n"}, ["test_a is a case of no test", "names no test"]),
        ({"docs/t.md": None}, ["there is no docs/t.md"]),
    ]
    failures = 0
    for changes, want in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**good, **changes}.items():
                if text is not None:
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_text(text)
            _, wrong = check(root, {"main.cc": "README.md"}, ["docs/t.md"])
        if len(wrong) != len(want) or not all(part in line for part, line in zip(want, wrong)):
            failures += 1
            print(f"{changes}: {wrong}")
    texts = {(): "--version", ("flow",): "--image FILE  -o,--output", ("spe",): "", ("spe", "report"): "--by NAME"}
    examples = [
        ("    waymark flow out --image x -o y\n    build/bin/waymark --version\n", []),
        ("```\n$ waymark spe report x --by line | head --nothing\n```\nwaymark none\n", []),
        ("    waymark flow -- program --its-own\n", []),
        ("    waymark flows out\n", ["there is no command 'flows'"]),
        ("    ls && waymark flow --imag x\n", ["'waymark flow' has no option --imag"]),
        ("    waymark spe report --image=x\n", ["'waymark spe report' has no option --image"]),
        ("    waymark --versions\n", ["there is no command '--versions'"]),
        ("    waymark flow \\\n        --imag x\n", ["'waymark flow' has no option --imag"]),
    ]
    for text, want in examples:
        found = [check_command(words, lambda key: texts.get(tuple(key))) for _, words in commands(text)]
        if [mistake for mistake in found if mistake] != want:
            failures += 1
            print(f"{text!r}: {found}")
    count = len(cases) + len(examples)
    print(f"{count - failures} of {count} cases as expected")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) == 2 and not arguments[0].startswith("-"):
        number, wrong = check_commands(pathlib.Path(arguments[0]).resolve(), arguments[1])
        for line in wrong:
            print(line)
        print(f"{number} commands, {len(wrong)} mistakes")
        return 1 if wrong or number == 0 else 0
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    documents, wrong = check(pathlib.Path(arguments[0]), QUOTED, TESTED)
    for line in wrong:
        print(line)
    print(f"{documents} documents, {len(wrong)} mistakes")
    return 1 if wrong or documents == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
