#!/usr/bin/env python3
"""Reads a Perfetto trace by the rules of trace_processor, which is not packaged: packets, sequences and their state, clocks,
tracks, slices. Prints what it contains.

    perfetto_check.py FILE
"""
import collections
import sys

# Field numbers, as in perfetto's protos/perfetto/trace.
PACKET = {6: "clock_snapshot", 8: "timestamp", 10: "sequence", 11: "event", 12: "interned", 13: "flags", 58: "clock",
          59: "defaults", 60: "descriptor", 87: "first"}
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
CLEARED, NEEDS_STATE = 1, 2
BOOT_TIME = 6

Slice = collections.namedtuple("Slice", "track name begin end depth")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        assert shift < 64, "a number of more than 64 bits"


def fields(data):
    """(number, value) of each field of a message; for a field with a length, the value is its bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        assert number != 0
        if wire == 0:
            value, at = varint(data, at)
        else:
            assert wire in (1, 2, 5), f"wire type {wire}"
            length, at = varint(data, at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
            value, at = data[at:at + length], at + length
            assert at <= len(data), "a field longer than its message"
        yield number, value


def one(data, *path, missing=None):
    """The last field at a path of numbers, or `missing`."""
    for number in path[:-1]:
        data = one(data, number, missing=b"")
    found = [value for n, value in fields(data) if n == path[-1]]
    return found[-1] if found else missing


class Sequence:
    """The state of one packet sequence since its last reset."""

    def __init__(self):
        self.valid, self.track, self.now, self.clocks, self.clock, self.names, self.open = \
            False, None, None, {}, None, {}, []


class Trace:
    def __init__(self, data):
        self.tracks, self.parents, self.counters, self.processes = {}, {}, set(), set()
        self.slices, self.instants, self.values = [], [], []
        self.sequences = collections.defaultdict(Sequence)
        for number, packet in fields(data):
            assert number == 1, "a trace is packets"
            self.packet({PACKET[n]: value for n, value in fields(packet)})
        for sequence in self.sequences.values():
            assert not sequence.open, "slices that never end"
        for parent in self.parents.values():
            assert parent is None or parent in self.tracks, "a track below one that is not there"

    def packet(self, p):
        assert p.get("sequence"), "a packet of no sequence"
        s = self.sequences[p["sequence"]]
        flags = p.get("flags", 0)
        if flags & CLEARED:
            assert p.get("first") and not s.valid and not s.open
            s.valid, s.clocks = True, {}
        if "clock_snapshot" in p:
            for number, clock in fields(p["clock_snapshot"]):
                if number == 1:
                    s.clocks[one(clock, 1)] = (one(clock, 2), bool(one(clock, 3)))
            assert BOOT_TIME in s.clocks, "no clock that viewers support"
            assert len({time for time, _ in s.clocks.values()}) == 1
            s.now = s.clocks[BOOT_TIME][0]
        if "defaults" in p:
            s.clock, s.track = one(p["defaults"], 58), one(p["defaults"], 11, 11)
            assert s.clock in s.clocks and s.clock >= 64, "clocks of a sequence are numbered from 64"
        if "descriptor" in p:
            self.describe(p["descriptor"])
        if "interned" in p:
            assert s.valid and flags & NEEDS_STATE
            for number, name in fields(p["interned"]):
                assert number == 2 and one(name, 1) not in s.names, "a name given twice"
                s.names[one(name, 1)] = one(name, 2).decode()
        if "event" in p:
            assert s.valid and flags & NEEDS_STATE, "an event that refers to state that was not defined"
            self.event(s, p)

    def describe(self, track):
        uuid, process = one(track, 1), one(track, 3)
        assert uuid and uuid not in self.tracks, "a track described twice"
        name = one(track, 2) if process is None else one(process, 6)
        self.tracks[uuid], self.parents[uuid] = name.decode(), one(track, 5)
        if process is not None:
            self.processes.add(one(process, 1))
        if one(track, 8) is not None:
            self.counters.add(uuid)

    def event(self, s, p):
        assert "clock" not in p and s.clocks[s.clock][1], "differences of time need an incremental clock"
        s.now += p["timestamp"]
        kind, iid, track = one(p["event"], 9), one(p["event"], 10), one(p["event"], 11, missing=s.track)
        assert track in self.tracks, "an event on no track"
        assert (track in self.counters) == (kind == COUNTER), "slices on a counter's track, or values on another"
        assert iid is None or iid in s.names, "a name that was not given"
        if kind == BEGIN:
            s.open.append((s.names[iid], s.now))
        elif kind == END:
            assert s.open, "an end without a beginning"
            name, begin = s.open.pop()
            self.slices.append(Slice(self.tracks[track], name, begin, s.now, len(s.open)))
        elif kind == INSTANT:
            self.instants.append((self.tracks[track], s.names[iid], s.now))
        else:
            assert kind == COUNTER
            assert (one(p["event"], 30) is None) != (one(p["event"], 44) is None), "a value, once"
            self.values.append((self.tracks[track], s.now))


def main():
    with open(sys.argv[1], "rb") as file:
        trace = Trace(file.read())
    print(f"{len(trace.tracks)} tracks, {len(trace.slices)} slices, {len(trace.instants)} instants, "
          f"{len(trace.values)} values")


if __name__ == "__main__":
    main()
