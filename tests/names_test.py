#!/usr/bin/env python3
"""Checks that each name of a type has one meaning: no two namespaces have types of one name, unless they mean the same.

    names_test.py ROOT         check the tree at ROOT
    names_test.py --self-test  check that the check finds what is planted in a small tree

Looked at are the types of all headers (include/, src/**/*.h) that are members of namespaces. Types within classes and
those of single source files have the name of what they are in. SHARED lists the names that several layers have, and the
one meaning of each.
"""
import collections
import pathlib
import re
import sys

import house

SHARED = {
    # The parts of every protocol, docs/architecture.md: "The shape of a protocol".
    **dict.fromkeys("""
        Config Decoder ElementKind Element Explainer Machine Model ModelBlocks ModelChoices ModelConfig ModelCounts
        ModelOutput ModelPackets ModelRegisters ModelSession ModelStream Packet Packets ParallelDecoder Parser FastParser
        ParserRules PathPackets ReferenceDecoder RegisterPlace Registers Retired ExceptionTaken NumberRegister
        TimestampField TimestampState TimestampValue Field Likeness Meaning Recognised Totals Batch""".split(),
        "the part of that name that every protocol has"),
    # Packets and elements that the specifications of several units name alike, and the elements for them in the flow.
    **dict.fromkeys("""
        ASync Address Atom Atoms Branch BranchAddress Context ContextId CycleCount ISync ISyncReason Vmid End Event Exception ExceptionReturn FunctionReturn
        Ignore Index Mark Outcomes Overflow Q Reached Security Source Sync Timestamp TraceInfo TraceOn Trigger Untraced
        Watchpoint""".split(), "as the specifications name it"),
    "Arrival": "where execution goes on",
    "Block": "instructions that run one after the other",
    "Capture": "what was recorded, as the library and as the Python module have it",
    "Executed": "what the core executed, as a model is given it",
    "Chunk": "bytes of a ring that follow one another",
    "Code": "program bytes of a place",
    "Column": "of a table",
    "Cell": "of a table",
    "DpuFilter": "IDFLT and what it compares with, as a capture describes it and as analyses use it",
    "DpuPeriod": "from one enable of a DPU to the next, as a capture describes it and as it is decoded",
    "ExplainOptions": "what the explanation of a unit is asked for",
    "Elements": "what decoders make of packets; pft's are follow's and more",
    "FlowAnswersOptions": "what is asked of the answers of program flow",
    "InlinedCall": "a call whose callee the compiler put in its place",
    "HeaderPackets": "packets that are told apart by their header",
    "Instruction": "of a program",
    "Loss": "trace that is missing",
    "Message": "one thing that a unit tells",
    "MessageDecoder": "packets of a unit to messages",
    "Nothing": "no value",
    "Options": "what is asked for",
    "Program": "the program that was traced",
    "Progress": "how far reading has come",
    "Record": "one event, as its bytes say it",
    "Reader": "takes bytes and makes of them what its layer delivers",
    "Writer": "the inverse",
    "SourceState": "what packets of a unit depend on",
    "Stretch": "bytes that follow one another",
}
TYPE = re.compile(r"^(?:template\s*<.*>\s*)?(?:class|struct|enum class|enum|union)\s+(?:\[\[\w+\]\]\s*)?(\w+)"
                  r"(?:\s+final)?(?:\s*:\s*[^:].*)?$", re.S)
ALIAS = re.compile(r"^(?:template\s*<.*>\s*)?using\s+(\w+)\s*=\s*(.*)$", re.S)
NAMESPACE = re.compile(r"^(?:inline\s+)?namespace(?:\s+([\w:]+))?$")
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^\s*#(?:[^\n]*\\\n)*[^\n]*',
                   re.S | re.M)


def types(text):
    """(namespace, name) of each type that a header defines in a namespace."""
    text = NOISE.sub(lambda m: "" if m[0].startswith(("//", "/*")) or "#" in m[0] else "0", text)
    stack, head = [], ""
    for part in re.split(r"([{};])", text):
        if part not in ("{", "}", ";"):
            head += part
            continue
        head, statement = "", head.strip()
        outside = all(name is not None for name in stack)
        if part == "{":
            namespace = NAMESPACE.match(statement)
            found = TYPE.match(statement)
            if found and outside:
                yield "::".join(stack), found[1]
            stack.append(namespace[1] or "" if namespace else None)
        elif part == "}":
            if stack:
                stack.pop()
        elif outside and (alias := ALIAS.match(statement)):
            # An alias of the same name is the same type.
            if re.sub(r"<.*", "", alias[2], flags=re.S).split("::")[-1].strip() != alias[1]:
                yield "::".join(stack), alias[1]


def check(root, shared=None):
    """(headers checked, violations)"""
    shared = SHARED if shared is None else shared
    headers = sorted([*(root / "include").rglob("*.h"), *(root / "src").rglob("*.h")])
    known = collections.defaultdict(dict)
    for header in headers:
        for namespace, name in types(header.read_text(encoding="utf-8")):
            known[name].setdefault(namespace, header.relative_to(root))
    several = {name: places for name, places in known.items() if len(places) > 1}
    wrong = [f"{name}: " + ", ".join(f"{namespace} ({file})" for namespace, file in places.items())
             + ": rename all but one, or list the one meaning in tests/names_test.py"
             for name, places in sorted(several.items()) if name not in shared]
    wrong += [f"{name}: is listed in tests/names_test.py, and no two namespaces have it"
              for name in shared if name not in several]
    return len(headers), wrong


def self_test():
    clean = {
        "include/waymark/a/a.h": "namespace waymark::a {\nstruct Config {\n    struct Row {};\n};\nusing Word = int;\n}\n",
        "include/waymark/b/b.h": "namespace waymark::b {\nclass Config final : public Base {};\n"
                                 "inline int f() { struct Row {}; return '{'; }\nusing Word = a::Word;  // class Loose {\n}\n",
        "src/b/c.cc": "namespace waymark::b {\nstruct Row {};\nstruct Loose {};\n}\n",
    }
    shared = {"Config": "of a unit"}
    # (file, text added to it, part of the message expected)
    planted = [
        ("src/b/own.h", "namespace waymark::b {\nenum class Base : int { one };\n}\nnamespace waymark::a {\nstruct Base;\n"
                        "struct Base {};\n}\n", "Base: waymark::b"),
        ("src/b/own.h", "namespace waymark::a {\nnamespace d {\ntemplate <class T>\nstruct Word {};\n}\n}\n", "Word:"),
        ("include/waymark/b/d.h", "namespace waymark::b {\nnamespace c {\nusing Config = int;\n}\nusing Far = long;\n}\n"
                                  "namespace waymark {\nusing Far = int;\n}\n", "Far: waymark::b"),
    ]
    cases = [({}, shared, None), ({}, {**shared, "Gone": ""}, "Gone: is listed"), ({}, {}, "Config: waymark::a")]
    cases += [({name: text}, shared, message) for name, text, message in planted]
    return house.run_cases((({**clean, **extra}, lambda root, listed=listed: check(root, listed)[1], message)
                            for extra, listed, message in cases))


if __name__ == "__main__":
    sys.exit(house.main(__doc__, check, self_test))
