/// `waymark dpu program`: what a register program does to a Debug and Profiling Unit, and what is wrong with it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <nlohmann/json.hpp>

#include "../commands.h"
#include "../options.h"
#include "../table.h"
#include "waymark/capture/text_file.h"
#include "waymark/dpu/events.h"
#include "waymark/dpu/register_program.h"
#include "waymark/dpu/registers.h"

namespace waymark::cli {

Run add_dpu_program(CLI::App& dpu);

namespace {

using nlohmann::ordered_json;

struct ProgramOptions {
    std::string file, format = "text", output;
    std::vector<std::string> eonce;
};

/// What the unit counts, as sentences.
std::vector<std::string> counting(const dpu::Registers& r) {
    std::vector<std::string> out;
    const auto say_set = [&](const std::string& who, unsigned ceg, unsigned mode, unsigned place, bool enabled) {
        if (ceg >= dpu::event_sets) return;
        const dpu::EventSet& set = dpu::event_set(ceg);
        std::string how = mode == 1 ? "and wraps" : "until zero, once";
        if (!enabled) how += "; but nothing enables it (TENM)";
        if (place == 3)
            out.push_back(fmt::format("{} counts {}, {}, {} ({}) {}", who, name(set[0]), name(set[1]), name(set[2]),
                                      dpu::event_set_purpose(ceg), how));
        else if (set[place] != dpu::EventWire::none)
            out.push_back(fmt::format("{} counts {} {}", who, name(set[place]), how));
    };
    const auto triad = [&](const char* who, const auto& control, const auto& a, const auto& b, const auto& c,
                           unsigned first) {
        if (control.tcen) {
            if (control.ceg != 0)
                say_set(fmt::format("triad {}", who), control.ceg, control.cmode, 3, control.tenm != 0);
            return;
        }
        say_set(fmt::format("counter {}", dpu::counter_name(first)), a.ceg, a.cmode, 0, a.tenm != 0);
        say_set(fmt::format("counter {}", dpu::counter_name(first + 1)), b.ceg, b.cmode, 1, b.tenm != 0);
        say_set(fmt::format("counter {}", dpu::counter_name(first + 2)), c.ceg, c.cmode, 2, c.tenm != 0);
    };
    triad("A", r.tac, r.ca0c, r.ca1c, r.ca2c, 0);
    triad("B", r.tbc, r.cb0c, r.cb1c, r.cb2c, 3);
    if (out.empty()) out.emplace_back("no counter has an event set");
    return out;
}

/// What it traces.
std::vector<std::string> tracing(const dpu::Registers& r) {
    std::vector<std::string> out;
    if (!r.tc.en) {
        out.emplace_back("tracing is off at the end");
        return out;
    }
    if (r.tc.tmode < dpu::trace_modes) out.push_back(fmt::format("trace mode {}", name(r.tc.mode())));
    // Bits 4 to 0 are ignored.
    const std::uint32_t first = to_value(r.tsa) & ~31U, last = to_value(r.tea) & ~31U;
    if (r.tc.vtb_mode() == dpu::VtbMode::single_address)
        out.push_back(fmt::format("every line goes to {:#010x}", to_value(r.tw)));
    else if (last >= first)
        out.push_back(fmt::format("the buffer is {:#010x} to {:#010x}, {}{}", first, last + 31,
                                  counted(std::uint64_t{last} - first + 32, "byte"),
                                  r.tc.vtb_mode() == dpu::VtbMode::trace_event_request
                                      ? fmt::format("; its readout is asked for at {:#010x}", to_value(r.ter))
                                      : "; it wraps"));
    if (r.tc.uden) out.emplace_back("writes to DP_TD make entries in every mode");
    if (r.tc.idflt) out.emplace_back("only events of the reference task make entries");
    if (r.tc.nxmode != 0) out.emplace_back("the Nexus interface is on");
    return out;
}

Result<std::string> read(const std::string& path) {
    if (std::error_code error; std::filesystem::is_directory(path, error))
        return Error{Errc::unreadable,
                     fmt::format("{} is a folder; name a file of register writes. What a capture's registers held "
                                 "'waymark info {}' shows",
                                 path, path)};
    return capture::read_text_file(path, capture::most_settings_bytes);
}

ExitStatus run_program(const ProgramOptions& options) {
    const auto text = read(options.file);
    if (!text) return fail(text.error());
    const auto program = dpu::read_program(*text);
    if (!program) return fail({program.error().code, fmt::format("{}: {}", options.file, program.error().message)});
    dpu::Registers registers;
    for (const dpu::RegisterWrite& w : *program) registers.set(w.offset, w.value);
    dpu::ModelConfig config;
    for (const dpu::RegisterWrite& w : *program) {
        const auto tc = from_value<dpu::DpTc>(w.value);
        if (w.offset != dpu::DpTc::offset || !tc.en || tc.tmode >= dpu::trace_modes) continue;
        const dpu::EonceSetup needed = dpu::EonceSetup::for_mode(tc.mode());
        config.eonce.tchof |= needed.tchof;
        config.eonce.tint |= needed.tint;
        config.eonce.tloop |= needed.tloop;
        config.eonce.tsub |= needed.tsub;
        config.eonce.trte |= needed.trte;
    }
    if (!options.eonce.empty()) {
        config.eonce = {};
        for (const std::string& each : options.eonce) {
            if (each == "TCHOF") config.eonce.tchof = true;
            if (each == "TINT") config.eonce.tint = true;
            if (each == "TEXEC") config.eonce.texec = true;
            if (each == "TMARK") config.eonce.tmark = true;
            if (each == "TLOOP") config.eonce.tloop = true;
            if (each == "TSUB") config.eonce.tsub = true;
            if (each == "TRTE") config.eonce.trte = true;
        }
    }
    const std::vector<dpu::Diagnosis> wrong = diagnose(*program, config);
    auto out = Output::open(options.output, {options.file});
    if (!out) return fail(out.error());
    if (options.format == "json") {
        ordered_json json{{"layout", dpu::layout_name}, {"layout_note", dpu::layout_note}};
        json["writes"] = ordered_json::array();
        for (const dpu::RegisterWrite& w : *program) {
            ordered_json fields = ordered_json::object();
            dpu::Registers one;
            one.set(w.offset, w.value);
            for (const dpu::Field& f : one.fields(w.offset))
                if (!f.reserved() || f.value != 0) fields[std::string(f.name)] = f.value;
            json["writes"].push_back({{"line", w.line},
                                      {"cycle", w.cycle},
                                      {"register", dpu::Registers::find(w.offset)->name},
                                      {"value", fmt::format("{:#010x}", w.value)},
                                      {"fields", fields}});
        }
        json["does"] = counting(registers);
        for (const std::string& sentence : tracing(registers)) json["does"].push_back(sentence);
        json["wrong"] = ordered_json::array();
        json["doubtful"] = ordered_json::array();
        for (const dpu::Diagnosis& d : wrong)
            json[d.doubtful ? "doubtful" : "wrong"].push_back(
                {{"line", d.line}, {"cycle", d.cycle}, {"message", d.message}});
        out->write(json_text(json) + "\n");
    } else {
        out->print("# {}\n", dpu::layout_note);
        out->write(to_text(*program));
        out->write("\nwhat it does\n");
        for (const std::string& sentence : counting(registers)) out->print("  - {}\n", sentence);
        for (const std::string& sentence : tracing(registers)) out->print("  - {}\n", sentence);
        if (wrong.empty()) out->write("\nNothing wrong was found.\n");
        for (const bool doubtful : {false, true}) {
            if (std::none_of(wrong.begin(), wrong.end(), [&](const auto& d) { return d.doubtful == doubtful; }))
                continue;
            out->write(doubtful ? "\nwhat is doubtful\n" : "\nwhat is wrong\n");
            for (const dpu::Diagnosis& d : wrong)
                if (d.doubtful == doubtful)
                    out->print("  - {}{}\n", d.line == 0 ? std::string() : fmt::format("line {}: ", d.line), d.message);
        }
    }
    if (out->close() != decoded) return unreadable;
    return std::all_of(wrong.begin(), wrong.end(), [](const auto& d) { return d.doubtful; }) ? decoded : nothing;
}

}  // namespace

Run add_dpu_program(CLI::App& dpu) {
    auto options = std::make_shared<ProgramOptions>();
    CLI::App& command = *dpu.add_subcommand("program", "Check a register program: what it does, and its mistakes");
    command.add_option("FILE", options->file, "Lines of register writes; - is standard input")->required();
    command.add_option("--format", options->format, "text: for reading; json: for programs")
        ->type_name("FORMAT")
        ->transform(one_of({"text", "json"}))
        ->capture_default_str();
    command
        .add_option("--eonce", options->eonce,
                    "What the EOnCE traces: TCHOF, TINT, TEXEC, TMARK, TLOOP, TSUB, TRTE. Default: what the mode needs")
        ->type_name("CLASSES")
        ->delimiter(',')
        ->transform(one_of({"TCHOF", "TINT", "TEXEC", "TMARK", "TLOOP", "TSUB", "TRTE"}));
    command.add_option("-o,--output", options->output, "Write to this file")->type_name("FILE");
    command.footer(
        "One write per line; fields that are not named are 0; a cycle may precede the register:\n"
        "\n"
        "  DP_TSA 0x20000000\n"
        "  DP_TEA 0x20000fe0\n"
        "  DP_TW  0x20000000\n"
        "  DP_TAC TENM=immediate CEG=2 CMODE=trace TCEN=1\n"
        "  @5000 DP_TC TMODE=TASK EN=1\n"
        "\n"
        "or as JSON: {\"register\": \"DP_TC\", \"fields\": {\"TMODE\": \"TASK\", \"EN\": 1}}. 'waymark record --unit "
        "dpu\n"
        "--registers FILE' records with it.\n"
        "\n"
        "Exit status: 0 nothing is wrong, though it may be doubtful; 1 something is; 2 usage; 3 the file cannot be "
        "read.\n");
    return [options] { return run_program(*options); };
}

}  // namespace waymark::cli
