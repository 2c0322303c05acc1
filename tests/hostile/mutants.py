"""Files that somebody damaged who knows their format: perf.data and answers files, changed by their structure.

Every mutant follows from a number: `perf_mutant(path, seed)`, `answers_mutant(path, seed)` and the others return the bytes and
what was changed, in words.
"""
import ctypes
import random
import re
import struct
import zipfile
import zlib

U64 = (1 << 64) - 1
EXTREMES = (0, 1, 2, 7, 8, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 40, (1 << 63) - 1,
            1 << 63, U64 - 7, U64 - 1, U64)
# Unusual names.
NAMES = (b"/bin/true", b"[kernel.kallsyms]_text", b"[vdso]", b"//anon", b"jit-1.dump", b"base.apk", b"../../../../etc/passwd",
         b"/dev/zero", b"/proc/self/mem", b"\xff\xfe\x01<script>", b"A" * 4000, b"", b"[mod_x]")
TEXTS = (b"</script><script>alert(1)</script>", b"\xff\xfe", b"../../../x", b"", b"a" * 5000, b"\x1b[31m", b"=cmd()",
         b"';drop table x;--", b"\n\r\t\0", b"ab\0")


def extreme(r):
    """A number at the edge of a range, or any number."""
    return r.choice((r.choice(EXTREMES), r.getrandbits(r.choice((8, 16, 32, 64))), r.choice(EXTREMES) ^ 1 << r.randrange(64)))


def changed_bytes(r, data):
    """A few bytes changed, dropped, doubled or added."""
    out = bytearray(data)
    for _ in range(r.choice((1, 1, 2, 8))):
        at, count = r.randrange(len(out) + 1), r.choice((1, 2, 8, 64))
        kind = r.randrange(5)
        if kind == 0 and out:
            out[at % len(out)] ^= 1 << r.randrange(8)
        elif kind == 1:
            del out[at:at + count]
        elif kind == 2:
            out[at:at] = out[at:at + count]
        elif kind == 3:
            out[at:at] = r.randbytes(count)
        else:
            out[at:at + 8] = struct.pack("<Q", extreme(r) & U64)[:max(0, len(out) - at)]
    return bytes(out)


# ---- perf.data

AUXTRACE = 71


class Record:
    def __init__(self, kind, misc, body, trace=b"", size=None):
        self.kind, self.misc, self.body, self.trace, self.size = kind, misc, bytearray(body), trace, size

    def encoded(self):
        size = 8 + len(self.body) if self.size is None else self.size
        return struct.pack("<IHH", self.kind & 0xffffffff, self.misc & 0xffff, size & 0xffff) + bytes(self.body) + self.trace


class PerfFile:
    """The header, the records and the features of a perf.data file."""

    def __init__(self, path):
        data = path.read_bytes()
        self.first, size = struct.unpack_from("<QQ", data, 40)
        self.header, self.records, self.features, self.index_is_right = bytearray(data[:self.first]), [], {}, True
        self.places, self.size = {}, None
        at = self.first
        while at < self.first + size:
            kind, misc, length = struct.unpack_from("<IHH", data, at)
            record = Record(kind, misc, data[at + 8:at + length])
            at += length
            if kind == AUXTRACE:
                count = int.from_bytes(record.body[:8], "little")
                record.trace = data[at:at + count]
                at += count
            self.records.append(record)
        set_features = int.from_bytes(data[72:104], "little")
        for feature in range(256):
            if set_features >> feature & 1:
                place, length = struct.unpack_from("<QQ", data, at)
                self.features[feature] = data[place:place + length]
                at += 16

    def bytes(self):
        data, index = b"", []
        for record in self.records:
            if record.kind == AUXTRACE:
                index.append(self.first + len(data))
            data += record.encoded()
        features = dict(self.features)
        if 18 in features and self.index_is_right:
            features[18] = struct.pack("<Q", len(index)) + b"".join(struct.pack("<QQ", at, 48) for at in index)
        header = bytearray(self.header)
        if len(header) >= 104:
            struct.pack_into("<Q", header, 48, len(data) if self.size is None else self.size)
            header[72:104] = sum(1 << feature for feature in features).to_bytes(32, "little")
        at = self.first + len(data) + 16 * len(features)
        table = contents = b""
        for feature in sorted(features):
            place = self.places.get(feature, (at + len(contents), len(features[feature])))
            table += struct.pack("<QQ", *place)
            contents += features[feature]
        return bytes(header) + data + table + contents


def map_from_package(record, ending, name):
    """A record of a mapping of a file whose path ends with this text: `name` is the mapped file."""
    mmap2 = 10
    if record.kind == mmap2 and bytes(record.body[64:]).split(b"\0")[0].endswith(ending):
        end = record.body.index(0, 64)
        record.body[64:64 + (end - 64) // 8 * 8 + 8] = name + bytes(8 - len(name) % 8)


def package(path, code, more=0):
    """An application's package (APK) that stores a program as lib/p, where it can be mapped, and `more` other files."""
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("classes.dex", b"dex\n" * 2000, zipfile.ZIP_DEFLATED)
        entry = zipfile.ZipInfo("lib/p")
        pad = -(out.fp.tell() + 30 + len(entry.filename) + 4) % 4096
        entry.extra = struct.pack("<HH", 0xd935, pad) + bytes(pad)
        out.writestr(entry, code)
        for i in range(more):
            out.writestr(f"assets/{i}", b"x")


def made_record(r, trailer):
    """A record that no kernel writes."""
    def words(count):
        return b"".join(struct.pack("<Q", extreme(r) & U64) for _ in range(count))
    kind = r.choice((*range(1, 23), *range(64, 85), 32768, 32769, 32770, 0x7fffffff, 0xffffffff, 0))
    name = r.choice(NAMES)
    name += bytes(8 - len(name) % 8)
    if kind == 1:  # MMAP
        body = struct.pack("<II", r.choice((0xffffffff, 1, 0)), 0) + words(3) + name + trailer
    elif kind == 10:  # MMAP2
        body = struct.pack("<II", r.choice((0xffffffff, 1)), 1) + words(3) + bytes(24) + struct.pack("<II", 5, 2) + name + trailer
    elif kind == 20:  # TEXT_POKE
        length = r.choice((0, 4, 8, 0xffff))
        body = struct.pack("<QHH", extreme(r) & U64, length, r.choice((0, 4, length))) + bytes(r.choice((0, 4, 16, 64))) + trailer
    elif kind == 70:  # AUXTRACE_INFO
        body = struct.pack("<Q", r.choice((1, 2, 3, 4, 5))) + words(r.choice((0, 1, 3, 12, 40)))
    elif kind == 81:  # COMPRESSED
        body = r.randbytes(r.choice((8, 64, 1000)))
    else:
        body = words(r.choice((0, 1, 2, 4, 8, 50))) + (name if r.random() < .3 else b"") + (trailer if r.random() < .5 else b"")
    size = None if r.random() < .9 else r.choice((0, 1, 7, 8, 9, 16, 0xfff8, 0xffff))
    return Record(kind, r.choice((0, 1, 2, 0xffff)), body, size=size)


def perf_mutant(path, seed):
    r, file, what = random.Random(seed), PerfFile(path), []
    trailer = bytes(file.records[-1].body[-24:])
    for _ in range(r.choice((1, 1, 1, 2, 4))):
        record = r.choice(file.records) if file.records else made_record(r, trailer)
        of_flow = [x for x in file.records if x.kind in (11, 21, 70, 71, 79)] or [record]
        kind = r.randrange(12)
        what.append(f"{kind} at a record of type {record.kind}")
        if kind == 0:
            record.body = bytearray(changed_bytes(r, record.body))
        elif kind == 1:
            record.size = extreme(r) & 0xffff if r.random() < .5 else 8 + len(record.body) ^ 1 << r.randrange(16)
        elif kind == 2:
            record.kind = r.choice((extreme(r) & 0xffffffff, r.randrange(1, 90)))
        elif kind == 3 and file.records:
            file.records.remove(record)
        elif kind == 4:
            file.records.insert(r.randrange(len(file.records) + 1), record)
        elif kind in (5, 6):
            record = r.choice(of_flow) if kind == 6 else record
            if len(record.body) >= 8:
                at = r.randrange(len(record.body) // 8) * 8
                now = int.from_bytes(record.body[at:at + 8], "little")
                new = r.choice((extreme(r), now ^ 1 << r.randrange(64), now + 1, now - 1, now * 2))
                record.body[at:at + 8] = struct.pack("<Q", new & U64)
        elif kind == 7:
            file.records.insert(r.randrange(len(file.records) + 1), made_record(r, trailer))
        elif kind == 8:
            record = r.choice([x for x in of_flow if x.kind == AUXTRACE] or [record])
            record.trace = changed_bytes(r, record.trace)
            if r.random() < .7:
                record.body[0:8] = struct.pack("<Q", len(record.trace))
        elif kind == 9 and file.features:
            feature = r.choice(list(file.features))
            file.features[feature] = changed_bytes(r, file.features[feature])
            file.index_is_right = feature != 18
        elif kind == 10 and file.features:
            feature = r.choice((*file.features, r.randrange(256)))
            file.features.setdefault(feature, b"12345678")
            file.places[feature] = (extreme(r) & U64, extreme(r) & U64)
        elif r.random() < .2:
            file.size = extreme(r) & U64
        else:
            at, count = r.randrange(len(file.header) - 8), r.choice((1, 2, 4, 8))
            file.header[at:at + count] = (extreme(r) & (1 << 8 * count) - 1).to_bytes(count, "little")
    out = file.bytes()
    return (changed_bytes(r, out) if r.random() < .1 else out), ", ".join(what)


# ---- answers files

MAGIC = bytes.fromhex("89574d414e530d0a")


class Zstd:
    """The functions of libzstd; raises OSError where it is missing."""

    def __init__(self):
        self.library = ctypes.CDLL("libzstd.so.1")
        for name, arguments in (("compressBound", (ctypes.c_size_t,)),
                                ("compress", (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int)),
                                ("decompress", (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t))):
            function = getattr(self.library, f"ZSTD_{name}")
            function.restype, function.argtypes = ctypes.c_size_t, arguments

    def packed(self, data):
        room = self.library.ZSTD_compressBound(len(data))
        out = ctypes.create_string_buffer(room)
        return out.raw[:self.library.ZSTD_compress(out, room, data, len(data), 1)]

    def unpacked(self, data, size):
        out = ctypes.create_string_buffer(max(size, 1))
        return out.raw[:self.library.ZSTD_decompress(out, size, data, len(data))]


def leb(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def read_leb(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, at


def columns_of(table):
    """Name, type and values of each column (docs/answers-file.md)."""
    out = []
    count, at = read_leb(table, 0)
    for _ in range(count):
        size, at = read_leb(table, at)
        name, kind = table[at:at + size], table[at + size]
        size, at = read_leb(table, at + size + 1)
        out.append([name, kind, table[at:at + size]])
        at += size
    return out


def table_of(columns):
    return leb(len(columns)) + b"".join(leb(len(name)) + name + bytes([kind & 0xff]) + leb(len(values)) + values
                                        for name, kind, values in columns)


def changed_values(r, kind, values):
    """One or more values of a column: numbers at the edges of ranges, and texts that are hard to handle."""
    if kind in (0, 1, 4, 5):
        numbers, at = [], 0
        while at < len(values):
            number, at = read_leb(values, at)
            numbers.append(number)
        for _ in range(r.choice((1, 1, 3))):
            numbers[r.randrange(len(numbers))] = extreme(r) & U64
        return b"".join(map(leb, numbers))
    if kind == 2:
        texts, at = [], 0
        while at < len(values):
            size, at = read_leb(values, at)
            texts.append(values[at:at + size])
            at += size
        texts[r.randrange(len(texts))] = r.choice(TEXTS)
        return b"".join(leb(len(text)) + text for text in texts)
    if kind == 3:
        return struct.pack("<d", r.choice((float("nan"), float("inf"), -1e308, 1e308, 5e-324))) + values[8:]
    return changed_bytes(r, values)


def answers_mutant(path, seed):
    r, zstd, what, sections = random.Random(seed), Zstd(), [], []
    data = path.read_bytes()
    assert data.startswith(MAGIC)
    at = 16
    while data[at]:
        name = data[at + 1:at + 1 + data[at]]
        at += 1 + data[at]
        flags, rows, plain, stored = struct.unpack_from("<BQQQ", data, at)
        sections.append([name, flags, rows, zstd.unpacked(data[at + 25:at + 25 + stored], plain)])
        at += 25 + stored + 4
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        section = r.choice(sections)
        kind = r.randrange(10)
        what.append(f"{kind} in {section[0].decode()}")
        if kind == 0:
            section[3] = changed_bytes(r, section[3])
        elif kind == 1:
            section[2] = extreme(r) & U64
        elif kind == 2 and len(sections) > 1:
            sections.remove(section)
        elif kind == 3:
            sections.append(list(section))
        elif kind == 4:
            section[0] = r.choice((b"zzz", r.choice(sections)[0], b"x" * 255))
        else:
            try:
                columns = columns_of(section[3])
                column = r.choice(columns)
                what[-1] += f".{column[0].decode(errors='replace')}"
                if kind == 5:
                    column[1] = r.randrange(9)
                elif kind == 6:
                    columns.remove(column)
                else:
                    column[2] = changed_values(r, column[1], column[2])
                section[3] = table_of(columns)
            except (IndexError, ValueError):  # bytes that were changed before
                section[3] = changed_bytes(r, section[3])
    out = data[:16]
    for name, flags, rows, table in sections:
        packed = zstd.packed(table)
        section = bytes([len(name)]) + name + struct.pack("<BQQQ", flags, rows, len(table), len(packed)) + packed
        out += section + struct.pack("<I", zlib.crc32(section))
    out += b"\0" + struct.pack("<I", len(sections))
    out += struct.pack("<I", zlib.crc32(out))
    return (changed_bytes(r, out) if r.random() < .06 else out), ", ".join(what)


# ---- other files that commands read

def text_mutant(path, seed):
    """Descriptions, maps, tables of symbols: lines, words and numbers changed."""
    r, what = random.Random(seed), []
    lines = path.read_bytes().split(b"\n")
    for _ in range(r.choice((1, 1, 1, 2, 4))):
        at, kind = r.randrange(len(lines)), r.randrange(7)
        what.append(f"{kind} at line {at + 1}")
        words = [word for word in re.split(rb"([ =@\t-]+)", lines[at]) if word]
        if kind == 0:
            del lines[at]
            lines = lines or [b""]
        elif kind == 1:
            lines.insert(r.randrange(len(lines) + 1), lines[at])
        elif kind == 2 and words:
            number = extreme(r) & U64
            words[r.randrange(len(words))] = r.choice((b"%d", b"%x", b"0x%x", b"-%d")) % number
            lines[at] = b"".join(words)
        elif kind == 3 and words:
            words[r.randrange(len(words))] = r.choice((*NAMES, *TEXTS))
            lines[at] = b"".join(words)
        elif kind == 4 and words:
            del words[r.randrange(len(words))]
            lines[at] = b"".join(words)
        elif kind == 5:
            other = r.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        else:
            lines[at] = changed_bytes(r, lines[at])
    return b"\n".join(lines), ", ".join(what)


def binary_mutant(path, seed):
    """Bytes changed, and words at any multiple of their size."""
    r, data = random.Random(seed), bytearray(path.read_bytes())
    if r.random() < .5 and len(data) >= 8:
        size = r.choice((1, 2, 4, 8))
        at = r.randrange(len(data) // size) * size
        data[at:at + size] = (extreme(r) & (1 << 8 * size) - 1).to_bytes(size, "little")
        return bytes(data), f"{size} bytes at {at}"
    return changed_bytes(r, bytes(data)), "bytes"


def elf_mutant(path, seed):
    """Fields of the header, of program headers and sections, of symbols; bytes of any section."""
    r, data, what = random.Random(seed), bytearray(path.read_bytes()), []
    programs, sections = struct.unpack_from("<QQ", data, 32)
    program_size, program_count, section_size, section_count = struct.unpack_from("<HHHH", data, 54)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, sections + i * section_size) for i in range(section_count)]
    for _ in range(r.choice((1, 1, 1, 2, 4))):
        kind = r.randrange(5)
        what.append(str(kind))
        if kind == 0:
            at, size = r.randrange(4, 62), r.choice((1, 2))
        elif kind == 1:
            at, size = programs + r.randrange(program_count * program_size // 8) * 8, r.choice((4, 8))
        elif kind == 2:
            at, size = sections + r.randrange(section_count * section_size // 8) * 8, r.choice((4, 8))
        else:
            # Sections of names, symbols, relocations and debug information, or any.
            chosen = r.choice([h for h in headers if h[1] not in (0, 8) and h[5] and (kind == 3 or h[1] in (2, 3, 4, 7) or h[3] == 0)])
            at, size = chosen[4] + r.randrange(chosen[5]), r.choice((1, 1, 2, 4, 8))
            what[-1] += f" in the section at {chosen[4]:#x}"
        data[at:at + size] = (extreme(r) & (1 << 8 * size) - 1).to_bytes(size, "little")
    return bytes(data), ", ".join(what)


def jitdump(code, address):
    """A jitdump file: names of code, its lines, a piece that moves, and the end."""
    def record(kind, body, time):
        return struct.pack("<IIQ", kind, 16 + len(body), time) + body
    out = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 183, 0, 1, 1, 0)
    for i in range(4):
        out += record(2, struct.pack("<QQ", address + 64 * i, 1) + struct.pack("<Qii", address + 64 * i, 7 + i, 0)
                      + b"made.js\0", 10 + i)
        out += record(0, struct.pack("<IIQQQQ", 1, 1, address + 64 * i, address + 64 * i, 64, i + 1) + b"made_%d\0" % i
                      + code[64 * i:64 * i + 64].ljust(64, b"\0"), 10 + i)
    out += record(1, struct.pack("<IIQQQQQ", 1, 1, address, address, address + 4096, 64, 1), 20)
    return out + record(3, b"", 30)


# In a package, a record begins at each of these marks: of a file, of the list of files, and of the end.
ZIP_MARKS = (b"PK\3\4", b"PK\1\2", b"PK\5\6")


def zip_mutant(path, seed):
    """Fields of the records of a package."""
    r, data, what = random.Random(seed), bytearray(path.read_bytes()), []
    for _ in range(r.choice((1, 1, 2, 4))):
        mark = r.choice(ZIP_MARKS)
        places = [m.start() for m in re.finditer(re.escape(mark), bytes(data))]
        if not places:
            continue
        at, size = r.choice(places) + r.randrange(4, 46, 2), r.choice((1, 2, 4))
        data[at:at + size] = (extreme(r) & (1 << 8 * size) - 1).to_bytes(size, "little")
        what.append(f"{size} bytes at {at}")
    out = bytes(data)
    return (changed_bytes(r, out) if r.random() < .2 else out), ", ".join(what)
