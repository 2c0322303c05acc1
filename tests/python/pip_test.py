#!/usr/bin/env python3
"""`pip install .` in a copy of the sources, in a new virtual environment and without a network, on the library of the build.

    pip_test.py SOURCE_DIR LIBRARY VERSION
"""
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import HANGS, Folder  # noqa: E402

SKIPPED = 77
PYTHON = "/usr/bin/python3"


def run(*arguments, **more):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=HANGS, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    source, library, version = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
    for module, package in (("venv", "python3-venv"), ("ensurepip", "python3-venv"), ("setuptools", "python3-setuptools"),
                            ("numpy", "python3-numpy")):
        if subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False).returncode != 0:
            print(f"SKIPPED: {PYTHON} has no {module} (Debian package {package})")
            sys.exit(SKIPPED)
    if not pathlib.Path("/usr/include/pybind11/pybind11.h").is_file() or not shutil.which("pkg-config"):
        print("SKIPPED: pybind11's headers or pkg-config are missing (Debian packages pybind11-dev, pkg-config)")
        sys.exit(SKIPPED)
    wheel = max(pathlib.Path("/usr/share/python-wheels").glob("pip-*.whl"), default=None)
    if wheel is None:
        print("SKIPPED: there is no pip in /usr/share/python-wheels (Debian package python3-pip-whl)")
        sys.exit(SKIPPED)
    with Folder() as temporary:
        folder = pathlib.Path(temporary)
        clone, prefix = folder / "clone", folder / "prefix"
        (prefix / "lib").mkdir(parents=True)
        for name in ("libwaymark.so", "libwaymark.so.1"):
            (prefix / "lib" / name).symlink_to(library)
        (prefix / "waymark.pc").write_text(
            f"Name: waymark\nDescription: of this build\nVersion: {version}\n"
            f"Libs: -L{prefix}/lib -lwaymark\nCflags: -I{source}/include\n")
        clone.mkdir()
        for name in ("pyproject.toml", "setup.py", "CMakeLists.txt", "README.md", "LICENSE"):
            shutil.copy(source / name, clone)
        shutil.copytree(source / "src/python", clone / "src/python", ignore=shutil.ignore_patterns("__pycache__"))
        # The pip that venv would install, already compiled; compiling it would take five seconds.
        run(PYTHON, "-m", "venv", "--without-pip", "--system-site-packages", folder / "venv")
        python = folder / "venv/bin/python"
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder / "pip")
        install = [python, folder / "pip/pip", "install", "--no-index", "--no-build-isolation", "--no-cache-dir", clone]
        # Optimisation would take a third of the time; the test of the package (python.package) tests the optimised
        # module.
        environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix), "CFLAGS": "-O0"}
        environment.pop("PYTHONPATH", None)

        # Without the library, the message says what to do.
        lacking = subprocess.run([str(a) for a in install], capture_output=True, text=True, timeout=HANGS,
                                 env={**environment, "PKG_CONFIG_LIBDIR": str(folder), "PKG_CONFIG_PATH": ""}, check=False)
        assert lacking.returncode != 0 and "PKG_CONFIG_PATH" in lacking.stdout + lacking.stderr, lacking.stdout + lacking.stderr

        run(*install, env=environment)
        said = run(python, "-c", "import waymark; print(waymark.__version__, waymark.__file__)", cwd=folder, env=environment)
        assert said.split()[0] == version and said.split()[1].startswith(str(folder / "venv")), said
        print(f"import waymark gives version {version}")


if __name__ == "__main__":
    main()
