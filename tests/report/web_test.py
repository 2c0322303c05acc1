#!/usr/bin/env python3
"""The page's own tests: its types (tsc), and its data, levels of detail and search (vitest).

    web_test.py WEB

WEB is the folder in which the page was built.
"""
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import HANGS  # noqa: E402

web = pathlib.Path(sys.argv[1])
node = shutil.which("node") or shutil.which("nodejs")
if node is None:
    print("SKIPPED: node is missing (Debian package nodejs)")
    sys.exit(77)
if not (web / "node_modules/vitest").is_dir():
    print(f"SKIPPED: the page's tests are not installed in {web}: was the page built with WAYMARK_TESTS=ON?")
    sys.exit(77)
# Vitest's own limits are 5 and 10 seconds.
LIMITS = [f"--{limit}={HANGS * 1000}" for limit in ("testTimeout", "hookTimeout", "teardownTimeout")]
for tool in (["typescript/bin/tsc", "--noEmit"], ["vitest/vitest.mjs", "run", "--no-color", *LIMITS]):
    done = subprocess.run([node, f"node_modules/{tool[0]}", *tool[1:]], cwd=web, timeout=HANGS)
    if done.returncode != 0:
        sys.exit(1)
