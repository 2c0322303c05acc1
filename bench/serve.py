#!/usr/bin/env python3
"""Measures `waymark serve` on a trace of a gigabyte: the index, the first page, and windows anywhere in the run.

    bench/serve.py [BUILD] [--instructions N] [--windows N]

Records a bytecode interpreter of AArch64 as an ETE: 3.7 thousand million instructions give a gigabyte of trace. Then it
prints

  - the index: its size beside the trace, and the time to make it beside `waymark flow --format summary` of the same run;
  - the first page, after a start without an index: the time until it is there;
  - windows of 10,000 instructions at random places, after a start with the index: the time of each until its page is
    there, the median and the longest.

Each command may use all cores. BUILD has bin/waymark (build). Needs qemu-user and the cross compiler for AArch64. One
run on a quiet machine takes two minutes, and two gigabytes in the folder for temporary files (TMPDIR).
"""
import argparse
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
SEED = 20


class Server:
    """`waymark serve` with this index; `url` is of the page of the run."""

    def __init__(self, waymark, capture, index):
        self.began = time.monotonic()
        self.process = subprocess.Popen([waymark, "serve", capture, "--index", index], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            if found := re.search(r"http://\S+", line):
                self.url = found[0].rstrip("/") + "/"
                return
        sys.exit("serve.py: waymark serve ended without a URL")

    def get(self, path=""):
        """The seconds until a page is there, and the page."""
        began = time.monotonic()
        with urllib.request.urlopen(self.url + path, timeout=600) as answer:
            page = answer.read()
        return time.monotonic() - began, page

    def stop(self):
        self.process.terminate()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=ROOT / "build", type=pathlib.Path, metavar="BUILD")
    parser.add_argument("--instructions", type=int, default=3_700_000_000, metavar="N")
    parser.add_argument("--windows", type=int, default=40, metavar="N")
    options = parser.parse_args()
    waymark = options.build.resolve() / "bin/waymark"
    if not waymark.exists():
        parser.error(f"there is no {waymark}: build it, or name the folder of another build")

    def row(what, value, note=""):
        print(f"{what:<34}{value:>14}  {note}".rstrip(), flush=True)

    with tempfile.TemporaryDirectory(prefix="waymark-bench-") as folder:
        folder = pathlib.Path(folder)
        program, capture, index = folder / "interpreter", folder / "out", folder / "index"
        subprocess.run(["aarch64-linux-gnu-gcc", "-O1", "-g", "-static", "-I", ROOT / "guest", "-o", program,
                        ROOT / "examples/interpreter/interpreter.c"], check=True)
        began = time.monotonic()
        subprocess.run([waymark, "record", "--limit", str(options.instructions), "-o", capture, "--", program,
                        "fibonacci", "40"], check=True, capture_output=True)
        trace = max(file.stat().st_size for file in capture.iterdir())
        row("recorded in", f"{time.monotonic() - began:.1f} s")
        row("trace", f"{trace / 1e6:.0f} MB", f"{options.instructions:,} instructions")

        began = time.monotonic()
        subprocess.run([waymark, "flow", capture, "--format", "summary"], check=True, capture_output=True)
        flow = time.monotonic() - began
        row("flow --format summary", f"{flow:.2f} s")

        server = Server(waymark, capture, index)
        server.get()
        row("first page", f"{time.monotonic() - server.began:.2f} s", "from the start of the program, without an index")
        while not index.exists():
            time.sleep(0.02)
        made = time.monotonic() - server.began
        row("index made in", f"{made:.2f} s", f"{flow / made:.2f} times the speed of flow")
        row("index", f"{index.stat().st_size / 1e6:.2f} MB", f"{100 * index.stat().st_size / trace:.2f} % of the trace")
        server.stop()

        server = Server(waymark, capture, index)
        server.get()
        row("first page with the index", f"{time.monotonic() - server.began:.2f} s", "from the start of the program")
        chance = random.Random(SEED)
        times = []
        for _ in range(options.windows):
            begin = chance.randrange(options.instructions - 20_000)
            times.append(server.get(f"window?from={begin}&to={begin + 10_000}")[0] * 1000)
        server.stop()
        row("a window of 10,000 instructions", f"{statistics.median(times):.0f} ms", f"longest of {len(times)}: {max(times):.0f} ms")


if __name__ == "__main__":
    main()
