#!/usr/bin/env python3
"""The Debian packages in a new Debian 12: install, use as README.md describes, remove, and look for what is left.

usage: installed_test.py SOURCE_FOLDER WORK_FOLDER [PACKAGES_FOLDER]

Builds the packages twice with scripts/package, which fails if their bytes differ or lintian finds something, unless a
folder of packages is given. Needs root, debootstrap and a Debian mirror; is skipped without them. WM_KEEP_ROOT=1 keeps
the system that was made.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "capi"))
import recipes

SKIPPED = 77

# Commands to run in the new system, each in the folder /root. The output must contain the text, and the status must be
# 0.
COMMANDS = [
    ("waymark --version", "waymark 0."),
    ("waymark --help", "Usage: waymark"),
    ("cp -r /usr/share/doc/waymark/examples .", ""),
    # README.md, "Try it", with the examples of the package.
    ("waymark info examples/sort/capture", "PTM"),
    ("waymark flow examples/sort/capture --image examples/sort/sort.elf --disassemble", "quicksort"),
    ("waymark packets examples/sort/capture", "I-SYNC"),
    ("waymark flow examples/sort/capture --symbols examples/sort/sort.elf --format calls", "quicksort"),
    ("waymark report examples/sort/capture --image examples/sort/sort.elf -o report.html", "report.html"),
    ("grep -c '</script>' report.html", ""),
    ("waymark export examples/sort/capture --to sqlite -o out.sqlite && waymark query out.sqlite", "functions"),
    # The plugin for QEMU is found.
    ("waymark record -o out -- examples/sort/sort.elf && waymark verify out", "equal"),
    ("waymark record -o out64 -- examples/sort/sort-aarch64.elf && waymark verify out64", "equal"),
    # Man pages and completion are at the places where man and bash look for them.
    ("man -w waymark waymark-flow waymark-spe-report", "/usr/share/man/man1/waymark-spe-report.1.gz"),
    ("MANPAGER=cat man waymark-flow", "--disassemble"),
    ("apropos -e waymark-flow", "The code that ran"),
    (r"""bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader waymark; complete -p waymark
        COMP_LINE="waymark fl" COMP_POINT=10 COMP_CWORD=1 COMP_WORDS=(waymark fl); _waymark; echo "${COMPREPLY[@]}"'""",
     "flow"),
    ("ls /usr/share/zsh/vendor-completions/_waymark /usr/share/fish/vendor_completions.d/waymark.fish", "_waymark"),
    # The library, with the installed package only.
    ("cmake -S examples/library -B build && cmake --build build && build/decode_capture examples/sort/capture",
     "instructions in"),
]
# The commands with which docs/library.md compiles its recipes.
RECIPES = {
    "c": ("recipe.c", "cc -std=c11 recipe.c -o recipe $(pkg-config --cflags --libs waymark) && ./recipe"),
    "cpp": ("recipe.cc", "c++ -std=c++20 recipe.cc -o recipe $(pkg-config --cflags --libs waymark-cpp) && ./recipe"),
    "python": ("recipe.py", "python3 recipe.py"),
}
TOOLS = ["less", "man-db", "bash-completion", "qemu-user", "g++", "cmake", "make"]


def call(*command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, errors="replace", **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(SKIPPED)


def mirror():
    """The mirror that this system's packages come from."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(CODENAME) $(SITE)", "Created-By: Packages"],
                            capture_output=True, text=True).stdout.split("\n")
    sites = [line.split(" ", 1)[1] for line in listed if line.startswith("bookworm ")]
    return sites[0] if sites else None


def new_system(root):
    site = mirror()
    if site is None:
        skip("apt has no mirror of Debian 12 (bookworm)")
    done = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", root, site], capture_output=True, text=True)
    if done.returncode != 0:
        skip(f"debootstrap cannot make a system from {site}: {done.stdout[-300:]}")
    for name in ("etc/resolv.conf", "etc/hosts"):
        shutil.copy(pathlib.Path("/") / name, root / name)
    # Settings with which this system reaches the mirror.
    for file in pathlib.Path("/etc/apt/apt.conf.d").glob("9*"):
        shutil.copy(file, root / "etc/apt/apt.conf.d")


def inside(root, command):
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "TERM": "dumb",
                   "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(["chroot", root, "sh", "-c", f"cd /root && {command}"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=environment, stdin=subprocess.DEVNULL,
                          errors="replace")


def files_named(root, part):
    """The caches of apt and man, which empty them themselves, do not count."""
    return sorted(str(path.relative_to(root)) for top in ("usr", "etc", "var", "opt")
                  for path in (root / top).rglob(f"*{part}*") if not str(path).startswith(str(root / "var/cache")))


def dead_links(folder):
    """Links in the documents of a folder to files that do not exist."""
    out = []
    for document in sorted(folder.rglob("*.md")):
        for line in document.read_text().splitlines():
            # Indented lines are code.
            for target in [] if line.startswith("    ") else re.findall(r"\]\(([^)#\s]+)[^)]*\)", line):
                if "://" not in target and not os.path.lexists(document.parent / target):
                    out.append(f"{document.relative_to(folder)}: {target}")
    return out


def try_packages(root, packages):
    """(number of checks, sentences on errors)"""
    wrong, count = [], 0

    def check(good, what, output):
        nonlocal count
        count += 1
        print(f"{'ok' if good else 'failed'}: {what}", flush=True)
        if not good:
            wrong.append(f"{what}\n{output[-3000:]}")

    folder = root / "packages"
    folder.mkdir()
    for package in packages:
        shutil.copy(package, folder)
    done = inside(root, "apt-get update && apt-get install -y --no-install-recommends " + " ".join(TOOLS))
    if done.returncode != 0:
        sys.exit(f"the tools of the test cannot be installed:\n{done.stdout[-3000:]}")
    before = set(files_named(root, "waymark"))
    done = inside(root, "apt-get install -y /packages/*.deb")
    check(done.returncode == 0, "apt-get install ./*.deb", done.stdout)
    for command, expected in COMMANDS:
        done = inside(root, command)
        check(done.returncode == 0 and expected in done.stdout, command.split("\n")[0], done.stdout)
    document = next((root / "usr/share/doc").rglob("library.md"), None)
    check(document is not None, "the recipes are installed", "")
    dead = dead_links(root / "usr/share/doc/waymark")
    check(not dead, "links of the documents lead to files", "\n".join(dead))
    for number, language, code, printed in recipes.recipes(document) if document else []:
        name, command = RECIPES[language]
        (root / "root" / name).write_text(code)
        done = inside(root, command)
        check(done.returncode == 0 and done.stdout == printed, f"recipe {number}: {command}", done.stdout)
    names = " ".join(package.name.split("_")[0] for package in packages)
    done = inside(root, f"apt-get purge -y {names}")
    check(done.returncode == 0, "apt-get purge", done.stdout)
    left = set(files_named(root, "waymark")) - before
    check(not left, "nothing is left", "\n".join(sorted(left)))
    check(inside(root, "dpkg --audit").stdout == "", "dpkg --audit", "")
    return count, wrong


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    source, work = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        skip("needs root and the Debian package debootstrap")
    if len(sys.argv) == 4:
        folder = pathlib.Path(sys.argv[3])
    else:
        print(call(source / "scripts" / "package", "--twice", cwd=source), flush=True)
        folder = source / "build" / "packages"
    architecture = call("dpkg", "--print-architecture").strip()
    packages = sorted(each for each in folder.glob("*.deb")
                      if each.stem.endswith((f"_{architecture}", "_all")) and "-dbgsym_" not in each.name)
    if not packages:
        sys.exit(f"{folder} contains no packages")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    root = work / "root"
    try:
        new_system(root)
        # QEMU and Waymark read about themselves there.
        call("mount", "-t", "proc", "proc", root / "proc")
        try:
            count, wrong = try_packages(root, packages)
        finally:
            call("umount", root / "proc")
    finally:
        if not os.environ.get("WM_KEEP_ROOT"):
            shutil.rmtree(work, ignore_errors=True)
    print(*wrong, sep="\n\n")
    print(f"{count} cases, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
