"""Takes a perf.data file apart into records, for tests that edit them, and puts it together again (docs/spec/spe.md,
section 5). What comes before the data, attributes and their IDs, stays where it is."""
import pathlib
import struct

SAMPLE, AUX, HARDWARE_ID, AUXTRACE_INFO, AUXTRACE, TIME_CONV = 9, 11, 21, 70, 71, 79
INDEX = 18  # feature


class Record:
    def __init__(self, kind, misc, body, trace=b""):
        self.kind, self.misc, self.body, self.trace = kind, misc, bytearray(body), trace

    def word(self, offset, size=8):
        return int.from_bytes(self.body[offset:offset + size], "little")

    def put(self, offset, value, size=8):
        self.body[offset:offset + size] = value.to_bytes(size, "little")

    def copy(self):
        return Record(self.kind, self.misc, self.body, self.trace)

    def encode(self):
        return struct.pack("<IHH", self.kind, self.misc, 8 + len(self.body)) + bytes(self.body) + self.trace


class PerfRecords:
    def __init__(self, path):
        data = pathlib.Path(path).read_bytes()
        (self.attr_bytes, self.attrs_at, attrs, self.data_at, size) = struct.unpack_from("<5Q", data, 16)
        self.attrs = attrs // self.attr_bytes
        self.front = bytearray(data[:self.data_at])
        self.records, at = [], self.data_at
        while at < self.data_at + size:
            kind, misc, length = struct.unpack_from("<IHH", data, at)
            record = Record(kind, misc, data[at + 8:at + length])
            at += length
            if kind == AUXTRACE:
                record.trace = data[at:at + record.word(0)]
                at += len(record.trace)
            self.records.append(record)
        self.features = {}
        bits = int.from_bytes(data[72:104], "little")
        for number in (n for n in range(256) if bits >> n & 1):
            offset, length = struct.unpack_from("<2Q", data, at)
            self.features[number] = data[offset:offset + length]
            at += 16
        self.index_count = True

    def of(self, kind):
        return [record for record in self.records if record.kind == kind]

    def put_attr(self, number, offset, change, size=8):
        """`change` gives the new value of a field of an attribute from the old one."""
        at = self.attrs_at + number * self.attr_bytes + offset
        old = int.from_bytes(self.front[at:at + size], "little")
        self.front[at:at + size] = change(old).to_bytes(size, "little")

    def write(self, path):
        data, index = b"", []
        for record in self.records:
            if record.kind == AUXTRACE:
                index.append(self.data_at + len(data))
            data += record.encode()
        features = dict(self.features)
        if INDEX in features:
            entries = b"".join(struct.pack("<2Q", at, 48) for at in index)
            features[INDEX] = (struct.pack("<Q", len(index)) if self.index_count else b"") + entries
        front = bytearray(self.front)
        struct.pack_into("<Q", front, 48, len(data))
        front[72:104] = sum(1 << number for number in features).to_bytes(32, "little")
        at, table, contents = self.data_at + len(data) + 16 * len(features), b"", b""
        for number in sorted(features):
            table += struct.pack("<2Q", at + len(contents), len(features[number]))
            contents += features[number]
        pathlib.Path(path).write_bytes(bytes(front) + data + table + contents)
        return path
