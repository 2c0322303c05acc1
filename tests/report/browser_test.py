#!/usr/bin/env python3
"""Shows reports in a browser: of recordings of each unit, of real captures, generated, large and hostile ones (browser.mjs).

    browser_test.py WAYMARK MADE_REPORT SOURCE_DIR WEB

WEB is the folder in which the page was built, with the packages of its tests. WM_KEEP_REPORTS=DIR keeps
the reports there, with pictures.
"""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import CHROMIUM, Folder, HANGS  # noqa: E402

SKIPPED = 77
# The browser without windows takes little more than half the processor time of a complete one.


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(SKIPPED)


def run(*arguments, env=None):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=HANGS, env=env)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))} failed with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


def captures(waymark, source, work):
    """(name, capture, options) of the available captures; prints which are unavailable."""
    corpus = pathlib.Path(os.environ.get("WAYMARK_CORPUS") or source / ".." / "shared" / "corpus")
    if (corpus / "ptm/tc2").is_dir():
        yield "corpus", corpus / "ptm/tc2", []
    else:
        print(f"SKIPPED: no report of a real capture: there is none in {corpus}; set WAYMARK_CORPUS", flush=True)
        yield "sort", source / "examples/sort/capture", ["--image", source / "examples/sort/sort.elf"]
    ways = (
        ("ptm", "arm-linux-gnueabihf-gcc", "qemu-arm", "examples/interpreter/interpreter.c",
         ["--cycle-accurate", "--start-at", "main"], ["fibonacci", "12"]),
        ("dpu", "arm-linux-gnueabihf-gcc", "qemu-arm", "examples/tasks/tasks.c", ["--unit", "dpu"], []),
        ("spe", "aarch64-linux-gnu-gcc", "qemu-aarch64", "examples/interpreter/interpreter.c",
         ["--unit", "spe", "-c", "256"], ["fibonacci", "12"]),
    )
    for name, compiler, qemu, code, options, arguments in ways:
        missing = [tool for tool in (compiler, qemu) if shutil.which(tool) is None]
        if missing:
            print(f"SKIPPED: no report of a recording of {name}: {' and '.join(missing)} is missing", flush=True)
            continue
        program, capture = work / f"{name}-program", work / f"{name}-capture"
        run(compiler, "-O1", "-g", "-static", "-I", source / "guest", "-o", program, source / code, "-lpthread")
        run(waymark, "record", *options, "-o", capture, "--", program, *arguments)
        yield name, capture, ["--symbols", program] if name == "ptm" else []


def main():
    waymark, made, source, web = (pathlib.Path(a).resolve() for a in sys.argv[1:5])
    node = shutil.which("node") or shutil.which("nodejs")
    chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if node is None:
        skip("node is missing (Debian package nodejs)")
    if chromium is None:
        skip("no Chromium (Debian package chromium-headless-shell, or chromium)")
    if not (web / "node_modules/playwright-core").is_dir():
        skip(f"the page's tests are not installed in {web}: was the page built with WAYMARK_TESTS=ON?")
    with Folder() as temporary:
        work = pathlib.Path(temporary)
        reports = pathlib.Path(os.environ.get("WM_KEEP_REPORTS") or web.parent / "reports")
        reports.mkdir(parents=True, exist_ok=True)
        # Reports of an earlier run would be tested too.
        for old in [*reports.glob("*.htm*"), *reports.glob("pictures/*.png")]:
            old.unlink()
        probe = subprocess.run([made, "flow", work / "probe.html"], capture_output=True, text=True, timeout=HANGS)
        if probe.returncode == SKIPPED:
            skip(probe.stderr.strip())
        for kind in ("flow", "samples", "hostile", "large"):
            run(made, kind, reports / f"{kind}.html")
        whole = (reports / "flow.html").read_bytes()
        at = whole.index(b'id="waymark-head">')
        (reports / "cut.htm").write_bytes(whole[:at + 300] + whole[whole.index(b"</script>", at):])
        for name, capture, options in captures(waymark, source, work):
            run(waymark, "report", capture, *options, "-o", reports / f"{name}.html")
        done = subprocess.run([node, source / "tests/report/browser.mjs", web, reports, chromium], timeout=HANGS)
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
