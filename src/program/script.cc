#include "script.h"

#include <array>
#include <utility>

namespace waymark::program {

namespace {

using flow::RegisterStep;

constexpr std::array<LanguageName, 8> all_languages{{{Language::sysfs, "sysfs"},
                                                     {Language::perf, "perf"},
                                                     {Language::openocd, "openocd"},
                                                     {Language::csal, "csal"},
                                                     {Language::devmem, "devmem"},
                                                     {Language::t32, "t32"},
                                                     {Language::json, "json"},
                                                     {Language::c, "c"}}};

/// Number of reads of a register before a script gives up.
constexpr unsigned most_polls = 1000;

bool is_write(const RegisterStep& step) { return step.kind == RegisterStep::Kind::write; }

std::string comment_lines(const Plan& plan, const Proof& proof, std::string_view mark) {
    std::string out;
    for (const std::string& line : head_of(plan, proof)) out += fmt::format("{} {}\n", mark, line);
    return out;
}

/// The steps of a command, one on each line, as `write` and `wait` print them.
std::string body(const Plan& plan, ScriptPart command, std::string_view indent, std::string_view mark,
                 const std::function<std::string(const Component&, const RegisterStep&)>& line) {
    std::string out;
    for_each_part(plan, command, [&](const Component& component, std::span<const RegisterStep> steps) {
        if (steps.empty()) return;
        out += fmt::format("{}{} {}\n", indent, mark, component.title);
        for (const RegisterStep& step : steps) out += fmt::format("{}{}\n", indent, line(component, step));
    });
    return out;
}

std::string devmem_script(const Plan& plan, const Proof& proof) {
    std::string out = "#!/bin/sh\n" + comment_lines(plan, proof, "#");
    out +=
        "# Run it on the target as root: sh FILE start, then stop, and release after the trace was read.\nset -eu\n\n";
    for (const Component& c : plan.components)
        out += c.base ? fmt::format("{0}=${{{0}:-{1:#x}}}  # address of the {2}\n", c.variable, *c.base, c.title)
                      : fmt::format("{0}=${{{0}:?is the address of the {1}}}\n", c.variable, c.title);
    std::string variables;
    for (const Component& c : plan.components) variables += fmt::format(" \"${}\"", c.variable);
    out += fmt::format(R"sh(
# A name in place of an address would be 0 to the shell.
for base in{}; do
    case $base in
    0x[0-9a-fA-F]* | [1-9]*) ;;
    *)
        echo "$base is not an address of a component, such as 0x22040000" >&2
        exit 2
        ;;
    esac
done
address() {{ printf '0x%x' $(($1 + $2)); }}
write() {{ devmem "$(address "$1" "$2")" 32 "$3"; }}
wait_for() {{
    polls=0
    while [ $(($(devmem "$(address "$1" "$2")" 32) & $3)) -ne $(($4)) ]; do
        polls=$((polls + 1))
        if [ "$polls" -ge {} ]; then
            echo "$5 does not change: is the component powered, and its address right?" >&2
            exit 1
        fi
    done
}}

)sh",
                       variables, most_polls);
    out += "case ${1:-} in\n";
    for (const auto& [command, name] :
         {std::pair{ScriptPart::start, "start"}, {ScriptPart::stop, "stop"}, {ScriptPart::release, "release"}}) {
        out += fmt::format("{})\n    :\n", name);
        out += body(plan, command, "    ", "#", [](const Component& c, const RegisterStep& s) {
            return is_write(s) ? fmt::format("write \"${}\" {:#05x} {:#010x}  # {}: {}", c.variable, s.offset, s.value,
                                             s.name, s.why)
                               : fmt::format("wait_for \"${}\" {:#05x} {:#x} {:#x} {}  # {}", c.variable, s.offset,
                                             s.mask, s.value, s.name, s.why);
        });
        out += "    ;;\n";
    }
    return out + "*)\n    echo \"usage: sh $0 start|stop|release\" >&2\n    exit 2\n    ;;\nesac\n";
}

std::string openocd_script(const Plan& plan, const Proof& proof) {
    std::string out = comment_lines(plan, proof, "#");
    out += R"(# For OpenOCD 0.12 or later. Select a target that reaches the debug bus before, such as
#     target create trace mem_ap -dap DAP -ap-num N
#     targets trace
# then: source FILE; waymark_start; waymark_stop; waymark_release after the trace was read.
)";
    for (const Component& c : plan.components)
        out +=
            c.base
                ? fmt::format("set waymark_{} {:#x} ;# address of the {}\n", c.variable, *c.base, c.title)
                : fmt::format(
                      "if {{![info exists waymark_{0}]}} {{ error \"set waymark_{0} to the address of the {1}\" }}\n",
                      c.variable, c.title);
    out += fmt::format(R"(
proc waymark_write {{base offset value}} {{ mww [expr {{$base + $offset}}] $value }}
proc waymark_wait {{base offset mask value name}} {{
    for {{set polls 0}} {{$polls < {}}} {{incr polls}} {{
        if {{([read_memory [expr {{$base + $offset}}] 32 1] & $mask) == $value}} {{ return }}
    }}
    error "$name does not change: is the component powered, and its address right?"
}}
)",
                       most_polls);
    for (const auto& [command, name] :
         {std::pair{ScriptPart::start, "start"}, {ScriptPart::stop, "stop"}, {ScriptPart::release, "release"}}) {
        out += fmt::format("proc waymark_{} {{}} {{\n", name);
        for (const Component& c : plan.components) out += fmt::format("    global waymark_{}\n", c.variable);
        out += body(plan, command, "    ", "#", [](const Component& c, const RegisterStep& s) {
            return is_write(s) ? fmt::format("waymark_write $waymark_{} {:#05x} {:#010x} ;# {}: {}", c.variable,
                                             s.offset, s.value, s.name, s.why)
                               : fmt::format("waymark_wait $waymark_{} {:#05x} {:#x} {:#x} {} ;# {}", c.variable,
                                             s.offset, s.mask, s.value, "{" + s.name + "}", s.why);
        });
        out += "}\n";
    }
    return out;
}

/// `SINK_CTI`: the component's variable as the name of a macro.
std::string macro_of(const Component& component) {
    std::string out = component.variable;
    for (char& c : out)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return out;
}

std::string csal_script(const Plan& plan, const Proof& proof) {
    std::string out;
    for (const std::string& line : head_of(plan, proof)) out += fmt::format("// {}\n", line);
    out +=
        R"(// For the CoreSight Access Library. Call cs_init() before; each function returns 0, or -1 if a register does not change.
#include "csaccess.h"

)";
    for (const Component& c : plan.components) {
        const std::string macro = macro_of(c);
        out += c.base
                   ? fmt::format("#ifndef WAYMARK_{0}\n#define WAYMARK_{0} {1:#x}  // address of the {2}\n#endif\n",
                                 macro, *c.base, c.title)
                   : fmt::format("#ifndef WAYMARK_{0}\n#error define WAYMARK_{0} as the address of the {1}\n#endif\n",
                                 macro, c.title);
    }
    out += fmt::format(R"(
static int waymark_wait(cs_device_t device, unsigned int offset, unsigned int mask, unsigned int value) {{
    for (int polls = 0; polls < {}; ++polls)
        if ((cs_device_read(device, offset) & mask) == value) return 0;
    return -1;
}}
)",
                       most_polls);
    for (const auto& [command, name] :
         {std::pair{ScriptPart::start, "start"}, {ScriptPart::stop, "stop"}, {ScriptPart::release, "release"}}) {
        out += fmt::format("\nint waymark_{}(void) {{\n", name);
        for (const Component& c : plan.components) {
            bool used = false;
            for_each_part(plan, command, [&](const Component& one, std::span<const RegisterStep> steps) {
                used |= one.variable == c.variable && !steps.empty();
            });
            if (!used) continue;
            out += fmt::format("    cs_device_t {} = cs_device_register(WAYMARK_{});\n", c.variable, macro_of(c));
        }
        out += body(plan, command, "    ", "//", [](const Component& c, const RegisterStep& s) {
            return is_write(s) ? fmt::format("cs_device_write_only({}, {:#05x}, {:#010x});  // {}: {}", c.variable,
                                             s.offset, s.value, s.name, s.why)
                               : fmt::format("if (waymark_wait({}, {:#05x}, {:#x}, {:#x}) != 0) return -1;  // {}: {}",
                                             c.variable, s.offset, s.mask, s.value, s.name, s.why);
        });
        out += "    return 0;\n}\n";
    }
    return out;
}

std::string t32_script(const Plan& plan, const Proof& proof) {
    std::string out = comment_lines(plan, proof, ";");
    out +=
        "; For TRACE32: DO FILE.cmm start, then stop, and release after the trace was read.\nPRIVATE &command &class\n";
    for (const Component& c : plan.components) out += fmt::format("PRIVATE &{}\n", c.variable);
    out += "ENTRY &command\n&class=\"EDAP\" ; the access class of the debug bus\n";
    for (const Component& c : plan.components)
        out += c.base ? fmt::format("&{}={:#x} ; address of the {}\n", c.variable, *c.base, c.title)
                      : fmt::format("&{}=<address> ; of the {}\n", c.variable, c.title);
    for (const auto& [command, name] :
         {std::pair{ScriptPart::start, "start"}, {ScriptPart::stop, "stop"}, {ScriptPart::release, "release"}}) {
        out += fmt::format("IF \"&command\"==\"{}\"\n(\n", name);
        out += body(plan, command, "  ", ";", [](const Component& c, const RegisterStep& s) {
            const std::string at = fmt::format("&class:(&{}+{:#05x})", c.variable, s.offset);
            return is_write(s) ? fmt::format("Data.Set {} %Long {:#010x} ; {}: {}", at, s.value, s.name, s.why)
                               : fmt::format("WAIT ((Data.Long({})&{:#x})=={:#x}) 1.s ; {}: {}", at, s.mask, s.value,
                                             s.name, s.why);
        });
        out += ")\n";
    }
    return out + "ENDDO\n";
}

}  // namespace

std::span<const LanguageName> languages() { return all_languages; }

std::vector<std::string> head_of(const Plan& plan, const Proof& proof) {
    std::vector<std::string> out;
    std::string parts;
    for (const Component& c : plan.components) parts += (parts.empty() ? "" : ", ") + c.title;
    const std::string id = plan.wanted.units == nullptr ? "" : fmt::format(" Trace ID {:#04x}.", plan.wanted.trace_id);
    out.push_back(fmt::format("Programs: {}.{} Written by waymark program.", parts, id));
    for (const Component& c : plan.components)
        for (const std::string& need : c.program.needs) out.push_back("Needs: " + need + ".");
    out.push_back(
        fmt::format("Tried on the models, not on hardware: {} bytes of trace of {} {}, as with waymark record.",
                    proof.given_bytes, proof.blocks, proof.counted));
    return out;
}

void for_each_part(const Plan& plan, ScriptPart command,
                   const std::function<void(const Component&, std::span<const RegisterStep>)>& f) {
    if (command == ScriptPart::start) {
        for (const Component& c : plan.components) f(c, c.program.enable);
        return;
    }
    for (auto c = plan.components.rbegin(); c != plan.components.rend(); ++c)
        f(*c, command == ScriptPart::stop ? std::span(c->program.disable) : std::span(c->program.release));
}

Result<std::string> script(const Plan& plan, Language target, const Proof& proof, const LinuxWords& words) {
    switch (target) {
        case Language::sysfs: return sysfs_script(plan, proof, words);
        case Language::perf: return perf_script(plan, proof, words);
        case Language::openocd: return openocd_script(plan, proof);
        case Language::csal: return csal_script(plan, proof);
        case Language::devmem: return devmem_script(plan, proof);
        case Language::t32: return t32_script(plan, proof);
        case Language::json: return json_script(plan, proof);
        case Language::c:
            return Error{Errc::unsupported,
                         "--for c is for --unit spe, whose registers the core itself writes; --for csal writes C for "
                         "this unit"};
    }
    return std::string();
}

}  // namespace waymark::program
