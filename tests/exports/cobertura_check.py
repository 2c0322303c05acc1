#!/usr/bin/env python3
"""Checks a Cobertura report against the structure its readers expect: nesting of elements, required attributes, and rates
and sums that agree with the lines. Prints what it contains."""
import sys
import xml.etree.ElementTree

RATES = {"line-rate", "branch-rate", "complexity"}
SHAPE = {  # element: attributes it must have, elements in it, in order
    "coverage": (RATES | {"lines-covered", "lines-valid", "branches-covered", "branches-valid", "version", "timestamp"},
                 ["sources", "packages"]),
    "sources": (set(), ["source"]),
    "source": (set(), []),
    "packages": (set(), ["package"]),
    "package": (RATES | {"name"}, ["classes"]),
    "classes": (set(), ["class"]),
    "class": (RATES | {"name", "filename"}, ["methods", "lines"]),
    "methods": (set(), ["method"]),
    "method": (RATES | {"name", "signature"}, ["lines"]),
    "lines": (set(), ["line"]),
    "line": ({"number", "hits"}, ["conditions"]),
    "conditions": (set(), ["condition"]),
    "condition": ({"number", "type", "coverage"}, []),
}
OPTIONAL = {"line": {"branch", "condition-coverage"}}


def check(element, path):
    path = f"{path}/{element.tag}"
    must, within = SHAPE[element.tag]
    has = set(element.attrib)
    assert must <= has, f"{path} lacks {must - has}"
    assert has <= must | OPTIONAL.get(element.tag, set()), f"{path} has {has - must} too many"
    order = [within.index(child.tag) for child in element]
    assert order == sorted(order), f"{path}: elements out of order"
    if element.tag == "line" and element.get("branch") == "true":
        conditions = element.findall("conditions/condition")
        percent, counts = element.get("condition-coverage").split(" ")
        hit, valid = map(int, counts.strip("()").split("/"))
        assert valid == 2 * len(conditions), path
        assert sum(int(c.get("coverage").rstrip("%")) // 50 for c in conditions) == hit, path
        assert percent == f"{hit * 100 // valid}%", path
    for rate in has & {"line-rate", "branch-rate"}:
        assert 0 <= float(element.get(rate)) <= 1, path
    if element.tag == "line":
        assert int(element.get("number")) > 0 and int(element.get("hits")) >= 0, path
        assert (element.get("branch") == "true") == (element.get("condition-coverage") is not None), path
    if element.tag == "lines":
        numbers = [int(line.get("number")) for line in element]
        assert numbers == sorted(set(numbers)), f"{path}: lines out of order, or twice"
    for child in element:
        check(child, path)


def check_rates(part):
    """The rates of the root, a package or a class agree with its lines; without lines, nothing is missing."""
    lines = part.findall("lines/line") if part.tag == "class" else part.findall(".//class/lines/line")
    hit = sum(line.get("hits") != "0" for line in lines)
    branches = [tuple(map(int, line.get("condition-coverage").split("(")[1].rstrip(")").split("/")))
                for line in lines if line.get("branch") == "true"]
    taken, valid = sum(b[0] for b in branches), sum(b[1] for b in branches)
    for rate, some, whole in (("line-rate", hit, len(lines)), ("branch-rate", taken, valid)):
        assert abs(float(part.get(rate)) - (some / whole if whole else 1)) < 1e-5, (part.tag, part.get("name"), rate)


def main():
    root = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
    assert root.tag == "coverage"
    check(root, "")
    lines = root.findall("packages/package/classes/class/lines/line")
    hit = sum(line.get("hits") != "0" for line in lines)
    branches = [line.get("condition-coverage").split("(")[1].rstrip(")").split("/")
                for line in lines if line.get("branch") == "true"]
    taken, valid = sum(int(b[0]) for b in branches), sum(int(b[1]) for b in branches)
    for name, value in (("lines-valid", len(lines)), ("lines-covered", hit), ("branches-valid", valid),
                        ("branches-covered", taken)):
        assert root.get(name) == str(value), name
    assert int(root.get("timestamp")) > 10 ** 12, "a time in milliseconds"
    assert root.get("version"), "no version"
    for part in (root, *root.iter("package"), *root.iter("class")):
        check_rates(part)
    print(f"{len(lines)} lines, {hit} covered, {valid} branches, {taken} covered, "
          f"{len(root.findall('.//method'))} methods")


if __name__ == "__main__":
    main()
