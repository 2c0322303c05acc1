"""Packages of Debian that a test downloads, with a separate apt and state: nothing in the system changes."""
import subprocess

from scratch import HANGS


class Missing(Exception):
    """The reason why the packages could not be downloaded."""


class Apt:
    """apt for an architecture. Its state is below `folder`; its sources are the system's, or `lines` in which MIRROR
    stands for where the system has Debian's packages from."""

    def __init__(self, folder, architecture, lines=None):
        self.cache = folder / "cache/archives"
        for part in ("lists/partial", "cache/archives/partial", "etc"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        options = {"APT::Architecture": architecture, "APT::Architectures": architecture, "APT::Install-Recommends": "false",
                   "Dir::State": folder, "Dir::State::lists": folder / "lists", "Dir::State::status": folder / "status",
                   "Dir::Cache": folder / "cache", "Dir::Etc::preferencesparts": "-", "Debug::NoLocking": "true",
                   "APT::Sandbox::User": "", "Acquire::Languages": "none", "Acquire::Retries": "3"}
        self.options = []
        if lines is not None:
            mirrors = self._run("indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian", "Label: Debian")
            if not mirrors.stdout.split():
                raise Missing("apt has no source of Debian; apt-get update may be due")
            (folder / "sources.list").write_text(lines.replace("MIRROR", mirrors.stdout.split()[0]))
            options |= {"Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "-"}
        self.options = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        self.do("update")

    def _run(self, *command, **more):
        return subprocess.run(["apt-get", *self.options, *map(str, command)], capture_output=True, text=True, timeout=HANGS, **more)

    def do(self, *command, into=None):
        """A command of apt-get, in the folder `into`."""
        try:
            done = self._run(*command, cwd=into)
        except FileNotFoundError:
            raise Missing("apt-get is not on PATH; it is in the Debian package apt") from None
        if done.returncode != 0 or "Failed to fetch" in done.stderr:
            raise Missing(f"apt-get {command[0]}: {done.stderr.strip()[-600:]}")


def unpack(packages, folder):
    for package in packages:
        done = subprocess.run(["dpkg-deb", "-x", package, folder], capture_output=True, text=True, timeout=HANGS)
        if done.returncode != 0:
            raise Missing(f"dpkg-deb -x {package.name}: {done.stderr.strip()}")
