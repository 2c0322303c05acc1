#!/usr/bin/env python3
"""Libraries that run from where they lie in a package, as Android maps them: code and names come from the file in the
package, which is named as simpleperf names it (`base.apk!/lib/…`), or by the package alone, as perf does.

    perf_package_test.py WAYMARK SOURCE_DIR
"""
import json
import pathlib
import re
import shutil
import struct
import sys
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from perf_case import A64, WAYMARK, PerfCase, run  # noqa: E402
from perf_records import PerfRecords  # noqa: E402

PAGE, MMAP2 = 4096, 10
LIBRARY = "long {name}(long n) {{ long sum = 0; for (long i = 0; i < n; ++i) sum += i & 3 ? i : -i; return sum; }}\n"
# Maps each library from its offset in the package, and calls a function in it.
PROGRAM = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(int argc, char** argv) {
    int package = open(argv[1], O_RDONLY);
    long sum = 0;
    for (int i = 2; i + 3 < argc; i += 4) {
        char* at = mmap(0, atol(argv[i + 1]), PROT_READ | PROT_EXEC, MAP_PRIVATE, package, atol(argv[i]));
        if (at == MAP_FAILED) return 2;
        sum += ((long (*)(long))(at + atol(argv[i + 2])))(atol(argv[i + 3]));
    }
    return (int)(sum & 1);
}
"""


class Packages(PerfCase):
    @classmethod
    def make(cls):
        cls.program = cls.build("program", PROGRAM, "-static")
        cls.package = cls.folder / "base.apk"
        cls.libraries = {}
        for name in ("hot", "cold"):
            source = cls.folder / f"{name}.c"
            source.write_text(LIBRARY.format(name=f"{name}_in_package"))
            library = cls.folder / f"lib{name}.so"
            done = run(A64, "-O1", "-g", "-shared", "-nostdlib", "-fPIC", "-Wl,--build-id", "-o", library, source)
            assert done.returncode == 0, done.stderr
            cls.libraries[f"lib/arm64-v8a/{library.name}"] = library.read_bytes()
        cls.offsets = cls.packed(cls.package, zipfile.ZIP_STORED)
        arguments = [cls.package]
        for (name, contents), rounds in zip(cls.libraries.items(), (3000, 40)):
            symbols = run("aarch64-linux-gnu-nm", cls.folder / pathlib.Path(name).name).stdout
            address = int(re.search(r"^(\w+) T \w+_in_package$", symbols, re.M)[1], 16)
            arguments += [cls.offsets[name], len(contents), address, rounds]
        cls.data = cls.folder / "perf.data"
        done = run(WAYMARK, "record", "--as", "perf", "-o", cls.data, "--", cls.program, *arguments)
        assert done.returncode in (0, 1), done.stderr

    @classmethod
    def packed(cls, path, method):
        """Writes a package with the libraries at whole pages; returns the offset of each."""
        begins = {}
        with zipfile.ZipFile(path, "w") as package:
            package.writestr("classes.dex", b"dex\n" * 2000, zipfile.ZIP_DEFLATED)
            for name, contents in cls.libraries.items():
                entry = zipfile.ZipInfo(name)
                entry.compress_type = method
                before = package.fp.tell() + 30 + len(name)
                pad = -(before + 4) % PAGE
                entry.extra = struct.pack("<HH", 0xd935, pad) + bytes(pad)
                package.writestr(entry, contents)
                # A file between them, so that mappings of neighbours are not joined.
                package.writestr(f"assets/{len(begins)}", bytes(3 * PAGE), zipfile.ZIP_STORED)
                begins[name] = before + 4 + pad
        return begins

    def functions(self, data, *options, status=0):
        done = self.waymark("profile", data, *options, "--format", "json", status=status)
        return {row["function"]: row for row in json.loads(done.stdout)["rows"]}, done.stderr

    def renamed(self, change):
        """The file with other names and offsets of mappings: change(name, offset in the package) → both."""
        records = PerfRecords(self.data)
        for record in records.of(MMAP2):
            body = bytes(record.body)
            end = body.index(b"\0", 64)
            name, trailer = body[64:end].decode(), body[64 + (end - 64) // 8 * 8 + 8:]
            if not name.endswith("base.apk"):
                continue
            name, offset = change(name, record.word(24))
            padded = name.encode() + bytes(8 - len(name) % 8)
            record.body = bytearray(body[:24] + struct.pack("<Q", offset) + body[32:64] + padded + trailer)
        return records.write(self.folder / "renamed.data")

    def as_simpleperf(self):
        def change(name, offset):
            for library, begin in self.offsets.items():
                if begin <= offset < begin + len(self.libraries[library]):
                    return f"{name}!/{library}", offset - begin
            return name, offset
        return self.renamed(change)

    def test_libraries_are_found_in_their_package(self):
        found, said = self.functions(self.data)
        self.assertGreater(found["hot_in_package"]["instructions"], 10 * found["cold_in_package"]["instructions"])
        self.assertGreater(found["cold_in_package"]["instructions"], 100)
        self.assertNotIn("is not known", said)
        by_image = json.loads(self.waymark("profile", self.data, "--by", "image", "--format", "json").stdout)["rows"]
        self.assertLessEqual({"libhot.so", "libcold.so"}, {row["image"] for row in by_image})
        # Lines too, and the same results if simpleperf names the library.
        lines = self.waymark("profile", self.data, "--by", "line").stdout
        self.assertIn("hot.c:1", lines)
        self.assertEqual(self.functions(self.as_simpleperf())[0], found)

    def test_elsewhere(self):
        expected = self.functions(self.data)[0]
        root = self.folder / "root"
        there = root / self.package.relative_to("/")
        hidden = self.folder / "hidden"
        self.package.rename(hidden)
        try:
            for data in (self.data, self.as_simpleperf()):
                said = self.functions(data)[1]
                self.assertRegex(" ".join(said.split()), rf"the code of {self.package}.* is not known: execution went there")
                for place in (there, root / "base.apk"):
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(hidden, place)
                    shutil.copy(self.program, root)
                    found = self.functions(data, "--symfs", root)[0]
                    self.assertEqual(found["hot_in_package"]["instructions"], expected["hot_in_package"]["instructions"])
                    place.unlink()
        finally:
            hidden.rename(self.package)

    def test_what_is_no_stored_file_is_refused(self):
        data, hidden = self.as_simpleperf(), self.folder / "hidden"
        self.package.rename(hidden)
        whole = hidden.read_bytes()
        try:
            self.packed(self.package, zipfile.ZIP_DEFLATED)
            said = " ".join(self.waymark("info", data).stdout.split())
            self.assertIn("libhot.so is compressed in it, so it was not mapped from there", said)
            self.assertIn("--symdir", said)
            # A cut file, one without a table of contents, and one with a stored file that claims 2^32 - 2 bytes.
            claim = bytearray(whole)
            at = whole.rindex(b"lib/arm64-v8a/libcold.so") - 46
            self.assertEqual(whole[at:at + 4], b"PK\1\2")
            struct.pack_into("<II", claim, at + 20, 0xfffffffe, 0xfffffffe)
            for contents in (whole[:len(whole) // 2], b"PK\3\4" + bytes(5000), bytes(claim)):
                self.package.write_bytes(contents)
                for each in (data, self.data):
                    done = self.waymark("profile", each, status=0)
                    self.assertIn("base.apk", done.stdout + done.stderr)
                    self.assertIn("copy the package again", done.stdout + done.stderr)
        finally:
            hidden.rename(self.package)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
