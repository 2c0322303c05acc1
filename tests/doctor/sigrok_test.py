#!/usr/bin/env python3
"""Sessions of sigrok (.sr) give the bytes that a trace pin or port carried, as the bytes themselves would be read.

    sigrok_test.py WAYMARK SOURCE

The sessions are sampled here, from bytes that are known: SWO as a UART at many ratios of sample rate and speed, with idle
times, spikes and other lines beside it, and trace ports of several widths. sigrok-cli, where it is installed, writes
sessions itself, and its own decoder of UARTs is a witness. With the folder of WAYMARK_CORPUS, the bytes of a real SWO.
"""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS  # noqa: E402

WAYMARK = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(sys.argv[2]).resolve()
CORPUS = pathlib.Path(os.environ.get("WAYMARK_CORPUS") or SOURCE.parent / "shared/corpus")
SYNC = b"\xff\xff\xff\x7f"


def run(*arguments):
    return subprocess.run([str(a) for a in arguments], capture_output=True, timeout=HANGS)


def itm_bytes(draw, messages):
    """Synchronisation packets, text on port 0, words on others, timestamps (docs/spec/itm.md)."""
    out = bytearray()
    for n in range(messages):
        if n % 50 == 0:
            out += bytes(5) + b"\x80"
        for letter in b"tick %d\n" % n:
            out += bytes([0x01, letter])
        out += bytes([draw.choice((0x0b, 0x13, 0x1b))]) + draw.randbytes(4) + bytes([0xc0, draw.randrange(128)])
    return bytes(out)


def uart(data, samples_per_bit, draw, gaps=0.2):
    """Samples of a line, one in each byte: 0 or 1."""
    changes, at = [], 20.0 * samples_per_bit  # (level, time) of each change of the line
    for byte in data:
        bits = [0] + [byte >> n & 1 for n in range(8)] + [1]
        for n, bit in enumerate(bits):
            changes.append((at + n * samples_per_bit, bit))
        at += 10 * samples_per_bit
        if draw.random() < gaps:
            at += draw.random() * 40 * samples_per_bit
    changes.append((at + 30 * samples_per_bit, 1))
    out, level, shift = bytearray(), 1, draw.random()
    for when, bit in changes:
        out += bytes([level]) * (int(when + shift) - len(out))
        level = bit
    return bytes(out)


def frames(data, trace_id):
    """CoreSight frames of one source (docs/spec/pft.md, 6)."""
    out, data = b"", data + bytes(-len(data) % 14)
    for at in range(0, len(data), 14):
        frame, part = bytearray([trace_id << 1 | 1]), data[at:at + 14]
        last = 0
        for n, byte in enumerate(part, 1):
            if n % 2 == 0:
                last |= (byte & 1) << n // 2
                byte &= 0xfe
            frame.append(byte)
        out += bytes(frame) + bytes([last])
    return out


def port(data, width, samples_per_symbol, first_bits, centred):
    """Samples of a trace port: bit 0 is the clock, the data lines follow."""
    bits = [0] * first_bits + [byte >> n & 1 for byte in data for n in range(8)]
    bits += [1] * (-len(bits) % width)
    out, clock = bytearray([0, 0]), 0
    for at in range(0, len(bits), width):
        symbol = sum(bit << n for n, bit in enumerate(bits[at:at + width])) << 1
        early = samples_per_symbol // 2 if centred else 0
        out += bytes([symbol | clock]) * early
        clock ^= 1
        out += bytes([symbol | clock]) * (samples_per_symbol - early)
    return bytes(out)


def write_session(path, samples, names, rate="24 MHz", parts=1, version="2"):
    """A session as libsigrok writes it; `names` by channel."""
    lines = ["[global]", "sigrok version=0.5.2", "", "[device 1]", "capturefile=logic-1", f"total probes={len(names)}",
             f"samplerate={rate}", "total analog=0", *(f"probe{n + 1}={name}" for n, name in enumerate(names)), "unitsize=1", ""]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("version", version)
        archive.writestr("metadata", "\n".join(lines))
        if version == "1":
            archive.writestr("logic-1", samples)
            return
        size = -(-len(samples) // parts)
        for n in range(parts):
            archive.writestr(f"logic-1-{n + 1}", samples[n * size:(n + 1) * size])


def beside(*lines):
    """Samples of several lines, each in a bit of its own."""
    length = max(len(line) for line in lines)
    padded = [line + line[-1:] * (length - len(line)) for line in lines]
    return bytes(sum(bit << n for n, bit in enumerate(sample)) for sample in zip(*padded))


class Sigrok(unittest.TestCase):
    def setUp(self):
        self.scratch = Folder()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)
        self.draw = random.Random(1)
        self.session, self.bare = self.folder / "pins.sr", self.folder / "bytes.bin"

    def packets(self, path, *options):
        done = run(WAYMARK, "packets", path, "--format", "tsv", *options)
        self.assertIn(done.returncode, (0, 1), done.stderr.decode())
        return done.stdout.decode().replace(path.name, "NAME")

    def findings(self, path):
        done = run(WAYMARK, "doctor", path, "--format", "json")
        self.assertIn(done.returncode, (0, 1), done.stderr.decode())
        report = json.loads(done.stdout)
        return {f["kind"]: f["found"] for f in report["findings"]}, [s["protocol"] for s in report["sources"]]

    def check(self, data, *options):
        self.bare.write_bytes(data)
        expected = self.packets(self.bare, *options)
        self.assertGreater(expected.count("\n"), 100)
        self.assertEqual(self.packets(self.session, *options), expected)

    def test_swo_is_read_at_every_speed(self):
        data = itm_bytes(self.draw, 60)
        for ratio in (3.0, 3.37, 4.17, 6.25, 10.42, 12, 24, 104.17):
            with self.subTest(ratio=ratio):
                write_session(self.session, uart(data, ratio, self.draw), ["SWO"], parts=self.draw.randint(1, 5))
                self.check(data, "--protocol", "itm")
                found, protocols = self.findings(self.session)
                self.assertEqual(protocols, ["instrumentation and watchpoint trace (ITM, DWT)"])
                speed = re.search(r"UART of ([0-9.]+) Mbaud on SWO, ", found["logic-samples"])
                self.assertAlmostEqual(float(speed[1]) * ratio / 24, 1, delta=0.01)
                self.assertNotIn("logic-damage", found)

    def test_back_to_back_characters_and_the_older_file(self):
        data = itm_bytes(self.draw, 60)
        write_session(self.session, uart(data, 5.3, self.draw, gaps=0), ["D0"], rate="2500 kHz", version="1")
        self.check(data, "--protocol", "itm")

    def test_the_line_is_found_beside_others(self):
        """A console, a clock, a line that never changes, and one that is called SWO though the console has more."""
        data = itm_bytes(self.draw, 30)
        swo = uart(data, 8, self.draw)
        clock = bytes(n // 3 % 2 for n in range(len(swo)))
        console = uart(b"Booting the kernel, version 5 of today\r\n" * 9, 61.7, self.draw)[:len(swo)]
        write_session(self.session, beside(clock, swo, b"\1", console), ["SWCLK", "D1", "nRST", "UART0 TX"])
        self.check(data, "--protocol", "itm")
        found, _ = self.findings(self.session)
        self.assertIn("on D1", found["logic-samples"])
        fast = uart(self.draw.randbytes(9000), 4, self.draw)
        write_session(self.session, beside(fast, swo), ["D0", "PB3/SWO"])
        self.check(data, "--protocol", "itm")
        self.assertIn("D0 carry characters too", self.findings(self.session)[0]["logic-samples"])

    def test_spikes_and_lost_stop_bits_are_counted(self):
        data = itm_bytes(self.draw, 200)
        samples = bytearray(uart(data, 10, self.draw, gaps=1))
        for n in range(3):  # breaks: low for longer than a character
            at = len(samples) // 4 * (n + 1)
            samples[at:at] = bytes(150)
        write_session(self.session, bytes(samples), ["SWO"])
        found, protocols = self.findings(self.session)
        self.assertIn("have no stop bit", found["logic-damage"])
        self.assertEqual(protocols, ["instrumentation and watchpoint trace (ITM, DWT)"])

    def test_a_trace_port_of_each_width(self):
        data = b"".join(SYNC * self.draw.choice((0, 0, 1, 3)) + f for f in
                        (frames(part, 0x12) for part in (itm_bytes(self.draw, 30)[n:n + 14] for n in range(0, 900, 14))))
        data = SYNC * 4 + data + SYNC * 4
        for width in (1, 2, 4):
            for centred in (False, True):
                with self.subTest(width=width, centred=centred):
                    samples = port(data, width, 3, width, centred)
                    write_session(self.session, samples, ["TRACECLK"] + [f"TRACED{n}" for n in range(width)], parts=3)
                    self.check(data, "--protocol", "itm", "--buffer-format", "dstream_coresight", "--trace-id", "0x12")
                    found, _ = self.findings(self.session)
                    self.assertIn(f"{width} data line", found["logic-samples"])

    def test_what_carries_no_trace_says_so(self):
        clock = bytes(n // 4 % 2 for n in range(40000))
        write_session(self.session, beside(clock, b"\1"), ["D0", "D1"])
        found, protocols = self.findings(self.session)
        self.assertIn("no channel carries characters of a UART", found["no-trace-line"])
        self.assertIn("that change: D0; that do not: D1", found["no-trace-line"])
        self.assertEqual(protocols, [])
        with zipfile.ZipFile(self.session, "w") as archive:
            archive.writestr("version", "2")
            archive.writestr("something", "x" * 100)
        self.assertEqual(list(self.findings(self.session)[0]), ["other-file"])

    def test_a_damaged_session_is_an_error(self):
        data = itm_bytes(self.draw, 400)
        write_session(self.session, uart(data, 8, self.draw), ["SWO"])
        whole = self.session.read_bytes()
        samples = whole.index(b"logic-1-1") + 9, whole.index(b"PK\x01\x02")
        for at in range(samples[0], samples[1], len(whole) // 12):
            self.session.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:])
            done = run(WAYMARK, "packets", self.session, "--protocol", "itm")
            self.assertEqual(done.returncode, 3, f"{at}")
            self.assertIn(b"pins.sr", done.stderr, f"{at}")
        self.session.write_bytes(whole[:len(whole) // 2])
        self.assertIn("other-file", self.findings(self.session)[0])

    @unittest.skipIf(shutil.which("sigrok-cli") is None, "sigrok-cli is not installed (Debian package sigrok-cli)")
    def test_sigrok_reads_the_same_bytes(self):
        """The bytes that sigrok's own decoder gives for a session that sigrok-cli wrote, of noise that is no ITM."""
        data = self.draw.randbytes(3000)
        raw = self.folder / "raw"
        raw.write_bytes(uart(data, 12, self.draw))
        run("sigrok-cli", "-I", "binary:numchannels=8:samplerate=24000000", "-i", raw, "-o", self.session)
        self.assertTrue(self.session.exists())
        theirs = run("sigrok-cli", "-i", self.session, "-P", "uart:rx=0:baudrate=2000000:format=hex", "-B", "uart=rx").stdout
        self.assertEqual(theirs, data)
        done = run(WAYMARK, "packets", self.session, "--protocol", "itm", "--format", "tsv")
        self.bare.write_bytes(theirs)
        self.assertEqual(done.stdout.decode().replace(self.session.name, "NAME"), self.packets(self.bare, "--protocol", "itm"))

    @unittest.skipUnless((CORPUS / "etmv3/sigrok-stm32f105").is_dir(), "the real capture is not here (WAYMARK_CORPUS)")
    def test_a_real_swo_sampled_again(self):
        data = (CORPUS / "etmv3/sigrok-stm32f105/swo.bin").read_bytes()
        write_session(self.session, uart(data, 10.42, self.draw), ["SWO"])
        _, protocols = self.findings(self.session)
        self.bare.write_bytes(data)
        self.assertEqual(protocols, self.findings(self.bare)[1])
        self.assertEqual(len(protocols), 2)


if __name__ == "__main__":
    del sys.argv[1:]
    unittest.main(verbosity=2)
