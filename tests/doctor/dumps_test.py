#!/usr/bin/env python3
"""What doctor says of bare files of about forty kinds: a confusion matrix, and no "proven" that is wrong.

    dumps_test.py WAYMARK SOURCE

Files of trace come from recordings of the examples under QEMU: every unit in several settings, as the bytes of one
source, in frames, with syncs of a trace port, cut at the head, damaged, as text of several kinds. The other files hold
no trace: empty sinks, noise, text, other types of file. With a compiler for Cortex-M, MTB and ITM are among them. The environment variable WAYMARK_DUMPS sets the number of files;
without it, one of each kind is made. WAYMARK_SEED (1) decides offsets, lengths, damage and settings.

`dumps_test.py WAYMARK SOURCE --keep FOLDER` leaves the files there, and prints the matrix.
"""
import base64
import binascii
import collections
import html
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from cortex_m import COMPILER, build  # noqa: E402
from scratch import Folder, HANGS  # noqa: E402

WAYMARK = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(sys.argv[2]).resolve()
KEEP = pathlib.Path(sys.argv[4]) if sys.argv[3:4] == ["--keep"] else None
SEED = int(os.environ.get("WAYMARK_SEED") or 1)
FILES = int(os.environ.get("WAYMARK_DUMPS") or 0)  # 0: one of each kind
ARM, ARM64 = SOURCE / "examples/sort/sort.elf", SOURCE / "examples/sort/sort-aarch64.elf"

COMPILES = shutil.which(COMPILER) is not None and shutil.which("qemu-system-arm") is not None
# The report's statement on a setting, by option of the recorder: the fact, its value with the option and without.
Setting = collections.namedtuple("Setting", "fact on off")
ETM = {"--cycle-accurate": Setting("cycle counts", "yes", "no"), "--timestamps": Setting("timestamps", "yes", "no"),
       "--context-id=4": Setting("Context ID", "4 bytes", "not traced"),
       "--return-stack": Setting("return stack", "yes", "no"), "--speculation=16": Setting("speculation", "yes", "no"),
       "--branch-broadcast": Setting("branch broadcast", "yes", "no")}
ETM3 = {"--cycle-accurate": Setting("cycle counts", "yes", "no"), "--context-id=1": Setting("Context ID", "1 byte", "not traced"),
        "--timestamps": Setting("timestamps", "64 bits", None), "--branch-broadcast": Setting("branches", None, None)}
PTM = {"--cycle-accurate": Setting("cycle counts", "yes", "no"), "--context-id=4": Setting("Context ID", "4 bytes", "not traced"),
       "--return-stack": Setting("return stack", "yes", "no")}
UNITS = {"ptm": (ARM, PTM, "Program Flow Trace (PTM)"), "etmv3": (ARM, ETM3, "Embedded Trace Macrocell v3 (ETMv3)"),
         "etmv4": (ARM64, ETM, "ETMv4 and ETE instruction trace"), "ete": (ARM64, ETM, "ETMv4 and ETE instruction trace")}

# Calls, a table of functions, SVC, and SysTick while the core sleeps; each round writes a character to the ITM.
CORTEX_M = r"""
#define REG(a) (*(volatile unsigned*)(a))
volatile unsigned ticks, calls, sum;
void tick(void) { ++ticks; }
void supervisor(void) { ++calls; }
typedef unsigned (*step)(unsigned);
__attribute__((noinline)) static unsigned twice(unsigned a) { return a * 2; }
__attribute__((noinline)) static unsigned more(unsigned a) { return (a & 3) == 1 ? a + 7 : a - 1; }
static const step steps[] = {twice, more};
void reset(void) {
    REG(0xE000E014) = 1501; REG(0xE000E018) = 0; REG(0xE000E010) = 7;
    for (unsigned i = 0; i < 40; ++i) {
        sum += steps[i & 1](i);
        *(volatile unsigned char*)0xE0000000 = (unsigned char)('A' + (i & 15));
        if ((i & 7) == 7) __asm__ volatile("svc 1");
    }
    while (ticks < 3) __asm__ volatile("wfi");
    unsigned b[2] = {0x20026, 0};
    register unsigned r0 __asm__("r0") = 0x20;
    register void* r1 __asm__("r1") = b;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    for (;;) {}
}
void fault(void) { for (;;) {} }
extern unsigned stack_top;
__attribute__((section(".vectors"), used)) void* const vectors[16] = {
    &stack_top, (void*)reset, 0, (void*)fault, 0, 0, 0, 0, 0, 0, 0, (void*)supervisor, 0, 0, 0, (void*)tick};
"""
MTB, ITM = "Micro Trace Buffer (MTB)", "instrumentation and watchpoint trace (ITM, DWT)"
ARCHITECTURES = {"m0": "ARMv6-M", "m33": "ARMv8-M"}

Dump = collections.namedtuple("Dump", "kind protocol facts image")  # protocol: None: there is no trace in it


def run(*arguments, **more):
    return subprocess.run([str(a) for a in arguments], capture_output=True, timeout=HANGS, **more)


class Maker:
    def __init__(self, folder):
        self.folder, self.draw, self.recorded = folder, random.Random(SEED), {}

    def record(self, unit, options):
        """The bytes of a recording's only source, and its frames."""
        key = (unit, *sorted(options))
        if key not in self.recorded:
            folder = self.folder / f"recording{len(self.recorded)}"
            program = UNITS[unit][0]
            done = run(WAYMARK, "record", "--from-start", "-q", "--unit", unit, *sorted(options), "-o", folder, "--", program)
            frames = (folder / "trace.bin").read_bytes() if (folder / "trace.bin").exists() else None
            if frames is None:
                raise RuntimeError(f"record {key}: {done.stderr.decode()}")
            self.recorded[key] = frames
            shutil.rmtree(folder)
        return self.recorded[key]

    def unit(self, unit):
        known = UNITS[unit][1]
        options = {o for o in known if self.draw.random() < 0.4}
        if "--branch-broadcast" in options:
            options -= {"--return-stack"}
        frames = self.record(unit, options)
        facts = {s.fact: (s.on if o in options else s.off) for o, s in known.items()}
        return frames, facts

    def flow(self, how):
        unit = self.draw.choice(sorted(UNITS))
        frames, facts = self.unit(unit)
        program, _, protocol = UNITS[unit]
        image = program if how in ("frames", "source") else None
        data = frames
        source = deformat(frames)
        if how == "source":
            data = source
        elif how == "wrapped":
            data = frames[16 * self.draw.randrange(1, len(frames) // 32):]
        elif how == "headless":
            data = source[self.draw.randrange(1, len(source) // 2):]
        elif how == "inside a frame":
            data = frames[self.draw.randrange(1, 16):]
        elif how == "short":
            data = source[:max(600, len(source) // 3)]
        elif how == "damaged":
            data = bytearray(source)
            for _ in range(max(1, len(data) // 20000)):
                data[self.draw.randrange(len(data))] ^= 1 << self.draw.randrange(8)
            data = bytes(data)
        elif how == "damaged head":
            data = bytes(self.draw.randrange(256) for _ in range(200)) + source
        elif how == "padded":
            data = source + bytes(4096)
        elif how == "idle port":
            idle = self.draw.choice((1, 4, 50))
            data = b"".join(b"\xff\xff\xff\x7f" * idle + frames[at:at + 16] for at in range(0, len(frames), 16))
        elif how == "words swapped":
            data = swap(source, 4)
        elif how == "xxd":
            data = xxd(source)
        elif how == "hexdump -C":
            data = hexdump(source)
        elif how == "debugger words":
            data = debugger(source)
        elif how == "coe":
            words = [w[::-1].hex() for w in chunks(source, 4)]
            data = ("memory_initialization_radix=16;\nmemory_initialization_vector=\n" + ",\n".join(words) + ";\n").encode()
        elif how == "SystemVerilog":
            data = ("// trace memory\n@00000000\n" + "\n".join(w[::-1].hex() for w in chunks(source, 4)) + "\n").encode()
        elif how == "list":
            data = f"trace = {list(source)}\n".encode()
        elif how == "literal":
            data = f"{source!r}\n".encode()
        elif how == "base64":
            data = base64.encodebytes(source)
        elif how == "uuencode":
            data = b"begin 644 etb.bin\n" + b"".join(binascii.b2a_uu(source[at:at + 45]) for at in range(0, len(source), 45)) + b"`\nend\n"
        elif how == "od -c":
            data = run("od", "-c", "-v", input=source).stdout
        elif how == "mail":
            data = b"On Monday somebody wrote:\n" + b"".join(b"> " + line + b"\n" for line in xxd(source).splitlines())
        elif how == "page":
            data = b"<html><body><pre>" + html.escape(xxd(source).decode()).encode() + b"</pre></body></html>\n"
        elif how == "bits reversed":
            data = bytes(int(f"{b:08b}"[::-1], 2) for b in source)
        elif how == "bits":
            data = ("\n".join(f"{b:08b}" for b in source) + "\n").encode()
        return data, Dump(f"flow, {how}", protocol, facts, image)

    def nothing(self, how):
        size = self.draw.choice((512, 4096, 65536))
        byte = lambda: self.draw.randrange(256)  # noqa: E731
        data = {"erased": lambda: b"\xff" * size,
                "zeros": lambda: bytes(size),
                "one byte": lambda: bytes([self.draw.randrange(1, 255)]) * size,
                "pattern": lambda: bytes(byte() for _ in range(self.draw.choice((2, 4, 8, 16)))) * (size // 16),
                "idle port": lambda: b"\xff\xff\xff\x7f" * (size // 4),
                "half syncs": lambda: b"\xff\x7f" * (size // 2),
                "noise": lambda: bytes(byte() for _ in range(size)),
                "SRAM": lambda: bytes(sum((self.draw.random() < .85) << b for b in range(8)) for _ in range(1024)),
                "text": lambda: (SOURCE / "README.md").read_bytes(),
                "log": lambda: b"".join(b"[%5d.%06d] usb 1-1: new device number %d\n" % (i, byte(), byte()) for i in range(200)),
                "program": lambda: ARM.read_bytes()[64:],
                "counter": lambda: b"".join(struct.pack("<I", i) for i in range(size // 4)),
                "floats": lambda: b"".join(struct.pack("<f", self.draw.gauss(0, 10)) for _ in range(size // 4)),
                "small numbers": lambda: b"".join(struct.pack("<Q", self.draw.randrange(1, 4096)) for _ in range(size // 8)),
                "pointers": lambda: b"".join(struct.pack("<Q", 0x555555554000 + 8 * self.draw.randrange(9999)) for _ in range(size // 8)),
                "VCD": self.levels,
                "zip": self.zip,
                "png": lambda: b"\x89PNG\r\n\x1a\n" + bytes(byte() for _ in range(size)),
                "pdf": lambda: b"%PDF-1.7\n" + bytes(byte() for _ in range(size)),
                "xz": lambda: b"\xfd7zXZ\0" + bytes(byte() for _ in range(size)),
                "sqlite": lambda: b"SQLite format 3\0" + bytes(byte() for _ in range(size))}[how]()
        return data, Dump(f"no trace, {how}", None, {}, None)

    def levels(self):
        """A line of a logic analyser."""
        changes = "".join(f"#{at * 10}\n{self.draw.randrange(2)}!\n" for at in range(2000))
        return f"$timescale 1 us $end\n$var wire 1 ! swo $end\n$enddefinitions $end\n{changes}".encode()

    def zip(self):
        path = self.folder / "a.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("metadata", "x" * 3000)
        return path.read_bytes()

    def samples(self, how):
        key = ("spe",)
        if key not in self.recorded:
            data = self.folder / "spe.data"
            done = run(WAYMARK, "record", "-q", "--unit", "spe", "-o", data, "--", ARM64)
            out = run(WAYMARK, "spe", "records", data, "--format", "json")
            self.recorded[key] = aux_of(data) if data.exists() else None
            if self.recorded[key] is None:
                raise RuntimeError(f"record spe: {done.stderr.decode()} {out.stderr.decode()}")
        return self.recorded[key], Dump("samples", "Statistical Profiling (SPE)", {}, None)

    def counters(self, how):
        key = ("dpu",)
        if key not in self.recorded:
            folder = self.folder / "dpu"
            done = run(WAYMARK, "record", "-q", "--unit", "dpu", "-o", folder, "--", ARM)
            if not (folder / "vtb.bin").exists():
                raise RuntimeError(f"record dpu: {done.stderr.decode()}")
            self.recorded[key] = (folder / "vtb.bin").read_bytes()
        data = self.recorded[key]
        if how == "swapped":
            data = swap(data, 4)
        return data, Dump(f"counters, {how}", "Debug and Profiling Unit (DPU)", {}, None)

    def cortex_m(self, how):
        """Trace of a Cortex-M0 or, if it can send it, M33."""
        unit = "itm" if "SWO" in how else "mtb"
        board = "m33" if unit == "itm" else self.draw.choice(sorted(ARCHITECTURES))
        key = (unit, board)
        if key not in self.recorded:
            program, folder = build(self.folder, board, "program", CORTEX_M), self.folder / f"{unit}-{board}"
            more = ("--pc-samples", "32") if unit == "itm" else ()
            done = run(WAYMARK, "record", "-q", "--unit", unit, *more, "-o", folder, "--", program)
            traces = sorted(folder.glob("trace*.bin"))
            if not traces:
                raise RuntimeError(f"record {key}: {done.stderr.decode()}")
            self.recorded[key] = traces[0].read_bytes(), program
        data, program = self.recorded[key]
        if how == "MTB, words of gdb":
            data = debugger(data)
        elif how == "SWO in frames":
            data = frames_of(data)
        elif how == "SWO in frames with syncs, bytes lost":
            data = bytearray(b"".join(b"\xff\xff\xff\x7f" + frames_of(data[at:at + 14]) for at in range(0, len(data), 14)))
            for _ in range(3):
                at = self.draw.randrange(len(data))
                del data[at:at + self.draw.randrange(1, 6)]
            data = bytes(data)
        elif how == "SWO, cut head":
            data = data[self.draw.randrange(1, len(data) // 2):]
        image = program if how == "MTB with its program" else None
        return data, Dump(how, ITM if unit == "itm" else MTB, {} if unit == "itm" else {"core": ARCHITECTURES[board]}, image)

    KINDS = ([("flow", h) for h in ("frames", "source", "wrapped", "headless", "inside a frame", "short", "damaged",
                                    "damaged head", "padded", "idle port", "words swapped", "xxd", "hexdump -C",
                                    "debugger words", "coe", "SystemVerilog", "bits", "list", "literal", "base64", "uuencode", "od -c", "mail", "page", "bits reversed", "frames",
                                    "source")] +
             [("nothing", h) for h in ("erased", "zeros", "one byte", "pattern", "idle port", "half syncs", "noise", "SRAM",
                                       "text", "log", "program", "counter", "floats", "small numbers", "pointers", "VCD", "zip", "png", "pdf", "xz", "sqlite")] +
             [("samples", ""), ("counters", "as written"), ("counters", "swapped")] +
             [("cortex_m", h) for h in ("MTB", "MTB with its program", "MTB, words of gdb", "SWO", "SWO, cut head", "SWO in frames",
                                        "SWO in frames with syncs, bytes lost") if COMPILES])

    def make(self, number):
        what, how = self.KINDS[number % len(self.KINDS)]
        return getattr(self, what)(how)


def chunks(data, size):
    return [data[at:at + size] for at in range(0, len(data) - size + 1, size)]


def swap(data, size):
    return b"".join(w[::-1] for w in chunks(data, size)) + data[len(data) - len(data) % size:]


def printable(row):
    return "".join(chr(b) if 32 <= b < 127 else "." for b in row)


def rows(data):
    return ((at, data[at:at + 16]) for at in range(0, len(data), 16))


def xxd(data):
    line = lambda at, r: f"{at:08x}: " + " ".join(r[i:i + 2].hex() for i in range(0, len(r), 2)).ljust(39) + "  " + printable(r)  # noqa: E731
    return ("\n".join(line(at, r) for at, r in rows(data)) + "\n").encode()


def hexdump(data):
    line = lambda at, r: f"{at:08x}  " + (r[:8].hex(" ") + "  " + r[8:].hex(" ")).ljust(49) + f" |{printable(r)}|"  # noqa: E731
    return ("\n".join(line(at, r) for at, r in rows(data)) + f"\n{len(data):08x}\n").encode()


def debugger(data):
    line = lambda at, r: f"0x{0x20000000 + at:08x}:\t" + "\t".join("0x" + w[::-1].hex() for w in chunks(r, 4))  # noqa: E731
    return ("\n".join(line(at, r) for at, r in rows(data)) + "\n").encode()


def frames_of(data):
    """CoreSight frames of one source, 1, whose ID is in each."""
    out = bytearray()
    for part in (data[at:at + 14] for at in range(0, len(data), 14)):
        frame = bytearray([3, *part, *bytes(16 - 1 - len(part))])
        for i in range(2, 15, 2):
            frame[15] |= (frame[i] & 1) << (i // 2)
            frame[i] &= 0xfe
        out += frame
    return bytes(out)


def deformat(frames):
    """The bytes of the only source in CoreSight frames."""
    out, known = bytearray(), False  # the source's ID came
    for frame in (frames[at:at + 16] for at in range(0, len(frames) - 15, 16)):
        if frame == b"\xff\xff\xff\x7f" * 4:
            known = False
            continue
        late = None  # what an ID that holds from the byte after the next one on makes of `known`
        for i, byte in enumerate(frame[:15]):
            aux = frame[15] >> (i // 2) & 1
            if i % 2 == 0 and byte & 1:
                if aux and i < 14:
                    late = byte > 1
                else:
                    known = byte > 1
            else:
                if known:
                    out.append(byte | aux if i % 2 == 0 else byte)
                if late is not None:
                    known, late = late, None
    return bytes(out)


def is_synchronised(data, protocol):
    """An A-sync is left, as the bytes stand or in frames; a short part of a trace may have none."""
    sync = b"\0" * (11 if protocol.startswith("ETMv4") else 5) + b"\x80"
    return any(sync in part for part in (data, *(deformat(data[n:]) for n in range(16))))


def aux_of(path):
    """The contents of the AUXTRACE records of a perf.data file."""
    data = path.read_bytes()
    offset, size = struct.unpack_from("<QQ", data, 40)
    at, out = offset, b""
    while at < offset + size:
        kind, _, bytes_ = struct.unpack_from("<IHH", data, at)
        if kind == 71:
            (trace,) = struct.unpack_from("<Q", data, at + 8)
            out += data[at + bytes_:at + bytes_ + trace]
            at += trace
        at += bytes_
    return out


class Dumps(unittest.TestCase):
    def setUp(self):
        self.scratch = Folder()
        self.addCleanup(self.scratch.cleanup)
        self.folder = KEEP or pathlib.Path(self.scratch.name)
        self.folder.mkdir(exist_ok=True)

    def test_what_doctor_says(self):
        maker = Maker(pathlib.Path(tempfile.mkdtemp(dir=self.scratch.name)))
        matrix, wrong, missed, certain = collections.Counter(), [], [], collections.Counter()
        files = FILES or len(maker.KINDS)
        for number in range(files):
            data, dump = maker.make(number)
            path = self.folder / f"dump{number:03}.bin"
            path.write_bytes(data)
            done = run(WAYMARK, "doctor", path, "--format", "json", *(["--image", dump.image] if dump.image else []))
            self.assertNotIn(done.returncode, (2, -6, -11), f"{dump.kind}: {done.stderr.decode()}")
            report = json.loads(done.stdout)
            found = sorted({s["protocol"] for s in report["sources"]} - {"not recognised"})
            said = ", ".join(found) or "nothing"
            matrix[dump.kind, dump.protocol or "nothing", said] += 1
            if dump.protocol is None and found or any(f != dump.protocol for f in found):
                proven = [f for s in report["sources"] for f in s["facts"] if f["proven"]]
                (wrong if proven or dump.protocol is None else missed).append((path.name, dump.kind, said, [f["what"] for f in proven]))
            elif dump.protocol and not found:
                reasons = {f["kind"] for f in report["findings"]}
                if dump.kind.startswith("flow") and not is_synchronised(data, dump.protocol) and "no-synchronisation" in reasons:
                    matrix[dump.kind, dump.protocol, said] -= 1
                    matrix[dump.kind, "without a synchronisation", "no synchronisation"] += 1
                else:
                    missed.append((path.name, dump.kind, said, []))
            for source in report["sources"]:
                twice = [what for what, n in collections.Counter(f["what"] for f in source["facts"]).items() if n > 1]
                self.assertEqual(twice, [], f"{path.name}, {dump.kind}: several conclusions on one property")
                for fact in source["facts"]:
                    if fact["what"] not in dump.facts:
                        continue
                    right = dump.facts[fact["what"]] == fact["value"]
                    certain[fact["certainty"], right] += 1
                    if fact["proven"] and not right:
                        wrong.append((path.name, dump.kind, fact["what"], f"{fact['value']} for {dump.facts[fact['what']]}"))
            if not KEEP:
                path.unlink()
        for (kind, is_, said), n in sorted(matrix.items()):
            right = is_ == said or said == "no synchronisation"
            if n:
                print(f"{n:4} {kind:28} is {is_:34} said {said}{'' if right else '   <--'}")
        for (certainty, right), n in sorted(certain.items()):
            print(f"{n:4} settings {certainty:8} {'right' if right else 'wrong'}")
        self.assertEqual(wrong, [], "proven, and wrong; or taken for trace")
        self.assertLessEqual(len(missed) * 50, files + 49, f"missed: {missed}")


if __name__ == "__main__":
    if shutil.which("qemu-arm") is None or shutil.which("qemu-aarch64") is None:
        print("SKIPPED: qemu-arm and qemu-aarch64 are not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
