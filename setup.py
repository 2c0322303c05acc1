"""Builds the extension waymark._waymark on an installed libwaymark, which pkg-config finds, with pybind11's headers."""
import os
import pathlib
import re
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = pathlib.Path(__file__).resolve().parent
VERSION = re.search(r"project\(waymark VERSION ([0-9.]+)", (HERE / "CMakeLists.txt").read_text(encoding="utf-8"))[1]


def pkg_config(*what):
    """What pkg-config says of libwaymark; None: it knows of none."""
    try:
        said = subprocess.run(["pkg-config", *what, "waymark"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        sys.exit("pkg-config is missing: install the Debian package pkg-config")
    return said.stdout.split() if said.returncode == 0 else None


def pybind11_headers():
    """Where pybind11's headers are; empty: where the compiler looks anyway."""
    try:
        import pybind11
        return [pybind11.get_include()]
    except ImportError:
        if not any(pathlib.Path(folder, "pybind11/pybind11.h").is_file() for folder in ("/usr/include", "/usr/local/include")):
            sys.exit("pybind11 is missing: install the Debian package pybind11-dev, or pybind11 with pip")
        return []


class Build(build_ext):
    def build_extensions(self):
        version = pkg_config("--modversion")
        if version is None:
            sys.exit("libwaymark is not installed, or pkg-config does not find it. Build and install it (cmake --install), "
                     "and name its folder: PKG_CONFIG_PATH=PREFIX/lib/pkgconfig. scripts/build --python builds all in a clone.")
        if version[0].split(".")[:2] != VERSION.split(".")[:2]:
            sys.exit(f"the installed libwaymark is of version {version[0]}, and this module of {VERSION}: install libwaymark "
                     f"{VERSION}, or take the sources of {version[0]}")
        libraries = [flag[2:] for flag in pkg_config("--libs-only-L")]
        for extension in self.extensions:
            extension.include_dirs += pybind11_headers()
            extension.include_dirs += [flag[2:] for flag in pkg_config("--cflags-only-I")]
            extension.library_dirs += libraries
            # Where the library is found without a path, the module needs none.
            extension.runtime_library_dirs += [str(pathlib.Path(folder).resolve()) for folder in libraries
                                               if not str(pathlib.Path(folder).resolve()).startswith("/usr/lib")]
        for extension in self.extensions:
            extension.sources = [self.unit(extension)]
        super().build_extensions()

    def unit(self, extension):
        """One source that includes all others: to compile each alone takes more than twice the processor time, most of it to
        read pybind11's headers again."""
        unit = pathlib.Path(self.build_temp, "waymark_python.cc")
        unit.parent.mkdir(parents=True, exist_ok=True)
        unit.write_text("".join(f'#include "{HERE / source}"\n' for source in extension.sources), encoding="utf-8")
        return str(unit)


# A level in CFLAGS is the user's wish.
LEVEL = [] if "-O" in os.environ.get("CFLAGS", "") else ["-O1"]

setup(
    version=VERSION,
    ext_modules=[Extension(
        "waymark._waymark",
        sources=sorted(str(source.relative_to(HERE)) for source in (HERE / "src/python").glob("*.cc")),
        depends=["src/python/module.h"],
        libraries=["waymark"],
        language="c++",
        extra_compile_args=["-std=c++20", "-fvisibility=hidden", "-g0", *LEVEL])],
    cmdclass={"build_ext": Build})
