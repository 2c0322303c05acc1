#include "waymark/listing/dpu_info.h"

#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "maps.h"
#include "print.h"
#include "waymark/analysis/dpu_findings.h"
#include "waymark/answers/account_effects.h"
#include "waymark/core/numbers.h"
#include "waymark/doctor/finding.h"
#include "waymark/dpu/nexus.h"
#include "waymark/dpu/parser.h"
#include "waymark/dpu/registers.h"

namespace waymark::listing {

namespace {

using nlohmann::ordered_json;

/// Number of messages of each kind.
struct MessageCounts {
    void operator()(const dpu::nexus::Message& message, dpu::nexus::Extent) {
        ++messages[std::visit([](const auto& m) { return std::string(m.info.name); }, message)];
    }
    void operator()(const Gap& gap) {
        auto& [times, bytes] = gaps[std::string(name(gap.reason))];
        ++times;
        bytes += gap.bytes();
    }
    std::map<std::string, std::uint64_t> messages;
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> gaps;
};

MessageCounts count_messages(Bytes bytes) {
    MessageCounts out;
    dpu::nexus::Parser<MessageCounts> parser(out);
    parser.feed(bytes);
    parser.finish();
    return out;
}

ordered_json describe(const doctor::DpuInput& input, const doctor::DpuSums& sums, const MessageCounts& messages) {
    const auto& d = sums.decoded;
    const capture::DpuCapture& c = input.capture();
    ordered_json info{{"capture", c.path.string()},
                      {"unit", "DPU"},
                      {"layout", c.layout},
                      {"layout_note", dpu::layout_note},
                      {"dpu_base", fmt::format("{:#010x}", c.dpu_base)},
                      {"byte_order", c.little_endian ? "little" : "big"},
                      {"mode", input.mode() ? ordered_json(input.mode_text()) : ordered_json()},
                      {"run", answers::account_sentence(dpu_account(input, sums))}};
    info["buffer"] = {{"file", c.buffer.string()},
                      {"bytes", input.dump().size()},
                      {"bytes_of_trace", d.totals.bytes},
                      {"overwritten", d.overwritten},
                      {"cut", d.cut},
                      {"complete", input.trace().complete}};
    if (c.lines_written) info["buffer"]["lines_written"] = *c.lines_written;
    if (!c.nexus.empty()) {
        ordered_json kinds = ordered_json::object(), gaps = ordered_json::object();
        for (const auto& [kind, n] : messages.messages) kinds[kind] = n;
        for (const auto& [reason, n] : messages.gaps) gaps[reason] = {{"times", n.first}, {"bytes", n.second}};
        std::error_code none;
        info["nexus"] = {{"file", c.nexus.string()},
                         {"bytes", std::filesystem::file_size(c.nexus, none)},
                         {"messages", kinds},
                         {"gaps", gaps}};
    }
    if (ordered_json maps = maps_json(c.modules); !maps.is_null()) info["maps"] = std::move(maps);
    info["registers"] = ordered_json::array();
    for (const capture::Register& r : c.registers) {
        ordered_json fields = ordered_json::object();
        if (const auto about = dpu::Registers::find(r.name)) {
            dpu::Registers one;
            one.set(about->offset, static_cast<std::uint32_t>(r.value));
            for (const dpu::Field& f : one.fields(about->offset))
                if (f.value != 0 && f.name != "value") fields[std::string(f.name)] = f.value;
        }
        info["registers"].push_back(
            {{"name", r.name}, {"value", fmt::format("{:#010x}", r.value)}, {"fields", fields}});
    }
    info["counters"] = ordered_json::array();
    for (unsigned i = 0; i < dpu::counter_count; ++i) {
        const auto value = [&](const auto& values) {
            return values ? ordered_json(fmt::format("{:#010x}", (*values)[i])) : ordered_json();
        };
        info["counters"].push_back({{"name", dpu::counter_name(i)},
                                    {"event", input.event_name(i)},
                                    {"connected", input.is_driven(i)},
                                    {"initial", value(c.initial)},
                                    {"final", value(c.final)}});
    }
    if (c.eonce_classes) info["eonce"] = *c.eonce_classes;
    info["periods"] = input.trace().periods.size();
    info["images"] = ordered_json::array();
    for (const capture::DpuImage& image : c.images) {
        ordered_json& each = info["images"].emplace_back(
            ordered_json{{"file", image.path.string()}, {"load_bias", fmt::format("{:#010x}", image.load_bias)}});
        for (const capture::CopiedFile& copied : c.modules.copies)
            if (copied.copy == image.path.filename().string()) each["copy_of"] = copied.file;
    }
    ordered_json parameters = ordered_json::object();
    for (const auto& [key, value] : c.parameters) parameters[key] = value;
    info["parameters"] = parameters;
    ordered_json entries = ordered_json::object(), gaps = ordered_json::object();
    std::size_t at = 0;
    dpu::Entries::for_each([&]<class P>() {
        if (const std::uint64_t n = d.totals.entries[at++]; n != 0) entries[std::string(P::info.name)] = n;
    });
    for (unsigned r = 0; r < gap_reasons; ++r)
        if (d.totals.gap_bytes[r] != 0)
            gaps[std::string(name(static_cast<GapReason>(r)))] = {{"times", d.totals.gaps[r]},
                                                                  {"bytes", d.totals.gap_bytes[r]}};
    info["entries"] = entries;
    info["gaps"] = gaps;
    info["entries_lost"] = d.totals.lost;
    info["problems"] = ordered_json::array();
    for (std::string& sentence : doctor::gathered(c.problems)) info["problems"].push_back(std::move(sentence));
    analysis::DpuCode code;
    for (const std::string& problem : input.name_code(code)) info["problems"].push_back(problem);
    const analysis::DpuSaid said = input.said(input.setup(), d);
    for (analysis::DpuFinding& loss : analysis::dpu_losses(said))
        if (loss.kind != analysis::DpuFinding::Kind::cut) info["problems"].push_back(std::move(loss.what));
    if (std::string left_out = analysis::dpu_left_out(said); !left_out.empty())
        info["problems"].push_back(std::move(left_out));
    if (d.totals.wide != 0) info["problems"].push_back(wide_differences(d.totals));
    if (d.cut || input.missing_bytes() != 0)
        info["problems"].push_back("the file of the buffer is cut; give the whole file to see the rest");
    return info;
}

void print_info(TextSink& out, const ordered_json& info, const answers::Account& account) {
    const auto text = [&](const ordered_json& v) {
        return v.is_string() ? v.get<std::string>() : v.is_null() ? "not known" : v.dump();
    };
    print(out, "capture {}\n  Debug and Profiling Unit, mode {}, base {}, {}-endian words\n  {}\n",
          text(info["capture"]), text(info["mode"]), text(info["dpu_base"]), text(info["byte_order"]),
          text(info["layout_note"]));
    print_account(out, account, 10);
    const ordered_json& b = info["buffer"];
    if (!b["file"].get<std::string>().empty())
        print(out, "\nbuffer {}\n  {}, {} of them trace{}{}{}\n", text(b["file"]),
              counted(b["bytes"].get<std::uint64_t>(), "byte"), grouped(b["bytes_of_trace"].get<std::uint64_t>()),
              b["overwritten"].get<bool>() ? ", older trace was overwritten" : "", b["cut"].get<bool>() ? ", cut" : "",
              b["complete"].get<bool>() ? "" : ", the unit still held some");
    for (const auto& [name, count] : info["entries"].items())
        print(out, "  {:>12}  {}\n", grouped(count.get<std::uint64_t>()), name);
    for (const auto& [name, gap] : info["gaps"].items())
        print(out, "  {:>12}  gap: {}, {}\n", grouped(gap["times"].get<std::uint64_t>()), name,
              counted(gap["bytes"].get<std::uint64_t>(), "byte"));
    if (info.contains("nexus")) {
        const ordered_json& n = info["nexus"];
        print(out, "\nNexus messages {}\n  {}\n", text(n["file"]), counted(n["bytes"].get<std::uint64_t>(), "byte"));
        for (const auto& [name, count] : n["messages"].items())
            print(out, "  {:>12}  {}\n", grouped(count.get<std::uint64_t>()), name);
        for (const auto& [name, gap] : n["gaps"].items())
            print(out, "  {:>12}  gap: {}, {}\n", grouped(gap["times"].get<std::uint64_t>()), name,
                  counted(gap["bytes"].get<std::uint64_t>(), "byte"));
    }
    out.write("\ncounters\n");
    for (const auto& c : info["counters"])
        print(out, "  {}  {:<16} {} → {}{}\n", text(c["name"]), text(c["event"]), text(c["initial"]), text(c["final"]),
              c["connected"].get<bool>() ? "" : "  not connected");
    out.write("\nregisters\n");
    for (const auto& r : info["registers"]) {
        std::vector<std::string> fields;
        for (const auto& [name, value] : r["fields"].items())
            fields.push_back(fmt::format("{}={:#x}", name, value.get<std::uint64_t>()));
        std::string line = fmt::format("  {:<8} {}  {}", text(r["name"]), text(r["value"]), fmt::join(fields, " "));
        line.erase(line.find_last_not_of(' ') + 1);
        print(out, "{}\n", line);
    }
    if (!info["images"].empty()) out.write("\nprograms\n");
    for (const auto& i : info["images"])
        print(out, "  {}  +{}{}\n", text(i["file"]), text(i["load_bias"]),
              i.contains("copy_of") ? ", a copy of " + text(i["copy_of"]) : std::string());
    if (info.contains("maps")) print_maps(out, info["maps"]);
    if (!info["parameters"].empty()) out.write("\nwhat stood in for the core\n");
    for (const auto& [name, value] : info["parameters"].items()) print(out, "  {:<16} {}\n", name, text(value));
    if (info["problems"].empty()) {
        out.write("\nNothing wrong was found.\n");
        return;
    }
    out.write("\nremarks\n");
    for (const auto& problem : info["problems"]) print(out, "  - {}\n", text(problem));
}

}  // namespace

answers::Account dpu_account(const doctor::DpuInput& input, const doctor::DpuSums& sums) {
    if (!doctor::DpuInput::has_content(sums.decoded.totals)) return {};
    return analysis::dpu_account(input.said(input.setup(), sums.decoded), *sums.costs);
}

std::string wide_differences(const dpu::Totals& totals) {
    return fmt::format("{} in which a counter decreased by 2^30 or more: {}", counted(totals.wide, "interval"),
                       analysis::wide_means);
}

bool print_dpu_info(TextSink& out, const doctor::DpuInput& input, const doctor::DpuSums& sums, Bytes nexus,
                    LineFormat format) {
    const MessageCounts messages = count_messages(nexus);
    const ordered_json info = describe(input, sums, messages);
    if (format == LineFormat::text)
        print_info(out, info, dpu_account(input, sums));
    else
        print_document(out, info, format);
    return !messages.messages.empty();
}

}  // namespace waymark::listing
