#!/usr/bin/env python3
"""Mozilla's own code of the Firefox Profiler (the npm package @firefox-devtools/profiler-cli) reads recordings: its
output must agree with the recording.

    firefox_test.py WAYMARK SOURCE_DIR WEB
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

import recorded

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import HANGS, Folder  # noqa: E402

WAYMARK, SOURCE, WEB = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
PACKAGE = WEB / "node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js"


class Reader:
    """A session of the reader, which runs beside this program until it is stopped."""

    def __init__(self, file, home):
        self.environment = {**os.environ, "HOME": str(home)}
        loaded = self.run("load", file)
        # The tool gives its own helper half a second to start; on a busy machine that may be too short.
        deadline = time.monotonic() + HANGS
        while loaded.returncode != 0 and time.monotonic() < deadline:
            if "retrying often works" not in loaded.stderr and not loaded.args[2:3] == ["status"]:
                break
            loaded = self.run("status")
        if loaded.returncode != 0:
            sys.exit(f"profiler-cli does not load {file}:\n{loaded.stdout}{loaded.stderr}")

    def run(self, *arguments):
        return subprocess.run([NODE, CLI, *map(str, arguments), "--session", "test"], capture_output=True, text=True, env=self.environment,
                              timeout=HANGS)

    def says(self, *arguments):
        said = self.run(*arguments, "--json")
        if said.returncode != 0:
            sys.exit(f"profiler-cli {' '.join(arguments)}:\n{said.stdout}{said.stderr}")
        return json.loads(said.stdout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run("stop")


class Firefox(unittest.TestCase):
    def test_a_recording_of_threads(self):
        recorded.need("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")
        recorded.need("qemu-aarch64", "qemu-user")
        with Folder() as temporary:
            folder = pathlib.Path(temporary)
            source, program, data = folder / "threads.c", folder / "threads", folder / "threads.data"
            source.write_text("#include <pthread.h>\n#include <stdio.h>\nvolatile long sink;\n"
                              "__attribute__((noinline)) long busy(long n) { for (long i = 0; i < n; i++) sink += i; return sink; }\n"
                              "void *run(void *n) { busy((long)n); return 0; }\n"
                              "int main(void) { pthread_t t; pthread_create(&t, 0, run, (void *)5000L); pthread_join(t, 0);\n"
                              "  printf(\"%ld\\n\", busy(3000)); return 0; }\n")
            recorded.run("aarch64-linux-gnu-gcc", "-O1", "-g", "-pthread", "-o", program, source)
            recorded.run(WAYMARK, "record", "-q", "--as", "perf", "-o", data, "--", program)
            capture = recorded.Capture(WAYMARK, data, folder / "out")
            profile = capture.export("firefox", "profile.json")
            recorded.run(sys.executable, SOURCE / "tests/exports/firefox_check.py", profile)
            own, total, _ = capture.costs()
            instructions = sum(own.values())
            with Reader(profile, folder) as reader:
                info = reader.says("profile", "info", "--all")
                threads = {t["name"]: t for process in info["processes"] for t in process["threads"]}
                costs = next(t["threadHandle"] for name, t in threads.items() if name.startswith("instructions by"))
                functions = reader.says("thread", "functions", "--thread", costs, "--limit", "0")
            # Threads have the numbers that the recording has, 1 ns is 1 instruction, and costs take no time of their own.
            recorded_tids = {int(name.split("[")[1].split("]")[0]) for name in threads if "[" in name}
            self.assertEqual(len(recorded_tids), 2)
            self.assertEqual({t["tid"] for name, t in threads.items() if "[" in name}, recorded_tids)
            self.assertEqual(round(sum(t["cpuMs"] for t in threads.values()) * 1e6), instructions)
            length = functions["context"]["rootRange"]["end"] - functions["context"]["rootRange"]["start"]
            self.assertLessEqual(length * 1e6, instructions * 1.01)
            self.assertEqual(info["platform"], "Linux aarch64")
            seen = {f["name"]: (f["selfSamples"], f["totalSamples"]) for f in functions["functions"]}
            self.assertEqual(seen["busy"], (own["busy"], total["busy"]))
            by_name = collections.Counter()  # functions of several files may share a name
            for function in functions["functions"]:
                by_name[function["name"]] += function["selfSamples"]
            self.assertEqual(+by_name, +own)


if __name__ == "__main__":
    NODE = recorded.need(("node", "nodejs"), "nodejs")
    version = recorded.run(NODE, "--version").stdout.strip().lstrip("v")
    if int(version.partition(".")[0]) < 20:
        recorded.skip(f"profiler-cli needs Node.js 20 or later, and {NODE} is {version}")
    CLI = os.environ.get("WAYMARK_PROFILER_CLI") or PACKAGE
    if not pathlib.Path(CLI).is_file():
        recorded.skip(f"@firefox-devtools/profiler-cli is not installed in {WEB}: was the page built with WAYMARK_TESTS=ON?")
    unittest.main(argv=sys.argv[:1], verbosity=2)
