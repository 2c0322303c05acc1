"""Reads the truth file of a recording (include/waymark/record/truth.h) for tests, without using Waymark's own reader."""
import pathlib
import re


def numbers(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7f) << shift
        shift += 7
        if not byte & 0x80:
            yield value
            value = shift = 0


def ranges(path):
    """Each range of a file as (start, end, instructions, lost)."""
    known, lost = [], False
    values = numbers(pathlib.Path(path).read_bytes())
    for value in values:
        if value == 1:
            lost = True
            continue
        if value == 0:
            start, size, count = next(values), next(values), next(values)
            known.append((start, start + size, count))
        yield (*known[-1 if value == 0 else value - 2], lost)
        lost = False


def sources(folder):
    """Name and ranges of each source of a recording made with --truth."""
    text = (pathlib.Path(folder) / "truth.txt").read_text()
    return [(name, list(ranges(pathlib.Path(folder) / file)))
            for name, file in re.findall(r"^source (\S+) .* file (\S+)$", text, re.M)]
