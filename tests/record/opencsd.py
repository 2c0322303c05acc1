"""OpenCSD's results for a recording, for tests: `trc_pkt_lister` of the Debian package libopencsd-bin."""
import configparser
import pathlib
import re
import shutil
import subprocess

import truth_file

LISTER = shutil.which("trc_pkt_lister")
MISSING = "NOT COMPARED with OpenCSD: trc_pkt_lister is not on PATH; it is in the Debian package libopencsd-bin"
RANGE = re.compile(r"ID:([0-9a-f]+); OCSD_GEN_TRC_ELEM_INSTR_RANGE\(exec range=0x([0-9a-f]+):\[0x([0-9a-f]+)\] "
                   r"num_i\((\d+)\)")


def read_ini(path):
    parser = configparser.ConfigParser(delimiters=("=",), comment_prefixes=("#", ";"), interpolation=None, strict=False)
    parser.optionxform = str
    parser.read(path)
    return parser


def trace_ids(folder):
    """{name of the source: trace ID}."""
    found = {}
    for path in pathlib.Path(folder).glob("source_*.ini"):
        ini = read_ini(path)
        values = [value for name, value in ini["regs"].items() if name.split("(")[0] in ("TRCTRACEIDR", "ETMTRACEIDR")]
        found[ini["device"]["name"]] = int(values[0], 0)
    return found


def buffers(folder):
    """{name of the buffer: names of its sources}."""
    ini, found = read_ini(pathlib.Path(folder) / "trace.ini"), {}
    for source, buffer in ini["source_buffers"].items():
        found.setdefault(buffer, []).append(source)
    return found


def differences(folder):
    """Compares every range that OpenCSD decodes, for every source, with a recording made with --truth. Returns a text
    for each source that differs."""
    wrong, expected, ids = [], dict(truth_file.sources(folder)), trace_ids(folder)
    for buffer, sources in buffers(folder).items():
        names = {ids[source]: source for source in sources}
        left = {source: iter([r[:3] for r in expected[source] if r[2] != 0]) for source in sources}
        count, different = dict.fromkeys(sources, 0), {}
        with subprocess.Popen([LISTER, "-ss_dir", str(folder), "-src_name", buffer, "-decode_only", "-logstdout"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as lister:
            for line in lister.stdout:
                found = RANGE.search(line)
                if not found:
                    continue
                source = names[int(found[1], 16)]
                if source in different:
                    continue
                mine, theirs = next(left[source], None), (int(found[2], 16), int(found[3], 16), int(found[4]))
                if mine != theirs:
                    different[source] = f"{source}, range {count[source]}: executed {mine}, OpenCSD {theirs}"
                count[source] += 1
        for source in sources:
            if source not in different and (rest := sum(1 for _ in left[source])):
                different[source] = f"{source}: OpenCSD lacks the last {rest} of {rest + count[source]} ranges"
        wrong += different.values()
    return wrong
