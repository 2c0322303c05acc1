#!/usr/bin/env python3
"""Checks that what only one protocol has is named in its own folder, and in the registry's list of rows, alone.

    protocols_test.py ROOT         check the tree at ROOT
    protocols_test.py --self-test  check that the check finds violations planted in a small tree

Reported as violations, in the code (not in comments) of src/ and include/:
  - a protocol's namespace, header or word of WORDS in a file outside its folder, src/pipeline/protocols.cc, and EXEMPT
  - an include of a protocol's header in a layer or folder that knows no protocol (BLIND), but for EXEMPT
  - an entry of EXEMPT that is no longer needed: the list only shrinks
"""
import pathlib
import re
import sys

import house

REGISTRY = "src/pipeline/protocols.cc"
SUFFIXES = {".h", ".cc", ".inc", ".def"}

# Names that only one protocol has, beside its namespace and headers: the name of its unit, its registers, its title.
WORDS = {
    "pft": r"|\bPTM|\bPFT|\bETMCR\b|\bETMCCER\b|\bETMIDR\b|\bETMTRACEIDR\b|\bETMSYNCFR\b|Program Flow Trace|"
           r"Program Trace Macrocell",
    "mtb": r"|\bMTB_(?:POSITION|MASTER|FLOW|BASE)\b|Micro Trace Buffer",
    "itm": r"|\bITMTCR\b|\bItmtcr\b|Instrumentation Trace Macrocell",
    "stm": r"|\bSTMTCSR\b|\bStmtcsr\b|\bSTMHEMASTR\b|System Trace Macrocell",
}
# To do: these names stand in many places.
NAMED_ELSEWHERE = {"spe", "dpu"}
# Layers that include no header of a protocol; in the command line, folders of commands for one unit may include the
# unit's headers.
BLIND = re.compile(r"(src|include/waymark)/(answers|exports|report|command_line|cli(?!/dpu/|/spe/)|record|flow|follow|isa|image|"
                   r"capture|coresight|protocol)/")

# (file or folder, why). Reasons that begin with "To do" are left to do.
EXEMPT = {
    # To do: `record` gets its units from the registry (Protocol::units), and then names no protocol.
    "src/cli/record.cc": "options of the units that are recorded",
    "src/cli/unit_program.cc": "options of the units that are programmed",
    # These stay.
    "include/waymark/etm3/": "Program Flow Trace took over registers, timestamps and A-syncs of ETMv3",
    "src/etm3/": "Program Flow Trace took over registers, timestamps and A-syncs of ETMv3",
    "src/record_m/": "the units of a Cortex-M are recorded beside its core: their models take more than waypoints",
    "src/exports/capture_tables.cc": "the description of a column gives units as examples",
    "src/capture/perf_cs_etm.cc": "it reads the registers that perf's AUXTRACE_INFO lists",
    "src/capture/perf_cs_info.cc": "it reads the registers that perf's AUXTRACE_INFO lists",
    "src/capture/snapshot_device.cc": "an error message gives a source type as an example",
    "src/capture/perf_cs_etm_writer.cc": "perf's AUXTRACE_INFO is a list of registers, of several protocols",
}


def without_comments(text):
    """C++ without comments; strings stay, and so does the number of lines."""
    token = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.S)

    def keep(match):
        piece = match.group(0)
        return piece if piece[0] in "\"'" else "\n" * piece.count("\n")

    return token.sub(keep, text)


def exemption_of(name, exempt):
    for entry in exempt:
        if name == entry or (entry.endswith("/") and name.startswith(entry)):
            return entry
    return None


def check(root, exempt):
    """(files checked, violations)"""
    wrong, needed, count = [], set(), 0
    # The layers that implement Protocol; `protocol` itself declares it.
    protocols = {path.parent.name for path in root.glob("src/*/protocol.cc")} - {"protocol"}
    if not protocols:
        return 0, ["src/*/protocol.cc: there is no protocol"]
    include = re.compile(r'#\s*include\s*"waymark/(' + "|".join(sorted(protocols)) + ")/")
    all_terms = {protocol: re.compile(rf'\b{protocol}::|"waymark/{protocol}/' + WORDS.get(protocol, ""))
                 for protocol in sorted(protocols - NAMED_ELSEWHERE)}
    for side in ("include/waymark", "src"):
        for path in sorted((root / side).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            count += 1
            name = path.relative_to(root).as_posix()
            own = path.relative_to(root / side).parts[0]
            found = []
            for number, line in enumerate(without_comments(path.read_text(encoding="utf-8")).splitlines(), 1):
                for protocol, terms in all_terms.items():
                    match = terms.search(line)
                    if match and own != protocol and name != REGISTRY:
                        found.append(f"{name}:{number}: names '{match.group(0)}', which is of {protocol} alone: ask "
                                     "the source's protocol (protocol/protocol.h)")
                match = include.search(line)
                if match and BLIND.match(name):
                    found.append(f"{name}:{number}: includes a header of {match.group(1)}, and {own} knows no protocol")
            if not found:
                continue
            entry = exemption_of(name, exempt)
            if entry is None:
                wrong += found
            else:
                needed.add(entry)
    for entry in exempt:
        if entry not in needed:
            wrong.append(f"EXEMPT in {pathlib.Path(__file__).name}: '{entry}' is not needed any more; remove it")
    return count, wrong


def self_test():
    clean = {
        "src/pft/a.cc": '#include "waymark/pft/config.h"\nauto x = pft::row(); // ETMCR\n',
        "src/pipeline/protocols.cc": '#include "waymark/pft/protocol.h"\nauto& row = pft::row();\n',
        "src/doctor/b.cc": "// as `ETMCR` of a PTM has it\n/* pft::Config\n PTM */ int b;\n",
        "include/waymark/doctor/b.h": "/// `PTM1.1`\nint b();\n",
        "src/cli/old.cc": '#include "waymark/spe/decoder.h"\n',
        "src/cli/spe/own.cc": '#include "waymark/spe/decoder.h"\n',
        "src/protocol/protocol.cc": "",
        **{f"src/{protocol}/protocol.cc": "" for protocol in ("pft", "etm4", "spe", "dpu", "toy")},
    }
    exempt = {"src/cli/old.cc": "as an example"}
    # (file, line added to it, part of the one message expected)
    planted = [
        ("src/doctor/b.cc", "auto c = pft::Config();", "names 'pft::'"),
        ("src/doctor/b.cc", 'say("ETMCR is wrong");', "names 'ETMCR'"),
        ("src/doctor/b.cc", 'say("// no comment, but PTM1.1");', "names 'PTM'"),
        ("include/waymark/pipeline/c.h", '#include "waymark/pft/config.h"', "names '\"waymark/pft/'"),
        ("src/analysis/d.cc", 'say("Program Flow Trace");', "names 'Program Flow Trace'"),
        ("src/analysis/d.cc", "etm4::Config c;", "which is of etm4 alone"),
        ("src/doctor/b.cc", "auto c = toy::row();", "which is of toy alone"),
        ("src/etm4/e.cc", "pft::Config c;", "which is of pft alone"),
        ("src/answers/f.cc", '#include "waymark/spe/record.h"', "answers knows no protocol"),
        ("src/cli/g.cc", '#include "waymark/dpu/config.h"', "cli knows no protocol"),
        ("src/cli/spe/own.cc", "auto c = pft::Config();", "names 'pft::'"),
        ("src/record/h.cc", ' # include "waymark/dpu/config.h"', "record knows no protocol"),
    ]
    def files(extra):
        out = dict(clean)
        if extra:
            out[extra[0]] = out.get(extra[0], "") + extra[1] + "\n"
        return out

    cases = [(None, exempt, None), (None, {**exempt, "src/doctor/": "gone"}, "not needed any more")]
    cases += [((name, line), exempt, message) for name, line, message in planted]
    return house.run_cases((files(extra), lambda root, exempt=exempt: check(root, exempt)[1], message)
                           for extra, exempt, message in cases)


if __name__ == "__main__":
    sys.exit(house.main(__doc__, lambda root: check(root, EXEMPT), self_test))
