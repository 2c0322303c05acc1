#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "waymark/core/quote.h"
#include "waymark/program/profiler_plan.h"

namespace waymark::program {

namespace {

using Kind = ProfilerStep::Kind;
using nlohmann::ordered_json;

constexpr std::string_view title = "Statistical Profiling Extension";

std::vector<std::string> head_of(const ProfilerPlan& plan, const ProfilerProof& proof) {
    std::vector<std::string> out{fmt::format("Programs: {}. Written by waymark program.", title)};
    for (const std::string& need : plan.needs) out.push_back("Needs: " + need + ".");
    out.push_back(fmt::format("Tried on the model, not on hardware: {} bytes of {} operations, as with waymark record.",
                              proof.given_bytes, proof.operations));
    return out;
}

/// `S3_0_C9_C9_0`, which every assembler takes.
std::string encoding_of(std::string_view name) {
    std::string out;
    const spe::Registers all;
    spe::Registers::for_each(all, [&]<class Register>(const Register&) {
        if constexpr (requires { Register::encoding; })
            if (Register::name == name) out = spe::to_text(Register::encoding);
    });
    return out;
}

std::string instruction(const ProfilerStep& step) {
    switch (step.kind) {
        case Kind::isb: return "__asm__ volatile(\"isb\" : : : \"memory\")";
        case Kind::psb_csync: return "__asm__ volatile(\"hint #17\" : : : \"memory\")";
        case Kind::dsb: return "__asm__ volatile(\"dsb nsh\" : : : \"memory\")";
        case Kind::write: break;
    }
    return fmt::format("WAYMARK_MSR(\"{}\", {:#x})", encoding_of(step.name), step.value);
}

std::string_view name_of(const ProfilerStep& step) {
    switch (step.kind) {
        case Kind::isb: return "ISB";
        case Kind::psb_csync: return "PSB CSYNC";
        case Kind::dsb: return "DSB NSH";
        case Kind::write: break;
    }
    return step.name;
}

std::string c_script(const ProfilerPlan& plan, const ProfilerProof& proof) {
    std::string out;
    for (const std::string& line : head_of(plan, proof)) out += fmt::format("// {}\n", line);
    out += fmt::format(
        R"c(// For software at EL2 as the host (HCR_EL2.E2H and TGE are 1): it profiles EL0. The buffer is at {:#x} in the
// translation of EL2, {} bytes. After waymark_spe_stop(), *end is behind the last record, and *status is PMBSR_EL1.
#include <stdint.h>

#define WAYMARK_MSR(name, value) __asm__ volatile("msr " name ", %0" : : "r"((uint64_t)(value)) : "memory")
)c",
        plan.buffer, plan.buffer_bytes);
    for (const auto& [function, steps] : {std::pair{"waymark_spe_start(void)", &plan.start},
                                          {"waymark_spe_stop(uint64_t *end, uint64_t *status)", &plan.stop}}) {
        out += fmt::format("\nvoid {} {{\n", function);
        for (const ProfilerStep& step : *steps)
            out += fmt::format("    {};  // {}: {}\n", instruction(step), name_of(step), step.why);
        if (steps == &plan.stop)
            for (const auto& [variable, name] : {std::pair{"end", "PMBPTR_EL1"}, {"status", "PMBSR_EL1"}})
                out += fmt::format("    __asm__ volatile(\"mrs %0, {}\" : \"=r\"(*{}) : : \"memory\");  // {}\n",
                                   encoding_of(name), variable, name);
        out += "}\n";
    }
    return out;
}

ordered_json steps_of(const std::vector<ProfilerStep>& steps) {
    ordered_json out = ordered_json::array();
    for (const ProfilerStep& step : steps) {
        ordered_json one;
        if (step.kind == Kind::write)
            one = {{"access", "write"},
                   {"register", step.name},
                   {"encoding", encoding_of(step.name)},
                   {"value", fmt::format("{:#x}", step.value)}};
        else
            one = {{"access", "barrier"}, {"barrier", name_of(step)}};
        one["why"] = step.why;
        out.push_back(std::move(one));
    }
    return out;
}

std::string json_script(const ProfilerPlan& plan, const ProfilerProof& proof) {
    ordered_json out{{"title", title}, {"needs", plan.needs}};
    out["buffer"] = {{"address", fmt::format("{:#x}", plan.buffer)}, {"bytes", plan.buffer_bytes}};
    out["start"] = steps_of(plan.start);
    out["stop"] = steps_of(plan.stop);
    out["proof"] = {{"operations", proof.operations},
                    {"samples", proof.samples},
                    {"profile_bytes", proof.given_bytes},
                    {"same_as_record", proof.same()}};
    return out.dump(2) + "\n";
}

std::string perf_script(const ProfilerPlan& plan, const ProfilerProof& proof, const std::string& command) {
    std::string terms;
    record::SpeOptions::for_each(plan.options, [&](const char* name, const auto& value, const char*) {
        if (value == 0) return;
        terms += fmt::format("{}{}={:#x}", terms.empty() ? "" : ",", name, static_cast<std::uint64_t>(value));
    });
    std::string out = "#!/bin/sh\n";
    for (const std::string& line : head_of(plan, proof)) out += fmt::format("# {}\n", line);
    out += "# perf takes the place of the buffer from the kernel, which programs the unit as above.\n";
    out += fmt::format("exec perf record -e arm_spe_0/{}/u -c {} -m ,{}K", terms, plan.options.period,
                       plan.buffer_bytes / 1024);
    const bool in_path = command.find('/') == command.npos;
    return out + (command.empty() ? " -- \"$@\"\n"
                                  : fmt::format(" -- {} \"$@\"\n", shell_word((in_path ? "./" : "") + command)));
}

}  // namespace

Status takes_profiler(Language target) {
    if (target == Language::perf || target == Language::c || target == Language::json) return Nothing{};
    return Error{Errc::unsupported,
                 "the registers of SPE are system registers, which only software on the core itself writes: choose "
                 "--for perf, c or json"};
}

Result<std::string> script(const ProfilerPlan& plan, Language target, const ProfilerProof& proof,
                           const std::string& command) {
    WM_RETURN_IF_ERROR(takes_profiler(target));
    return target == Language::perf ? perf_script(plan, proof, command)
           : target == Language::c  ? c_script(plan, proof)
                                    : json_script(plan, proof);
}

}  // namespace waymark::program
