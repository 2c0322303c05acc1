#!/usr/bin/env python3
"""The Debian packages for arm64: cross-built in a new Debian 12, and the program's tests under qemu-aarch64.

usage: arm64_test.py SOURCE_FOLDER WORK_FOLDER

Needs root, debootstrap, qemu-aarch64 and a Debian mirror; is skipped without them. WM_KEEP_ROOT=1 keeps the system that
was made; if it is there already, nothing is built again.
"""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from installed_test import call, mirror, skip



def machines(root, package):
    """The processors for which the ELF files of a package are built."""
    out = set()
    for name in call("chroot", root, "dpkg", "-L", package).splitlines():
        path = root / name.lstrip("/")
        if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
            header = call("readelf", "-h", path)
            out.add(next(line.split(":")[1].strip() for line in header.splitlines() if "Machine:" in line))
    return out


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, work = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    root = work / "root"
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        skip("needs root and the Debian package debootstrap")
    if shutil.which("qemu-aarch64") is None:
        skip("no qemu-aarch64: install qemu-user")
    if mirror() is None:
        skip("apt has no mirror of Debian 12 (bookworm)")
    try:
        if not root.exists():
            work.mkdir(parents=True, exist_ok=True)
            print(call(source / "scripts" / "package", "--arch", "arm64", "--root", root, cwd=source), flush=True)
        return check(source, work, root)
    finally:
        if not os.environ.get("WM_KEEP_ROOT"):
            shutil.rmtree(work, ignore_errors=True)


def check(source, work, root):
    packages = sorted((source / "build" / "packages").glob("*_arm64.deb"))
    names = {package.name.split("_")[0] for package in packages if "-dbgsym_" not in package.name}
    expected = {"waymark", "libwaymark1", "libwaymark-dev", "python3-waymark"}
    if names != expected:
        sys.exit(f"built are {sorted(names)}; expected {sorted(expected)}")
    # python3:arm64 cannot be installed beside the Python that runs here: packages that need it are unpacked.
    for package in packages:
        shutil.copy(package, root / "build")
    print(call("chroot", root, "sh", "-c", "apt-get install -y --no-install-recommends --allow-downgrades --reinstall "
               "/build/waymark_*_arm64.deb /build/libwaymark1_*_arm64.deb /build/libwaymark-dev_*_arm64.deb && "
               "dpkg --unpack --force-depends /build/python3-waymark_*_arm64.deb",
               env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"})[-300:])
    for name in sorted(expected - {"libwaymark-dev"}):
        found = machines(root, f"{name}:arm64")
        if found != {"AArch64"}:
            sys.exit(f"{name} contains files for {found}")
    program = work / "bin" / "waymark"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec qemu-aarch64 -L {root} {root}/usr/bin/waymark "$@"\n')
    program.chmod(0o755)
    print(call(program, "--version"), flush=True)
    done = subprocess.run([sys.executable, source / "tests" / "cli" / "cli_test.py", program, source])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
