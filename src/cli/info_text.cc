#include "info_text.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "maps_listing.h"
#include "views.h"
#include "waymark/core/numbers.h"
#include "waymark/pipeline/protocols.h"

namespace waymark::cli {

namespace {

using nlohmann::ordered_json;

std::string plain(const ordered_json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    if (value.is_null()) return "-";
    if (value.is_number_unsigned() || value.is_number_integer()) return grouped(value.get<std::uint64_t>());
    return value.dump();
}

/// Prints words after `head`, wrapped at 80 columns; further lines begin below the first word.
void wrapped(Output& out, const std::string& head, const std::vector<std::string>& words,
             const std::string& between = ", ") {
    if (words.empty()) return;
    std::string line = head;
    bool first = true;
    for (const std::string& word : words) {
        if (!first && line.size() + between.size() + word.size() > 79) {
            const std::size_t end = between.find_last_not_of(' ');
            out.print("{}{}\n", line, between == ", " ? between.substr(0, end + 1) : "");
            line = std::string(head.size(), ' ') + (between == ", " ? "" : between.substr(1));
            first = true;
        }
        line += (first ? "" : between) + word;
        first = false;
    }
    out.print("{}\n", line);
}

std::string spaced(std::string name) {
    std::replace(name.begin(), name.end(), '_', ' ');
    return name;
}

/// The registers of a source, without the one that has its trace ID.
ordered_json registers_alike(const ordered_json& s) {
    const pipeline::Protocol* const protocol = pipeline::protocol_of(s["type"].get<std::string>());
    ordered_json out = ordered_json::array();
    for (const auto& r : s["registers"])
        if (protocol == nullptr || !protocol->trace_id() ||
            r["name"].get<std::string>() != protocol->trace_id()->register_name)
            out.push_back(r);
    return out;
}

std::string label_of(const ordered_json& s) {
    return (s["trace_id"].is_null() ? "" : s["trace_id"].get<std::string>() + " ") + s["name"].get<std::string>();
}

/// The first source before `s` that has the same values for `same`; null if there is none.
const ordered_json* first_alike(const ordered_json& sources, const ordered_json& s, const auto& same) {
    for (const auto& other : sources) {
        if (&other == &s) return nullptr;
        if (same(other, s)) return &other;
    }
    return nullptr;
}

void print_registers(Output& out, const ordered_json& s) {
    const pipeline::Protocol* const protocol = pipeline::protocol_of(s["type"].get<std::string>());
    for (const auto& r : s["registers"]) {
        out.print("  {:<12} {}\n", r["name"].get<std::string>(), r["value"].get<std::string>());
        const bool said = protocol != nullptr && protocol->trace_id() &&
                          r["name"].get<std::string>() == protocol->trace_id()->register_name;
        if (!r.contains("fields") || (r["fields"].size() == 1 && said)) continue;
        std::vector<std::string> words;
        for (const auto& [name, value] : r["fields"].items())
            if (name.rfind("reserved", 0) != 0 || value != 0)
                words.push_back(fmt::format("{} {:#x}", name, value.get<std::uint64_t>()));
        wrapped(out, "    ", words);
    }
}

void print_region(Output& out, const ordered_json& m) {
    out.print("  memory {}-{}  {:>10} bytes  {:<5} {}{}\n", m["start"].get<std::string>(), m["end"].get<std::string>(),
              plain(m["bytes"]), m["space"].get<std::string>(), m["image"].get<std::string>(),
              m["hidden_by"].is_null() ? "" : fmt::format("  (hidden by {})", m["hidden_by"].get<std::string>()));
}

/// The regions of memory: more than `most` from one file are one line, unless `details` are wanted. A region that
/// another one hides has its own line.
void print_memory(Output& out, const ordered_json& s, bool details) {
    constexpr std::size_t most = 4;
    const ordered_json& memory = s["memory"];
    for (std::size_t i = 0, end; i < memory.size(); i = end) {
        std::uint64_t bytes = 0;
        for (end = i; end < memory.size() && memory[end]["image"] == memory[i]["image"] &&
                      memory[end]["space"] == memory[i]["space"] && memory[end]["hidden_by"].is_null();
             ++end)
            bytes += memory[end]["bytes"].get<std::uint64_t>();
        if (!details && end - i > most) {
            out.print("  memory {} regions  {:>10} bytes  {:<5} {}\n", end - i, grouped(bytes),
                      memory[i]["space"].get<std::string>(), memory[i]["image"].get<std::string>());
            continue;
        }
        end = std::max(end, i + 1);
        for (std::size_t n = i; n < end; ++n) print_region(out, memory[n]);
    }
}

/// `sources`: all sources in order. Descriptions that equal those of an earlier source are not repeated.
void print_source(Output& out, const ordered_json& sources, const ordered_json& s, bool details) {
    const pipeline::Protocol* const protocol = pipeline::protocol_of(s["type"].get<std::string>());
    const std::string id = s["trace_id"].is_null() ? "" : s["trace_id"].get<std::string>() + " ";
    out.print("\nsource {}{}  {}{}{}{}\n", id, s["name"].get<std::string>(),
              s["type"] == "" ? "of unknown type" : s["type"].get<std::string>(),
              s["core"].get<std::string>().empty() ? "" : ", traces ", s["core"].get<std::string>(),
              s["core_type"].get<std::string>().empty() ? "" : fmt::format(" ({})", s["core_type"].get<std::string>()));
    if (!s["decodable"].get<bool>())
        out.write(protocol == nullptr ? "  Waymark does not decode this protocol\n"
                  : s.contains("messages")
                      ? "  This protocol has no program flow; waymark messages lists what the unit sent\n"
                      : "  Waymark lists the packets of this protocol and does not decode its flow yet\n");
    const ordered_json* const programmed = first_alike(sources, s, [](const auto& a, const auto& b) {
        return !b["registers"].empty() && a["type"] == b["type"] &&
               a.value("configuration", ordered_json()) == b.value("configuration", ordered_json()) &&
               registers_alike(a) == registers_alike(b);
    });
    const ordered_json* const memory = first_alike(
        sources, s, [](const auto& a, const auto& b) { return !b["memory"].empty() && a["memory"] == b["memory"]; });
    if (programmed != nullptr)
        out.print("  programmed like source {}{}\n", label_of(*programmed),
                  (*programmed)["trace_id"] == s["trace_id"] ? "" : ", except for its trace ID");
    else if (s.contains("configuration")) {
        std::vector<std::string> words;
        for (const auto& [name, value] : s["configuration"].items()) words.push_back(spaced(name) + " " + plain(value));
        wrapped(out, "  ", words);
    }
    for (const auto& stream : s["streams"]) {
        out.print("  in buffer {}: {}", stream["buffer"].get<std::string>(),
                  counted(stream["bytes"].get<std::uint64_t>(), "byte"));
        if (stream.contains("bytes_in_packets") && stream["bytes"] != 0) {
            std::uint64_t in_gaps = 0;
            for (const auto& gap : stream["gaps"]) in_gaps += gap["bytes"].get<std::uint64_t>();
            out.print(" = {} in packets + {} in gaps", plain(stream["bytes_in_packets"]), grouped(in_gaps));
            if (stream.contains("end_mark_bytes")) out.print(" + {} of end mark", plain(stream["end_mark_bytes"]));
        }
        if (stream.contains("first_sync_offset"))
            out.print(", first {} at {:#x}", protocol->words().sync, stream["first_sync_offset"].get<std::uint64_t>());
        out.write("\n");
        if (!stream.contains("packets")) continue;
        std::vector<std::string> words;
        for (const auto& [name, count] : stream["packets"].items()) words.push_back(plain(count) + " " + name);
        wrapped(out, "    packets: ", words);
        if (const std::string_view syncs = protocol->words().syncs; !syncs.empty()) {
            words.clear();
            for (const auto& [name, count] : stream[key_of(syncs)].items()) words.push_back(plain(count) + " " + name);
            wrapped(out, fmt::format("    {}: ", syncs), words);
        }
        if (stream.contains("levels")) {
            words.clear();
            for (const auto& [level, count] : stream["levels"].items()) words.push_back(plain(count) + " at " + level);
            wrapped(out, "    contexts: ", words);
        }
        if (stream.contains("first_timestamp"))
            out.print("    timestamps: {} to {}\n", stream["first_timestamp"].get<std::string>(),
                      stream["last_timestamp"].get<std::string>());
        for (const auto& gap : stream["gaps"])
            out.print("    gap: {}: {} in {}, first at {:#x}\n", gap["reason"].get<std::string>(),
                      counted(gap["bytes"].get<std::uint64_t>(), "byte"),
                      counted(gap["times"].get<std::uint64_t>(), "stretch", "stretches"),
                      gap["first_offset"].get<std::uint64_t>());
    }
    if (programmed == nullptr && details)
        print_registers(out, s);
    else if (programmed == nullptr && !s["registers"].empty())
        out.print("  {} described (--details lists them)\n", counted(s["registers"].size(), "register"));
    if (memory == nullptr)
        print_memory(out, s, details);
    else
        out.print("  memory as for source {}\n", label_of(*memory));
}

/// Bytes that are not frames seem to have a hundred IDs, so only a few IDs without a source are listed.
void print_ids(Output& out, const ordered_json& ids) {
    constexpr std::size_t most = 8;
    std::size_t unknown = 0;
    std::uint64_t more_bytes = 0;
    for (const auto& id : ids) {
        const bool known = !id["source"].is_null();
        if (!known && ++unknown > most)
            more_bytes += id["bytes"].get<std::uint64_t>();
        else
            out.print("  {}  {:>10} bytes  {}\n", id["id"].get<std::string>(), plain(id["bytes"]),
                      known ? id["source"].get<std::string>() : "(no source described)");
    }
    if (unknown > most) out.print("  {} more IDs without a source, {}\n", unknown - most, counted(more_bytes, "byte"));
}

}  // namespace

std::string key_of(std::string_view name) {
    std::string out(name);
    for (char& c : out) c = c == '-' || c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

void print_snapshot_info(Output& out, const ordered_json& info, const answers::Account& account,
                         const pipeline::Continuations& continuations, bool details) {
    out.print("capture {}\n", info["capture"].get<std::string>());
    if (info.contains("description")) out.print("  {}\n", info["description"].get<std::string>());
    print_account(out, account);
    if (const std::string text = continuations.text(); !text.empty()) out.print("  {}\n", text);
    for (const auto& b : info["buffers"]) {
        if (continuations.has_buffer(b["name"].get<std::string>())) continue;
        std::string files;
        for (const auto& file : b["files"]) files += (files.empty() ? "" : ", ") + file.get<std::string>();
        const std::uint64_t bytes = b["bytes"].get<std::uint64_t>();
        out.print("\nbuffer {}  {}, {}, {}\n", b["name"].get<std::string>(), b["format"].get<std::string>(),
                  b.contains("of_bytes")
                      ? fmt::format("{} of {}", grouped(bytes), counted(b["of_bytes"].get<std::uint64_t>(), "byte"))
                      : counted(bytes, "byte"),
                  files);
        if (!b.contains("frames")) continue;
        std::vector<std::string> words, places;
        for (const auto& [name, value] : b["frames"].items()) {
            constexpr std::string_view unit = "_bytes";
            if (value == 0) continue;
            if (name.size() > unit.size() && name.substr(name.size() - unit.size()) == unit)
                places.push_back(plain(value) + " " + spaced(name.substr(0, name.size() - unit.size())));
            else
                words.push_back(counted(value.get<std::uint64_t>(), spaced(name.substr(0, name.size() - 1))));
        }
        wrapped(out, "  ", words);
        wrapped(out, fmt::format("  {} bytes = ", plain(b["bytes"])), places, " + ");
        print_ids(out, b["ids"]);
    }
    for (const auto& s : info["sources"])
        if (!continuations.has_source(s["name"].get<std::string>())) print_source(out, info["sources"], s, details);
    if (info.contains("maps")) print_maps(out, info["maps"]);
    if (info.contains("peculiarities") && !info["peculiarities"].empty()) {
        out.write("\npeculiarities of this file\n");
        for (const auto& p : info["peculiarities"])
            out.print("  - {}: {}\n", p["kind"].get<std::string>(), p["text"].get<std::string>());
    }
    if (info["problems"].empty()) {
        if (!answers::completeness(account).strict) out.write("\nNothing wrong was found.\n");
        return;
    }
    out.write("\nremarks\n");
    for (const auto& problem : info["problems"]) out.print("  - {}\n", problem.get<std::string>());
}

}  // namespace waymark::cli
