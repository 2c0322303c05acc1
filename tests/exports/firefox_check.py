#!/usr/bin/env python3
"""Checks a profile against the rules of the Firefox Profiler's processed format, version 48: required fields, columns of equal
length, valid indices, times in order. Its real reader is a web site, which tests cannot use.

    firefox_check.py FILE
"""
import json
import math
import sys

VERSION = 48
META = {"version", "preprocessedProfileVersion", "interval", "startTime", "processType", "product", "stackwalk",
        "categories", "markerSchema", "extensions", "debug", "symbolicated"}
THREAD = {"processType", "processStartupTime", "processShutdownTime", "registerTime", "unregisterTime", "pausedRanges",
          "name", "isMainThread", "pid", "tid", "stringArray"}
LIBRARY = {"arch", "name", "path", "debugName", "debugPath", "breakpadId", "codeId"}
TABLES = {
    "samples": {"stack", "time", "weight"},
    "markers": {"name", "startTime", "endTime", "phase", "category", "data"},
    "stackTable": {"prefix", "frame", "category", "subcategory"},
    "frameTable": {"address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol", "innerWindowID",
                   "implementation", "line", "column"},
    "funcTable": {"name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber", "columnNumber"},
    "resourceTable": {"lib", "name", "host", "type"},
    "nativeSymbols": {"libIndex", "address", "name", "functionSize"},
}
INSTANT, INTERVAL = 0, 1


def refers(column, size, what, *, null=False, none=None):
    """Each value leads to one of `size` rows, or is null or `none` where that is permitted."""
    for value in column:
        assert (value is None and null) or value == none or (isinstance(value, int) and 0 <= value < size), (what, value)


def ascends(times, what):
    assert all(isinstance(t, (int, float)) and math.isfinite(t) and t >= 0 for t in times), what
    assert all(a <= b for a, b in zip(times, times[1:])), f"{what} out of order"


def check_thread(thread, profile):
    assert THREAD <= thread.keys(), THREAD - thread.keys()
    assert isinstance(thread["pid"], str), "a pid is a string"
    assert all(isinstance(s, str) for s in thread["stringArray"])
    assert len(set(thread["stringArray"])) == len(thread["stringArray"]), "a string twice"
    for name, columns in TABLES.items():
        table = thread[name]
        assert columns <= table.keys(), (name, columns - table.keys())
        assert {len(table[c]) for c in columns} == {table["length"]}, f"{name}: columns of different length"
    samples, markers, stacks, frames, functions, resources = (
        thread[t] for t in ("samples", "markers", "stackTable", "frameTable", "funcTable", "resourceTable"))
    strings, categories = len(thread["stringArray"]), profile["meta"]["categories"]

    refers(samples["stack"], stacks["length"], "stack", null=True)
    refers(stacks["frame"], frames["length"], "frame")
    refers(frames["func"], functions["length"], "func")
    refers(frames["nativeSymbol"], thread["nativeSymbols"]["length"], "nativeSymbol", null=True)
    refers(functions["name"], strings, "function's name")
    refers(functions["fileName"], strings, "file", null=True)
    refers(functions["resource"], resources["length"], "resource", none=-1)
    refers(resources["lib"], len(profile["libs"]), "library", null=True)
    refers(resources["name"], strings, "resource's name")
    refers(markers["name"], strings, "marker's name")
    for table in (stacks, frames):
        refers(table["category"], len(categories), "category")
        for category, sub in zip(table["category"], table["subcategory"]):
            refers([sub], len(categories[category]["subcategories"]), "subcategory")
    for at, prefix in enumerate(stacks["prefix"]):
        assert prefix is None or 0 <= prefix < at, "a stack before its prefix"

    assert samples["weightType"] in ("samples", "tracing-ms", "bytes")
    ascends(samples["time"], "samples")
    # The last sample of a track ends the preceding one.
    assert all(weight > 0 or stack is None for weight, stack in zip(samples["weight"], samples["stack"]))
    deltas = samples.get("threadCPUDelta")
    assert deltas is None or len(deltas) == samples["length"]
    ascends(markers["startTime"], "markers")
    schemas = {schema["name"]: {field["key"] for field in schema["data"]} for schema in profile["meta"]["markerSchema"]}
    for phase, start, end, data in zip(*(markers[c] for c in ("phase", "startTime", "endTime", "data"))):
        assert (phase == INSTANT and end is None) or (phase == INTERVAL and end >= start), (phase, start, end)
        assert data.keys() - {"type"} <= schemas[data["type"]], data


def check(profile):
    meta = profile["meta"]
    assert META <= meta.keys(), META - meta.keys()
    assert meta["preprocessedProfileVersion"] == VERSION and meta["interval"] > 0
    for library in profile["libs"]:
        assert LIBRARY <= library.keys(), LIBRARY - library.keys()
    assert profile["threads"], "no thread"
    ids = [(thread["pid"], thread["tid"]) for thread in profile["threads"]]
    assert len(set(ids)) == len(ids), "a thread twice"
    for thread in profile["threads"]:
        check_thread(thread, profile)
    # Threads without their own times do not make the profile longer than other threads do.
    ends = [(thread["samples"]["time"][-1], thread["samples"]["weightType"]) for thread in profile["threads"]
            if thread["samples"]["length"]]
    in_time = [end for end, kind in ends if kind == "tracing-ms"]
    assert not in_time or all(end <= max(in_time) + 1e-3 for end, _ in ends), ends


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        profile = json.load(file)
    check(profile)
    print(f"{len(profile['threads'])} threads, {sum(t['samples']['length'] for t in profile['threads'])} samples, "
          f"{sum(t['markers']['length'] for t in profile['threads'])} markers")


if __name__ == "__main__":
    main()
