#!/usr/bin/env python3
"""The figures that a report shows of a part of a capture, in a browser (closer.mjs): they equal what a count of every
instruction of `waymark flow --format tsv` gives, and what `waymark calls` and `waymark coverage` say.

    closer_test.py WAYMARK SOURCE_DIR WEB [--long]

--long: a thousand random ranges in place of twelve, 10,000 random steps in place of 200, and all functions in place of
three.
"""
import base64
import collections
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from browser_test import CHROMIUM, run, skip  # noqa: E402
from scratch import Folder, HANGS  # noqa: E402


# Functions whose single calls are compared.
FUNCTIONS = ("main", "do_call", "__vfprintf_internal", "run_by_table", "do_add", "_IO_new_file_xsputn", "_itoa_word", "do_push")


# Three threads, each with 20 calls of parse, which calls leaf twice, and of show, which calls it once.
THREADS = r"""
#include <pthread.h>
static __attribute__((noinline)) unsigned leaf(unsigned x) { unsigned sum = 0; for (volatile unsigned i = 0; i < x; ++i) sum += i; return sum; }
static __attribute__((noinline)) unsigned parse(unsigned x) { return leaf(x) * 3 + leaf(x + 1); }
static __attribute__((noinline)) unsigned show(unsigned x) { return leaf(x + 2) * 5; }
static void* work(void* sum) { for (unsigned i = 0; i < 20; ++i) *(unsigned*)sum += parse(5) + show(3); return sum; }
int main(void) {
    pthread_t threads[2];
    unsigned sums[3] = {0, 0, 0};
    for (int i = 0; i < 2; ++i) pthread_create(&threads[i], 0, work, &sums[i]);
    work(&sums[2]);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], 0);
    return sums[0] != sums[2] || sums[1] != sums[2];
}
"""


def rows(waymark, *arguments):
    """The table of a command, as dictionaries."""
    head, *lines = run(waymark, *arguments, "--format", "tsv").stdout.splitlines()
    return [dict(zip(head.split("\t"), line.split("\t"))) for line in lines]


def functions_of(program):
    """(begin, end, name) of each function, by binutils."""
    out = []
    for line in run("aarch64-linux-gnu-nm", "-S", "--defined-only", program).stdout.splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[2] in "tTwW":
            out.append((int(fields[0], 16), int(fields[0], 16) + int(fields[1], 16), fields[3]))
    return sorted(out)


def executed(waymark, capture, program):
    """The function of each executed instruction, in order, by address and name, and the places of exceptions."""
    functions = functions_of(program)
    at, last = {}, {}
    for i, (begin, end, _) in enumerate(functions):
        for address in range(begin, end, 4):
            at.setdefault(address, i)
    ran, exceptions = [], []
    for row in rows(waymark, "flow", capture, "--symbols", program):
        if row["element"] == "range":
            ran += [at.get(address, -1) for address in range(int(row["start"], 16), int(row["end"], 16), 4)]
        elif row["element"] == "exception":
            exceptions.append(len(ran))
    return [(hex(functions[i][0]) if i >= 0 else "", functions[i][2] if i >= 0 else "") for i in ran], exceptions


def stepped(waymark, capture):
    """Execution in order: addresses, outcomes of branches by place, places of exceptions and gaps, for each call the
    address where the caller continues, and the blocks with the places where they began."""
    addresses, outcomes, events, behind, waiting, starts, blocks = [], {}, [], {}, [], [], []
    for row in rows(waymark, "flow", capture):
        if row["element"] == "range":
            starts.append(len(addresses))
            blocks.append(f"{int(row['start'], 16):x} {int(row['instructions'])}")
            for i, address in enumerate(range(int(row["start"], 16), int(row["end"], 16), 4)):
                # A call waits for its return address; calls that never returned are dropped when a caller continues.
                if i == 0 and any(address == wanted for wanted, _ in waiting):
                    while True:
                        wanted, place = waiting.pop()
                        if wanted == address:
                            behind[place] = len(addresses)
                            break
                addresses.append(address)
            if row["branch"] in ("direct", "indirect"):
                outcomes[len(addresses) - 1] = "taken" if row["atom"] == "E" else "not taken"
                if row["link"] == "1" and row["atom"] == "E":
                    waiting.append((addresses[-1] + 4, len(addresses) - 1))
        elif row["element"] in ("exception", "trace_on", "no_sync"):
            events.append(len(addresses))
    return {"addresses": [hex(a) for a in addresses], "outcomes": outcomes, "events": sorted(set(events)), "behind": behind,
            "starts": starts, "blocks": blocks}


def covered(intervals, begin, end):
    """The part of a range that the intervals cover together."""
    total, after = 0, begin
    for first, last in sorted(intervals):
        first, last = max(first, after), min(last, end)
        if last > first:
            total += last - first
            after = last
    return total


def parts(report):
    """The parts of a page that Waymark writes, by name."""
    found = re.findall(r'id="waymark-(\w+)">([^<]*)<', report.read_text())
    return {name: json.loads(zlib.decompress(base64.b64decode(packed), -15)) for name, packed in found}


def check_points(waymark, work, program):
    """On an axis of time, the page has the times of both ends of the steps: calls may begin later and end earlier."""
    capture, report = work / "timed", work / "timed.html"
    run(waymark, "record", "--timestamps", "--start-at", "main", "--limit", "9000", "-o", capture, "--", program, "fibonacci", "9")
    run(waymark, "report", capture, "--symbols", program, "--no-sources", "-o", report)
    page = parts(report)
    axis, (stream,) = page["timeline"]["axis"], page["steps"]["streams"]
    assert axis["unit"] != "instructions", axis
    at, time = (list(itertools.accumulate(stream["frames"][what])) for what in ("at", "time"))
    assert (at[0], time[0]) == (0, 0), (at[:3], time[:3])
    assert (at[-1], time[-1]) == (stream["instructions"], axis["length"]), (at[-3:], time[-3:], stream["instructions"], axis)
    assert at == sorted(at) and time == sorted(time), "places and times go on"


def check_windows(waymark, work, program, capture, chance):
    """The page of a window contains the same calls and steps in the window as the page of the whole run."""
    names = ["--symbols", program, "--no-sources"]
    run(waymark, "report", capture, *names, "-o", work / "all.html")
    every = parts(work / "all.html")
    functions = lambda page: page["head"]["functions"]["name"]
    steps = stepped(waymark, capture)["addresses"]

    def calls(page, begin, end, zero):
        slices = page["timeline"]["slices"]
        of = list(zip(itertools.accumulate(slices["begin"]), slices["length"], slices["depth"], slices["function"], slices["merged"]))
        assert all(merged == 1 for *_, merged in of)
        cut = [(max(b + zero, begin), min(b + zero + l, end), d, functions(page)[f]) for b, l, d, f, _ in of]
        return sorted(c for c in cut if c[0] < c[1])

    for _ in range(4):
        begin = chance.randrange(1, len(steps) - 100)
        end = chance.randrange(begin + 50, len(steps))
        report = work / "window.html"
        run(waymark, "report", capture, *names, "--window", f"{begin}..{end}", "-o", report)
        page = parts(report)
        axis, (stream,) = page["timeline"]["axis"], page["steps"]["streams"]
        assert (int(axis["begin"]), axis["length"], page["timeline"]["window"]) == (begin, end - begin, True), axis
        assert calls(page, begin, end, begin) == calls(every, begin, end, 0), (begin, end)
        order, edges = stream["order"], stream["edges"]
        address = list(itertools.accumulate(edges["address"]))
        walked = [hex(address[e] + 4 * i) for e in order for i in range(edges["instructions"][e])]
        first = stream["first"]
        assert first + stream["lead"] == begin and first <= begin < first + edges["instructions"][order[0]], (first, begin)
        assert walked == steps[first:first + len(walked)] and first + len(walked) >= end, (begin, end)
        assert stream["instructions"] == len(walked), (stream["instructions"], len(walked))
        # Calls in progress at the beginning of the window are on the stack there.
        under_way = [c[3] for c in sorted(calls(every, begin, begin + 1, 0), key=lambda c: c[2])]
        at = list(itertools.accumulate(stream["frames"]["at"]))
        entered = [functions(page)[f] for a, what, f in zip(at, stream["frames"]["what"], stream["frames"]["function"]) if a == 0 and what == 0]
        assert entered == under_way, (entered, under_way)
    for wrong in ("5", "..", "7..7", "9..3", "a..b", "-1..5", f"{len(steps) + 5}.."):
        done = subprocess.run([waymark, "report", capture, *names, "--window", wrong, "-o", work / "none.html"], capture_output=True, text=True, timeout=HANGS)
        assert done.returncode in (1, 2) and "--window" in done.stderr and not (work / "none.html").exists(), (wrong, done)
    return begin, end


def main():
    waymark, source, web = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
    node = shutil.which("node") or shutil.which("nodejs")
    chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    for what, is_there in (("node", node), ("Chromium", chromium), ("aarch64-linux-gnu-gcc", shutil.which("aarch64-linux-gnu-gcc")),
                           ("aarch64-linux-gnu-g++", shutil.which("aarch64-linux-gnu-g++")),
                           ("qemu-aarch64", shutil.which("qemu-aarch64"))):
        if not is_there:
            skip(f"{what} is missing")
    if not (web / "node_modules/playwright-core").is_dir():
        skip(f"the page's tests are not installed in {web}: was the page built with WAYMARK_TESTS=ON?")
    seed = int(os.environ.get("WM_SEED", 1))
    print(f"seed {seed}", flush=True)
    in_full = "--long" in sys.argv
    chance = random.Random(seed)
    with Folder() as temporary:
        work = pathlib.Path(temporary)
        keep = os.environ.get("WM_KEEP_REPORTS")
        folder = pathlib.Path(keep) if keep else work
        folder.mkdir(parents=True, exist_ok=True)
        program, capture, report = work / "program", work / "capture", folder / "closer.html"
        run("aarch64-linux-gnu-gcc", "-O1", "-g", "-static", "-I", source / "guest", "-o", program,
            source / "examples/interpreter/interpreter.c", "-lpthread")
        run(waymark, "record", "--start-at", "main", "-o", capture, "--", program, "fibonacci", "9")
        names = ["--symbols", program]
        run(waymark, "report", capture, *names, "--source-root", source, "-o", report)
        check_points(waymark, work, program)
        window = check_windows(waymark, folder, program, capture, chance)
        bytes_of_it = report.stat().st_size
        assert bytes_of_it < 300_000, f"the report of the quickstart's program takes {bytes_of_it} bytes"

        # The same program after a change: compiled differently, with more work, and run differently.
        other, capture_after = work / "other", work / "after"
        run("aarch64-linux-gnu-gcc", "-O2", "-g", "-static", "-I", source / "guest", "-o", other,
            source / "examples/interpreter/interpreter.c", "-lpthread")
        run(waymark, "record", "--start-at", "main", "-o", capture_after, "--", other, "fibonacci", "10", "labels")
        # A limit that is exceeded: the page says so, and so does the status.
        against = ["report", capture, "--against", capture_after, "--no-sources", "-o", folder / "against.html"]
        run(waymark, *against, "--threshold", "1000000")
        gate = subprocess.run([str(a) for a in [waymark, *against, "--threshold", "1"]], capture_output=True, text=True,
                              timeout=HANGS)
        assert gate.returncode == 1 and "grew by more than 1%" in gate.stderr, (gate.returncode, gate.stderr)
        difference = rows(waymark, "diff", capture, capture_after)
        for side, other_side in (("before", "after"), ("after", "before")):
            assert any(r[side] == "0" and r[other_side] != "0" for r in difference), f"every function ran {side}"

        # Code of a library's headers that is compiled into the program's own function.
        headers = work / "headers"
        (work / "headers.cc").write_text("#include <vector>\nint main(int count, char**) {\n    std::vector<int> all;\n"
                                         "    for (int i = 0; i < 9 * count; ++i) all.push_back(i);\n    return all[3] - 3;\n}\n")
        run("aarch64-linux-gnu-g++", "-O2", "-g", "-static", "-o", headers, work / "headers.cc")
        run(waymark, "record", "-o", work / "of-headers", "--", headers)
        run(waymark, "report", work / "of-headers", "-o", folder / "headers.html")

        threads = work / "threads"
        (work / "threads.c").write_text(THREADS)
        run("aarch64-linux-gnu-gcc", "-O1", "-g", "-static", "-o", threads, work / "threads.c", "-lpthread")
        run(waymark, "record", "-o", work / "of-threads", "--", threads)
        run(waymark, "report", work / "of-threads", "--no-sources", "-o", folder / "threads.html")

        run(waymark, "record", "--timestamps", "-o", work / "of-threads-timed", "--", threads)
        run(waymark, "report", work / "of-threads-timed", "--no-sources", "-o", folder / "threads-timed.html")

        ran, exceptions = executed(waymark, capture, program)
        doubled = {name for name, times in collections.Counter(n for _, _, n in functions_of(program)).items() if times > 1}
        those = {row["function"] for row in rows(waymark, "profile", capture, *names)}
        calls = []
        for function in FUNCTIONS if in_full else FUNCTIONS[:3]:
            if function not in those or function in doubled:
                continue
            for options in ([], ["--without-callees"], ["--without-interrupts"]):
                command = [waymark, "calls", capture, *names, "--function", function, *options]
                one = json.loads(run(*command, "--format", "json").stdout)
                calls.append({"function": function, "callees": "--without-callees" not in options,
                              "interrupts": "--without-interrupts" not in options, "said": one,
                              "rows": rows(*command)})
        assert any(row["longer_in"] for one in calls for row in one["rows"]), "no call took longer in one of its parts"
        steps = stepped(waymark, capture)
        assert len(steps["behind"]) > 100, "the program calls functions that return"
        heads = [hex(int(row["head"], 16)) for row in rows(waymark, "loops", capture, *names)]
        ranges = []
        for _ in range(1000 if in_full else 12):
            begin = chance.randrange(len(ran))
            end = min(len(ran), begin + 1 + int(len(ran) ** chance.random()))
            in_order = collections.Counter(steps["addresses"][begin:end])
            whole = [block for place, block in zip(steps["starts"], steps["blocks"]) if begin <= place < end]
            executed_there = {address: place for address, (place, _) in zip(steps["addresses"][begin:end], ran[begin:end])}
            of = {"from": begin, "to": end, "covered": collections.Counter(executed_there.values()),
                  "blocks": sorted(f"{block} {times}" for block, times in collections.Counter(whole).items()), "branches": sum(begin <= place < end for place in steps["outcomes"]),
                  "iterations": sum(in_order[head] for head in heads), "self": collections.Counter(place for place, _ in ran[begin:end]), "total": {}, "calls": {},
                  "exceptions": sum(begin <= at < end for at in exceptions)}
            for one in calls:
                if one["callees"] and one["interrupts"]:
                    lasted = [(int(r["begin"]), int(r["end"])) for r in one["rows"]]
                    of["total"][one["function"]] = covered(lasted, begin, end)
                    of["calls"][one["function"]] = sum(begin <= first < end for first, _ in lasted)
            ranges.append(of)
        coverage = {by: rows(waymark, "coverage", capture, *names, "--by", by) for by in ("file", "function")}
        coverage["uncovered"] = rows(waymark, "coverage", capture, *names, "--uncovered")
        wanted = {"seed": seed, "doubled": sorted(doubled), "window": [*window, collections.Counter(place for place, _ in ran[window[0]:window[1]])], "long": in_full, "steps": steps, "instructions": len(ran), "places": {name: hex(begin) for begin, _, name in functions_of(program)}, "ranges": ranges, "calls": calls, "coverage": coverage,
                  "difference": difference, "branches": rows(waymark, "branches", capture, *names)}
        (folder / "wanted.json").write_text(json.dumps(wanted))
        done = subprocess.run([node, source / "tests/report/closer.mjs", web, folder, chromium, folder / "wanted.json"], timeout=HANGS,
                              stdout=subprocess.PIPE, text=True)
        print(done.stdout, end="", flush=True)
        if done.returncode != 0:
            sys.exit(done.returncode)
        # The program's own functions, by name, sum up to the page's figure.
        own = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
        only = [word for name in own["names"] for word in ("--only", name)]
        for of, name in (("instructions", "instructions"), ("lines", "lines"), ("branches", "directions of branches")):
            said = json.loads(run(waymark, "coverage", capture, *names, "--of", of, *only, "--format", "json").stdout)[of]
            if own["sums"][name] != [said["executed"], said["all"]]:
                sys.exit(f"{name} of own code: {own['sums'][name]} on the page, {said} by waymark coverage")


if __name__ == "__main__":
    main()
