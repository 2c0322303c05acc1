"""Hardware trace in Python: decode captures, ask what programs did, model trace units.

    import waymark

    with waymark.open("capture", symbols="program.elf") as capture:
        for batch in capture.flow():            # ranges of executed code, as numpy arrays
            print(batch.instructions.sum())
        functions = capture.answers().functions  # a table; functions.to_pandas() where pandas is there
        print(functions["name"], functions["self"])

Options of `open` have the names of the command line, with `_` for `-`: `image`, `symbols`, `symfs`, `protocol`, `trace_id`,
`buffer_format` and so on; a list repeats an option. Besides, `code={address: bytes}` gives program bytes, and
`ask=function(address, count, space)` is called for code that nothing else has.

Errors are waymark.Error and its classes. Damaged trace is no error: it comes as events, and as sentences in `damage`.
Decoding releases the interpreter's lock, and can be interrupted (KeyboardInterrupt). An object belongs to one thread at a
time; several threads may decode one capture, each with an object of its own from `flow`, `counts` or `packets`.
"""
from __future__ import annotations

import functools as _functools
import operator as _operator
import os as _os
import typing as _t

import numpy as _np

from waymark import _waymark
from waymark.errors import (CancelledError, Error, FormatError, NotFoundError, UnreadableError, UnsupportedError,
                            UsageError)
from waymark.program import record, report, run
from waymark.tables import TABLES, Answers, Column, Samples, Table, masked

__version__: str = _waymark.version
__all__ = ["open", "open_memory", "open_live", "record", "report", "run", "Capture", "Source", "Symbol", "Flow", "Live", "Batch",
           "Event", "Counts", "Packet", "Samples", "Answers", "Table", "Column", "Model", "Unit", "Error", "UsageError",
           "NotFoundError", "UnreadableError", "FormatError", "UnsupportedError", "CancelledError", "NO_CYCLES", "NOBODY",
           "ISA", "EVENTS", "TABLES", "EXCEPTIONS"]

NO_CYCLES = 0xffffffff
"""In arrays of cycles: no count came with a range."""
NOBODY = 0xffffffff
"""In arrays of processes, threads and CPUs: not known."""
ISA: tuple[str, ...] = ("A32", "T32", "TEE", "Jazelle", "A64")
"""Names of the numbers in `isa`."""
EVENTS: tuple[str, ...] = ("gap", "trace on", "context", "timestamp", "exception", "exception return", "no memory", "trigger",
                           "cycles", "inconsistency", "atoms", "reached", "untraced", "mark")
"""Names of the numbers in `kind` of events; later versions may add some at the end."""
EXCEPTIONS: tuple[str, ...] = _waymark.exception_names
"""Kinds of exceptions, for Model.exception."""


class Source(_t.NamedTuple):
    """A trace source of a capture."""
    name: str
    type: str
    """As the capture spells it: `PTM1.1`."""
    unit: str
    """`PTM`, `ETMv4`, `ETE`; empty: a protocol that is not decoded."""
    core_type: str
    trace_id: int | None
    has_flow: bool
    """Its program flow can be decoded."""


class Symbol(_t.NamedTuple):
    """The symbol that an address lies in, `offset` bytes after its beginning at `address`."""
    name: str
    linkage_name: str
    address: int
    bytes: int
    offset: int


class Event(_t.NamedTuple):
    """What happened before `batch.ranges[before]`. waymark.h says which members have a meaning for each kind."""
    kind: str
    before: int
    offset: int
    address: int
    other: int
    value: int
    cycles: int | None
    detail: int
    flags: int
    name: str


class Packet(_t.NamedTuple):
    """A packet, or bytes that are no packet (`is_gap`; `name` is then the reason)."""
    source: Source
    offset: int
    bytes: int
    is_gap: bool
    name: str
    fields: str
    meaning: str


def _texts(value) -> list[str]:
    if value is None:
        return []
    return [str(v) for v in value] if isinstance(value, (list, tuple)) else [str(value)]


class Batch:
    """Consecutive elements of one stream.

    ranges: an array with the fields edge, offset, cycles, times: executions of blocks, in order.
    blocks: an array with start, target, bytes, instructions, section, isa, end, last_bytes, flags; `edge // 2` is an index
        into it, and `edge % 2` is 1 if the branch at the end of the block was taken.
    events: an array of everything that is not a range; `event_list` gives it as objects.

    These arrays are not copied, cannot be written to, and stay valid as long as they are used. The other properties are
    made from them each time they are asked for.
    """

    def __init__(self, part, sources, names):
        self._part = part
        self._names = names
        self.source: Source = sources[part.source]
        self.buffer: str = part.buffer

    @_functools.cached_property
    def ranges(self) -> _np.ndarray:
        """Executions of blocks, in order."""
        return self._part.ranges

    @_functools.cached_property
    def blocks(self) -> _np.ndarray:
        """The blocks of the stream so far."""
        return self._part.blocks

    @_functools.cached_property
    def events(self) -> _np.ndarray:
        """Everything that is not a range."""
        return self._part.events

    def __len__(self) -> int:
        return len(self.ranges)

    def __repr__(self) -> str:
        return f"<{len(self.ranges)} ranges and {len(self.events)} events of {self.source.name}>"

    @property
    def start(self) -> _np.ndarray:
        """Address of the first instruction of each range."""
        return self._part.start()

    @property
    def end(self) -> _np.ndarray:
        """The address after each range."""
        return self._part.end()

    @property
    def instructions(self) -> _np.ndarray:
        """Number of instructions of each range, each time it ran."""
        return self._part.instructions()

    @property
    def taken(self) -> _np.ndarray:
        """Whether the last instruction of each range branched."""
        return (self.ranges["edge"] & 1) != 0

    @property
    def cycles(self) -> _np.ndarray:
        """The cycle count that came with each range, or NO_CYCLES."""
        return self.ranges["cycles"]

    @property
    def offset(self) -> _np.ndarray:
        """Where the packet of each range begins in the source's stream."""
        return self.ranges["offset"] + _np.uint64(self._part.base)

    @property
    def event_list(self) -> list[Event]:
        """The events as objects."""
        names = self._names()
        return [Event(EVENTS[e["kind"]] if e["kind"] < len(EVENTS) else str(e["kind"]), int(e["before"]), int(e["offset"]),
                      int(e["address"]), int(e["other"]), int(e["value"]),
                      None if e["cycles"] == NO_CYCLES else int(e["cycles"]), int(e["detail"]), int(e["flags"]),
                      names[e["name"]]) for e in self.events]

    def to_pandas(self):
        """A DataFrame of the ranges: start, end, isa, instructions, taken, cycles."""
        import pandas
        return pandas.DataFrame({"start": self.start, "end": self.end,
                                 "isa": _np.array(ISA, dtype=object)[self._part.isa()],
                                 "instructions": self.instructions, "taken": self.taken,
                                 "cycles": masked(pandas, self.cycles, self.cycles != NO_CYCLES)})


class _Decoded:
    """What all decoders say when, and after, they decode."""

    def __init__(self, decoder):
        self._decoder = decoder

    @property
    def totals(self) -> dict[str, int]:
        """Sums over everything delivered so far: ranges, instructions, cycles, gaps and so on."""
        return self._decoder.totals

    @property
    def damage(self) -> list[str]:
        """Lost or contradictory trace, as sentences; complete when everything is decoded."""
        return self._decoder.damage


class Flow(_Decoded):
    """Program flow, decoded while it is iterated, once: batches of ranges and events."""

    def __init__(self, decoder, sources):
        super().__init__(decoder)
        self._sources = sources

    def __iter__(self) -> _t.Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        part = self._decoder.next()
        if part is None:
            raise StopIteration
        return Batch(part, self._sources, lambda: self._decoder.event_names)

    def ranges(self) -> _t.Iterator[_np.ndarray]:
        """The ranges alone, an array for each batch."""
        for part in iter(self._decoder.next, None):
            ranges = part.ranges
            if len(ranges):
                yield ranges


class Live(_Decoded):
    """Trace that is decoded while it comes."""

    def __init__(self, decoder, sources):
        super().__init__(decoder)
        self._sources = sources

    def _batches(self) -> list[Batch]:
        return [Batch(part, self._sources, lambda: self._decoder.event_names) for part in iter(self._decoder.pop, None)]

    def feed(self, data) -> list[Batch]:
        """Takes the next bytes, in chunks of any size, and returns what they show."""
        self._decoder.feed(data)
        return self._batches()

    def finish(self) -> list[Batch]:
        """The stream ends here: returns the rest."""
        self._decoder.finish()
        return self._batches()


class Counts(_t.NamedTuple):
    """How often each block of a stream ran: times[i, 0] of blocks[i] not taken, times[i, 1] taken."""
    source: Source
    buffer: str
    blocks: _np.ndarray
    times: _np.ndarray


class Capture:
    """A capture; made by `open`, `open_memory`, `open_live`. A context manager, which closes it."""

    def __init__(self, handle, name: str):
        self._handle = handle
        self.name = name
        self.sources: list[Source] = [Source(*s) for s in handle.sources]

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_exception) -> None:
        self.close()

    def close(self) -> None:
        """No method can be called any more; running decoders finish their work."""
        self._handle.close()

    @property
    def kind(self) -> str:
        """`flow`, `samples`, `counters` or `answers`: which of the methods below it has something for."""
        return self._handle.kind

    @property
    def problems(self) -> list[str]:
        """Mistakes in its description, and warnings about it."""
        return self._handle.problems

    def flow(self, source=None, jobs: int = 1, batch: int = 1 << 16) -> Flow:
        """Decodes program flow. source: a trace ID or name, or a list of them; None: all. jobs: threads that decode, 0 for
        one of each processor. batch: ranges in an array, at most."""
        return Flow(_waymark.FlowDecoder(self._handle, _texts(source), jobs, batch), self.sources)

    def live(self, source=None) -> Live:
        """A decoder of a capture of `open_live`."""
        return Live(_waymark.FlowDecoder(self._handle, _texts(source), 1, 1 << 12), self.sources)

    def counts(self, source=None, jobs: int = 1) -> list[Counts]:
        """How often each block of each stream ran; quicker than ranges."""
        return [Counts(self.sources[index], buffer, blocks, times) for index, buffer, blocks, times in
                _waymark.CountDecoder(self._handle, _texts(source), jobs).run()]

    def packets(self, source=None) -> _t.Iterator[Packet]:
        """The packets of sources, in order."""
        decoder = _waymark.PacketDecoder(self._handle, _texts(source))
        for batch in iter(decoder.next, None):
            for index, *rest in batch:
                yield Packet(self.sources[index], *rest)

    def samples(self) -> Samples:
        """All samples of a capture of samples, as columns in memory."""
        decoder = _waymark.SampleDecoder(self._handle)
        return Samples(decoder.run(), decoder.totals, decoder.damage)

    def answers(self, calls: bool = True, instructions: bool = True, timeline: bool = False, inlined: bool = False,
                all_functions: bool = False, ranges: bool = False, disassembly: bool = False, sources: bool = False,
                jobs: int = 0) -> Answers:
        """Decodes the capture and gathers its answers. Parts that are not requested cost no time, and their tables are empty.

        Damage, and a file that was cut, are in the tables `health` and `capture`."""
        wanted = {"calls": calls, "instructions": instructions, "timeline": timeline, "inlined": inlined,
                  "all_functions": all_functions, "ranges": ranges, "disassembly": disassembly, "sources": sources}
        parts = sum(_waymark.answer_parts[name] for name, is_wanted in wanted.items() if is_wanted)
        return Answers(_waymark.Answers(self._handle, parts, jobs))

    def _source_number(self, source) -> int:
        if source is None:
            return 0
        for i, s in enumerate(self.sources):
            if source in (s, s.name, s.trace_id):
                return i
        raise NotFoundError(f"{self.name} has no source {source!r}; it has {', '.join(s.name for s in self.sources)}", 2)

    def symbol(self, address: int, source=None) -> Symbol | None:
        """The symbol that an address lies in; None: none is known there. source: whose memory it is; None: the first."""
        found = self._handle.symbol_at(self._source_number(source), address)
        return None if found is None else Symbol(*found)

    def address(self, name: str, source=None) -> int:
        """The address of a symbol. NotFoundError: no symbol has that name, or several have it."""
        return self._handle.symbol_address(self._source_number(source), name)

    def __repr__(self) -> str:
        return f"<capture {self.name}>"


def open(path, **options) -> Capture:
    """Opens everything that `waymark info` opens: a snapshot folder, perf.data, a folder of a DPU, an answers file, or a bare trace
    file with the options that describe it."""
    return Capture(_waymark.Capture.open(_os.fsencode(path), options), _os.fspath(path))


def open_memory(data, name: str = "memory", **options) -> Capture:
    """The same of a file that is in memory. name: for messages."""
    return Capture(_waymark.Capture.memory(data, name, options), name)


def open_live(**options) -> Capture:
    """A capture whose bytes are fed later, see Capture.live. `protocol` is needed; in frames, `trace_id` of each source."""
    return Capture(_waymark.Capture.live(options), "live")


class Model:
    """A trace unit: executed instructions become the bytes that it sends.

    unit: `ptm`, `etmv4` or `ete`. Settings have the names that wm_model_new in waymark.h gives them: core, cycle_accurate, timestamps,
    return_stack, branch_broadcast, context_id_bytes, sync_bytes, fifo_bytes and so on.
    """

    def __init__(self, unit: str, **settings):
        texts = []
        for name, value in settings.items():
            texts += [f"{name}={int(v) if isinstance(v, bool) else v}"
                      for v in (value if isinstance(value, (list, tuple)) else [value])]
        self._handle = _waymark.Model(unit, texts)

    def execute(self, address, opcode, isa="A64", cycle=0, failed=False) -> None:
        """Executes instructions: arrays, or single numbers. isa: a name of ISA or its number. failed: its condition failed,
        which only a branch to the next instruction needs."""
        address, opcode, cycle, failed = _np.broadcast_arrays(address, opcode, cycle, failed)
        isa = _np.array([ISA.index(i) if isinstance(i, str) else _number("isa", i, 32, len(ISA) - 1)
                         for i in _np.atleast_1d(isa).tolist()])
        address = _whole("address", address, 64)
        executed = _np.zeros(len(address), dtype=_waymark.executed_dtype)
        executed["address"] = address
        executed["opcode"] = _whole("opcode", opcode, 32)
        executed["isa"] = isa
        executed["cycle"] = _whole("cycle", cycle, 64)
        executed["flags"] = failed
        self._handle.execute(executed)

    def exception(self, kind: str, preferred_return: int, handler: int | None = None, isa="A64", cycle: int = 0) -> None:
        """An exception is taken (waymark.EXCEPTIONS). handler: where execution goes on; None: nobody sees it, and the next
        instruction is where execution is seen again."""
        self._handle.exception(kind, _number("preferred_return", preferred_return, 64),
                               None if handler is None else _number("handler", handler, 64),
                               ISA.index(isa) if isinstance(isa, str) else _number("isa", isa, 32, len(ISA) - 1),
                               _number("cycle", cycle, 64))

    def state(self, non_secure: bool = True, hyp: bool = False, nse: bool = False, level: int | None = None,
              context_id: int | None = None) -> None:
        """The state of the core from the next instruction on. level: the exception level in AArch64; None: AArch32."""
        self._handle.state(non_secure, hyp, nse, None if level is None else _number("level", level, 8, 3),
                           None if context_id is None else _number("context_id", context_id, 32))

    def signal(self, **signals: bool) -> None:
        """Sets signals from outside the unit for all further instructions: NIDEN, DBGEN, SPNIDEN, SPIDEN (debug
        authentication), power, os_lock. model.signal(NIDEN=False) forbids all trace; wm_model_signal in waymark.h has more.
        A value is True or False, 1 or 0. If one of several is refused, none changes."""
        self._handle.signal([(name, bool(_number(name, value, 1))) for name, value in signals.items()])

    def take(self) -> bytes:
        """The trace that was made since the last call."""
        return self._handle.take()

    def finish(self) -> bytes:
        """The program ended: the rest of the trace."""
        self._handle.finish()
        return self._handle.take()

    def open(self, **options) -> Capture:
        """A live capture of the trace that this unit sends; options give the code."""
        return Capture(self._handle.open(options), "model")


def _number(name, value, bits, most=None):
    """A whole number from 0 to `most`, by default 2 ** bits - 1. Errors: ValueError, TypeError: with the name and the value."""
    most = (1 << bits) - 1 if most is None else most
    try:
        number = _operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: a whole number is expected, not {value!r}") from None
    if not 0 <= number <= most:
        raise ValueError(f"{name} {number}: there is room for 0 to {most if most < 10 else hex(most)}")
    return number


def _whole(name, values, bits):
    """An array of one dimension with numbers from 0 to 2 ** bits - 1."""
    # A list may become an array of float64, which does not hold all numbers of 64 bits.
    column = _np.atleast_1d(values if isinstance(values, _np.ndarray) else _np.array(values, dtype=object))
    if column.ndim != 1:
        raise ValueError(f"{name}: one number, or an array of one dimension, not of {column.ndim}")
    if column.dtype.kind in "biu":
        ends = [int(column.min()), int(column.max())] if len(column) else []
    else:
        try:
            ends = numbers = [_operator.index(number) for number in column.tolist()]
        except TypeError:
            raise TypeError(f"{name}: whole numbers are expected") from None
    for number in ends:
        if not 0 <= number < 1 << bits:
            raise ValueError(f"{name} {number:#x}: there is room for 0 to {(1 << bits) - 1:#x}")
    return (column if column.dtype.kind in "biu" else _np.array(numbers, dtype=_np.uint64)).astype(_np.uint64)


def _kind(kind):
    if isinstance(kind, str):
        if kind not in _waymark.operation_kinds:
            raise ValueError(f"there is no kind '{kind}' of operation; known are {', '.join(_waymark.operation_kinds)}")
        return _waymark.operation_kinds[kind]
    if kind not in _waymark.operation_kinds.values():
        raise ValueError(f"there is no kind {kind} of operation; there are 0 to {max(_waymark.operation_kinds.values())}")
    return kind


def _operations(pc=None, kind="other", cycle=0, address=0, physical=None, events=0, total_latency=1, issue_latency=0,
                translation_latency=0, data_source=None, **flags):
    if pc is None:
        raise TypeError("an operation needs pc, its address")
    known = {name: bit for name, bit in _waymark.operation_flags.items() if name not in ("physical", "data_source")}
    for name in flags:
        if name not in known:
            raise TypeError(f"an operation has no '{name}'; known are {', '.join(known)}")
    bits = _np.zeros(1, dtype=_np.uint8)
    for name, value in flags.items():
        bits = bits | _np.uint8(known[name]) * _np.atleast_1d(value).astype(bool)
    for name, value in ("physical", physical), ("data_source", data_source):
        if value is not None:
            bits = bits | _np.uint8(_waymark.operation_flags[name])
    columns = {"pc": pc, "cycle": cycle, "address": address, "physical": 0 if physical is None else physical,
               "events": events, "total_latency": total_latency, "issue_latency": issue_latency,
               "translation_latency": translation_latency, "data_source": 0 if data_source is None else data_source,
               "kind": [_kind(k) for k in (kind if isinstance(kind, (list, tuple)) else _np.atleast_1d(kind).tolist())], "flags": bits}
    dtype = _waymark.operation_dtype
    arrays = _np.broadcast_arrays(*[_whole(name, column, 8 * dtype[name].itemsize) for name, column in columns.items()])
    out = _np.zeros(len(arrays[0]), dtype=dtype)
    for name, column in zip(columns, arrays):
        out[name] = column
    return out


class Unit:
    """A unit that is programmed by registers: a trace buffer (`etb`, `tmc-etb`, `tmc-etf`, `tmc-etr`), what is before it
    (`tpiu`, `funnel`, `replicator`, `cti`), a profiling unit (`spe`), or the Debug and Profiling Unit of a DSP (`dpu`). Settings, registers, signals and lines are the same as of wm_unit_new,
    wm_unit_write, wm_unit_signal and wm_unit_line in waymark.h.
    """

    def __init__(self, kind: str, **settings):
        self._handle = _waymark.Unit(kind, [f"{name}={int(v) if isinstance(v, bool) else v}" for name, v in settings.items()])

    def __setitem__(self, register: str, value: int) -> None:
        """Writes a register or a field: unit["FFCR"] = 3, unit["PMSCR_EL1.E0SPE"] = 1."""
        self._handle.write(register, _number(register, value, 64))

    def __getitem__(self, register: str) -> int:
        """Reads a register or a field, with its side effects."""
        return self._handle.read(register)

    def signal(self, name: str, value: int = 1) -> None:
        """Something happens to the unit: `trigger` and `flush` of a buffer, `exception_level` of spe, `PID` of a dpu."""
        self._handle.signal(name, _number(name, value, 64))

    def line(self, name: str) -> bool:
        """The state of an output of the unit: `stopped` of a buffer, `PMBIRQ` of spe, `interrupt0` of a dpu."""
        return self._handle.line(name)

    def memory(self) -> bytes:
        """The memory to which the unit wrote."""
        return self._handle.memory()

    def take(self) -> bytes:
        """What left the unit since the last call: frames of a FIFO, bytes of a trace port, trace IDs and bytes by turns of a
        funnel or replicator, Nexus messages of a dpu."""
        return self._handle.take()

    def send(self, trace_id: int, data: bytes) -> None:
        """Buffers, trace ports, funnels, replicators: bytes of a source."""
        self._handle.send(_number("trace_id", trace_id, 8), bytes(data))

    def retire(self, pc, kind="other", **columns) -> None:
        """spe: operations, as arrays or single values. kind: `other`, `load`, `store` or `branch`. columns: cycle, address,
        physical, events, total_latency, issue_latency, translation_latency, data_source, and conditional, indirect, atomic,
        simd_fp, not_taken, not_retired, which are true or false."""
        self._handle.retire(_operations(pc, kind, **columns))

    def decide(self, function: str, **operation) -> tuple[str, str]:
        """spe: the answer of a function of the architecture, and why. CollectRecord takes one operation, as retire does."""
        one = _operations(**operation) if operation else None
        if one is not None and len(one) != 1:
            raise ValueError(f"{function}: one operation is expected, not {len(one)}")
        return self._handle.decide(function, one)

    def run(self, cycles: int = 1, events: dict[str, int] | None = None, item: str | None = None, source: int = 0,
            destination: int = 0, count: int = 0, extension: int = 0, channel: int = 0, supervisor: bool = False,
            pid: int = 0, did: int = 0) -> None:
        """dpu: cycles pass with these events; or one cycle passes with an item of the EOnCE, after which the given privilege and
        IDs apply."""
        numbers = [_number(name, value, bits) for name, value, bits in (
            ("source", source, 32), ("destination", destination, 32), ("count", count, 32), ("extension", extension, 32),
            ("channel", channel, 8))]
        self._handle.run(_number("cycles", cycles, 64), [(name, _number(name, n, 64)) for name, n in (events or {}).items()],
                         item, *numbers, supervisor, _number("pid", pid, 8), _number("did", did, 8))
