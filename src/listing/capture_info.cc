#include "waymark/listing/capture_info.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "maps.h"
#include "print.h"
#include "waymark/answers/account_effects.h"
#include "waymark/core/numbers.h"
#include "waymark/coresight/guess.h"
#include "waymark/doctor/finding.h"
#include "waymark/doctor/sample.h"
#include "waymark/pipeline/continuations.h"
#include "waymark/pipeline/message_answers.h"
#include "waymark/pipeline/packet_counter.h"
#include "waymark/pipeline/problems.h"
#include "waymark/pipeline/process_survey.h"
#include "waymark/pipeline/protocols.h"

namespace waymark::listing {

namespace {

using nlohmann::ordered_json;
using pipeline::PacketCounter;

/// The key of a member in the JSON description: `I-syncs` → `i_syncs`.
std::string key_of(std::string_view name) {
    std::string out(name);
    for (char& c : out) c = c == '-' || c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

/// Size of the trace in a buffer that consists of parts.
std::uint64_t whole_bytes(const pipeline::BufferReport& report, const pipeline::Session& session) {
    const capture::Buffer* whole = session.capture.find_buffer(report.name);
    return whole == nullptr || whole->parts.empty() ? report.bytes : capture::bytes_in(whole->parts);
}

/// Collects the fields of a register by name, in the order of its description.
class RegisterFields final : public protocol::FieldVisitor {
public:
    explicit RegisterFields(ordered_json& out) : out_(out) {}
    void number(std::string_view name, std::uint64_t value) override { out_[std::string(name)] = value; }
    void text(std::string_view name, std::string_view value) override { out_[std::string(name)] = std::string(value); }

private:
    ordered_json& out_;
};

ordered_json register_json(const capture::Register& r, const pipeline::Protocol* protocol) {
    ordered_json out{{"name", r.name}, {"value", fmt::format("{:#010x}", r.value)}};
    if (protocol == nullptr) return out;
    ordered_json fields = ordered_json::object();
    RegisterFields visitor(fields);
    protocol->visit_register(r, visitor);
    if (!fields.empty()) out["fields"] = std::move(fields);
    return out;
}

ordered_json config_json(const protocol::Configuration& configuration) {
    ordered_json out = ordered_json::object();
    for (const protocol::Setting& setting : configuration.settings())
        std::visit([&](const auto& value) { out[setting.name] = value; }, setting.value);
    return out;
}

ordered_json stream_json(const pipeline::StreamReport& stream) {
    ordered_json out{{"buffer", stream.buffer}, {"bytes", stream.bytes + stream.padding}};
    if (stream.padding != 0) out["end_mark_bytes"] = stream.padding;
    const auto* counter = dynamic_cast<const PacketCounter*>(stream.consumer.get());
    if (counter == nullptr) return out;
    const protocol::Survey& survey = counter->survey();
    out["bytes_in_packets"] = survey.bytes_in_packets;
    ordered_json packets = ordered_json::object();
    for (const auto& [name, count] : survey.packets) packets[name] = count;
    out["packets"] = std::move(packets);
    if (const std::string_view name = stream.source->protocol->words().syncs; !name.empty()) {
        ordered_json syncs = ordered_json::object();
        for (const auto& [reason, count] : survey.syncs) syncs[reason] = count;
        out[key_of(name)] = std::move(syncs);
    }
    if (!survey.levels.empty()) {
        ordered_json levels = ordered_json::object();
        for (const auto& [level, count] : survey.levels) levels[level] = count;
        out["levels"] = std::move(levels);
    }
    if (survey.first_sync) out["first_sync_offset"] = survey.first_sync->value;
    if (survey.first_timestamp) {
        out["first_timestamp"] = fmt::format("{:#x}", *survey.first_timestamp);
        out["last_timestamp"] = fmt::format("{:#x}", *survey.last_timestamp);
    }
    ordered_json gaps = ordered_json::array();
    for (unsigned reason = 0; reason < gap_reasons; ++reason) {
        const auto& gap = survey.gaps[reason];
        if (gap.times != 0)
            gaps.push_back({{"reason", name(static_cast<GapReason>(reason))},
                            {"times", gap.times},
                            {"bytes", gap.bytes},
                            {"first_offset", gap.first.value}});
    }
    out["gaps"] = std::move(gaps);
    return out;
}

ordered_json buffer_json(const pipeline::BufferReport& report, const pipeline::Session& session) {
    const capture::Buffer& buffer = *report.buffer;
    ordered_json files = ordered_json::array();
    for (const auto& file : buffer.files) files.push_back(file.string());
    ordered_json out{
        {"name", buffer.name},
        {"format", buffer.format_name.empty() ? std::string(capture::name(buffer.format)) : buffer.format_name},
        {"files", std::move(files)},
        {"bytes", report.bytes}};
    if (const std::uint64_t whole = whole_bytes(report, session); whole > report.bytes && !report.error)
        out["of_bytes"] = whole;
    if (report.error) out["error"] = report.error->message;
    if (!report.framed) return out;
    const coresight::Totals& t = report.frames;
    out["frames"] = {{"frames", t.frames},
                     {"source_data_bytes", t.data_bytes(coresight::TraceIdClass::source)},
                     {"overhead_bytes", t.overhead_bytes()},
                     {"padding_bytes", t.padding_bytes()},
                     {"reserved_id_bytes", t.data_bytes(coresight::TraceIdClass::reserved)},
                     {"trigger_and_flush_bytes",
                      t.data_bytes(coresight::TraceIdClass::trigger) + t.data_bytes(coresight::TraceIdClass::flush)},
                     {"before_first_id_bytes", t.unassociated},
                     {"footer_bytes", t.footer_bytes},
                     {"lost_bytes", t.lost_bytes()},
                     {"full_syncs", t.fsyncs},
                     {"half_syncs", t.hsyncs},
                     {"barriers", t.barriers},
                     {"damaged_frames", t.damaged_frames}};
    ordered_json ids = ordered_json::array();
    for (const pipeline::IdBytes& of : pipeline::ids_in(report, session))
        ids.push_back({{"id", fmt::format("{:#04x}", of.id.value)},
                       {"bytes", of.bytes},
                       {"source", of.source == nullptr ? ordered_json() : ordered_json(of.source->name)}});
    out["ids"] = std::move(ids);
    ordered_json strays = ordered_json::array();
    for (const pipeline::Stray& stray : report.strays)
        strays.push_back({{"id", fmt::format("{:#04x}", stray.id.value)},
                          {"class", coresight::name(coresight::classify(stray.id))},
                          {"bytes", stray.bytes},
                          {"stretches", stray.stretches},
                          {"first_offset", stray.first.value},
                          {"damage", stray.damage}});
    out["strays"] = std::move(strays);
    return out;
}

ordered_json memory_json(const pipeline::Source& source) {
    ordered_json out = ordered_json::array();
    const auto& sections = source.memory->sections();
    for (const image::Region& region : source.memory->regions())
        out.push_back(
            {{"start", fmt::format("{:#010x}", region.address.value)},
             {"end", fmt::format("{:#010x}", region.address.value + region.bytes)},
             {"bytes", region.bytes},
             {"space", region.space.name()},
             {"image", sections[region.section].name},
             {"hidden_by", region.shadowed_by ? ordered_json(sections[*region.shadowed_by].name) : ordered_json()}});
    return out;
}

/// Adds the peculiarities of the container, and missing code.
void add_processes(ordered_json& info, const pipeline::Session& session,
                   const std::vector<const pipeline::Source*>& selected, unsigned threads) {
    const pipeline::ProcessSurvey survey = pipeline::survey_processes(session, selected, doctor::sample_bytes, threads);
    info["peculiarities"] = ordered_json::array();
    for (const auto* all : {&session.capture.peculiarities, &survey.peculiarities})
        for (const capture::Peculiarity& p : *all)
            info["peculiarities"].push_back({{"kind", p.kind},
                                             {"found", p.found},
                                             {"usual", p.usual},
                                             {"means", p.means},
                                             {"advice", p.advice},
                                             {"text", capture::to_string(p)}});
    for (const pipeline::Damage& damage : survey.missing) info["problems"].push_back(damage.sentence);
    if (!survey.missing.empty() && survey.bytes != survey.of)
        info["problems"].push_back(
            fmt::format("code was searched in {} of {} bytes of trace; waymark flow --format summary searches all",
                        grouped(survey.bytes), grouped(survey.of)));
}

ordered_json describe(const pipeline::Session& session, const std::vector<const pipeline::Source*>& selected,
                      const pipeline::Report& report, const answers::Account& account, unsigned threads) {
    ordered_json info{{"capture", session.capture.path.string()}};
    if (!session.capture.description.empty()) info["description"] = session.capture.description;
    info["run"] = answers::account_sentence(account);
    info["cores"] = ordered_json::array();
    for (const capture::Core& core : session.capture.cores)
        info["cores"].push_back({{"name", core.name}, {"type", core.type}});
    info["sources"] = ordered_json::array();
    for (const pipeline::Source* source : selected) {
        ordered_json s{{"name", source->name},
                       {"trace_id", source->trace_id ? ordered_json(source->id_text()) : ordered_json()},
                       {"type", source->type},
                       {"core", source->core},
                       {"core_type", source->core_type},
                       {"decodable", source->has_flow()}};
        if (pipeline::has_messages(*source)) s["messages"] = true;
        if (!source->continues.empty()) s["continues"] = source->continues;
        s["registers"] = ordered_json::array();
        for (const capture::Register& r : source->registers)
            s["registers"].push_back(register_json(r, source->protocol));
        if (source->configuration) s["configuration"] = config_json(*source->configuration);
        s["streams"] = ordered_json::array();
        for (const pipeline::StreamReport& stream : report.streams)
            if (stream.source == source) s["streams"].push_back(stream_json(stream));
        s["memory"] = memory_json(*source);
        info["sources"].push_back(std::move(s));
    }
    if (ordered_json maps = maps_json(session.capture.modules); !maps.is_null()) info["maps"] = std::move(maps);
    info["buffers"] = ordered_json::array();
    for (const pipeline::BufferReport& buffer : report.buffers) info["buffers"].push_back(buffer_json(buffer, session));
    info["problems"] = doctor::gathered(session.problems);
    for (const std::string& problem : pipeline::problems_in(session, selected, report))
        info["problems"].push_back(problem);
    if (const Looked looked = looked_at(session, report); looked.bytes < looked.of)
        info["problems"].push_back(fmt::format(
            "frames and packets were counted in {} of {} bytes of trace, from the beginning of each buffer on; "
            "--sample 0 counts all",
            grouped(looked.bytes), grouped(looked.of)));
    if (session.capture.spaces != nullptr) add_processes(info, session, selected, threads);
    return info;
}

std::string plain(const ordered_json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    if (value.is_null()) return "-";
    if (value.is_number_unsigned() || value.is_number_integer()) return grouped(value.get<std::uint64_t>());
    return value.dump();
}

/// Prints words after `head`, wrapped at 80 columns; further lines begin below the first word.
void print_words(TextSink& out, const std::string& head, const std::vector<std::string>& words,
                 const std::string& between = ", ") {
    if (words.empty()) return;
    std::string line = head;
    bool first = true;
    for (const std::string& word : words) {
        if (!first && line.size() + between.size() + word.size() > 79) {
            const std::size_t end = between.find_last_not_of(' ');
            print(out, "{}{}\n", line, between == ", " ? between.substr(0, end + 1) : "");
            line = std::string(head.size(), ' ') + (between == ", " ? "" : between.substr(1));
            first = true;
        }
        line += (first ? "" : between) + word;
        first = false;
    }
    print(out, "{}\n", line);
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

void print_registers(TextSink& out, const ordered_json& s) {
    const pipeline::Protocol* const protocol = pipeline::protocol_of(s["type"].get<std::string>());
    for (const auto& r : s["registers"]) {
        print(out, "  {:<12} {}\n", r["name"].get<std::string>(), r["value"].get<std::string>());
        const bool said = protocol != nullptr && protocol->trace_id() &&
                          r["name"].get<std::string>() == protocol->trace_id()->register_name;
        if (!r.contains("fields") || (r["fields"].size() == 1 && said)) continue;
        std::vector<std::string> words;
        for (const auto& [name, value] : r["fields"].items())
            if (name.rfind("reserved", 0) != 0 || value != 0)
                words.push_back(fmt::format("{} {:#x}", name, value.get<std::uint64_t>()));
        print_words(out, "    ", words);
    }
}

void print_region(TextSink& out, const ordered_json& m) {
    print(out, "  memory {}-{}  {:>10} bytes  {:<5} {}{}\n", m["start"].get<std::string>(), m["end"].get<std::string>(),
          plain(m["bytes"]), m["space"].get<std::string>(), m["image"].get<std::string>(),
          m["hidden_by"].is_null() ? "" : fmt::format("  (hidden by {})", m["hidden_by"].get<std::string>()));
}

/// The regions of memory: more than `most` from one file are one line, unless `details` are wanted. A region that
/// another one hides has its own line.
void print_memory(TextSink& out, const ordered_json& s, bool details) {
    constexpr std::size_t most = 4;
    const ordered_json& memory = s["memory"];
    for (std::size_t i = 0, end; i < memory.size(); i = end) {
        std::uint64_t bytes = 0;
        for (end = i; end < memory.size() && memory[end]["image"] == memory[i]["image"] &&
                      memory[end]["space"] == memory[i]["space"] && memory[end]["hidden_by"].is_null();
             ++end)
            bytes += memory[end]["bytes"].get<std::uint64_t>();
        if (!details && end - i > most) {
            print(out, "  memory {} regions  {:>10} bytes  {:<5} {}\n", end - i, grouped(bytes),
                  memory[i]["space"].get<std::string>(), memory[i]["image"].get<std::string>());
            continue;
        }
        end = std::max(end, i + 1);
        for (std::size_t n = i; n < end; ++n) print_region(out, memory[n]);
    }
}

/// `sources`: all sources in order. A description that an earlier source has too is not repeated.
void print_source(TextSink& out, const ordered_json& sources, const ordered_json& s, bool details) {
    const pipeline::Protocol* const protocol = pipeline::protocol_of(s["type"].get<std::string>());
    const std::string id = s["trace_id"].is_null() ? "" : s["trace_id"].get<std::string>() + " ";
    print(out, "\nsource {}{}  {}{}{}{}\n", id, s["name"].get<std::string>(),
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
        print(out, "  programmed like source {}{}\n", label_of(*programmed),
              (*programmed)["trace_id"] == s["trace_id"] ? "" : ", except for its trace ID");
    else if (s.contains("configuration")) {
        std::vector<std::string> words;
        for (const auto& [name, value] : s["configuration"].items()) words.push_back(spaced(name) + " " + plain(value));
        print_words(out, "  ", words);
    }
    for (const auto& stream : s["streams"]) {
        print(out, "  in buffer {}: {}", stream["buffer"].get<std::string>(),
              counted(stream["bytes"].get<std::uint64_t>(), "byte"));
        if (stream.contains("bytes_in_packets") && stream["bytes"] != 0) {
            std::uint64_t in_gaps = 0;
            for (const auto& gap : stream["gaps"]) in_gaps += gap["bytes"].get<std::uint64_t>();
            print(out, " = {} in packets + {} in gaps", plain(stream["bytes_in_packets"]), grouped(in_gaps));
            if (stream.contains("end_mark_bytes")) print(out, " + {} of end mark", plain(stream["end_mark_bytes"]));
        }
        if (stream.contains("first_sync_offset"))
            print(out, ", first {} at {:#x}", protocol->words().sync, stream["first_sync_offset"].get<std::uint64_t>());
        out.write("\n");
        if (!stream.contains("packets")) continue;
        std::vector<std::string> words;
        for (const auto& [name, count] : stream["packets"].items()) words.push_back(plain(count) + " " + name);
        print_words(out, "    packets: ", words);
        if (const std::string_view syncs = protocol->words().syncs; !syncs.empty()) {
            words.clear();
            for (const auto& [name, count] : stream[key_of(syncs)].items()) words.push_back(plain(count) + " " + name);
            print_words(out, fmt::format("    {}: ", syncs), words);
        }
        if (stream.contains("levels")) {
            words.clear();
            for (const auto& [level, count] : stream["levels"].items()) words.push_back(plain(count) + " at " + level);
            print_words(out, "    contexts: ", words);
        }
        if (stream.contains("first_timestamp"))
            print(out, "    timestamps: {} to {}\n", stream["first_timestamp"].get<std::string>(),
                  stream["last_timestamp"].get<std::string>());
        for (const auto& gap : stream["gaps"])
            print(out, "    gap: {}: {} in {}, first at {:#x}\n", gap["reason"].get<std::string>(),
                  counted(gap["bytes"].get<std::uint64_t>(), "byte"),
                  counted(gap["times"].get<std::uint64_t>(), "stretch", "stretches"),
                  gap["first_offset"].get<std::uint64_t>());
    }
    if (programmed == nullptr && details)
        print_registers(out, s);
    else if (programmed == nullptr && !s["registers"].empty())
        print(out, "  {} described (--details lists them)\n", counted(s["registers"].size(), "register"));
    if (memory == nullptr)
        print_memory(out, s, details);
    else
        print(out, "  memory as for source {}\n", label_of(*memory));
}

/// Bytes that are not frames seem to have a hundred IDs, so only a few IDs without a source are listed.
void print_ids(TextSink& out, const ordered_json& ids) {
    constexpr std::size_t most = 8;
    std::size_t unknown = 0;
    std::uint64_t more_bytes = 0;
    for (const auto& id : ids) {
        const bool known = !id["source"].is_null();
        if (!known && ++unknown > most)
            more_bytes += id["bytes"].get<std::uint64_t>();
        else
            print(out, "  {}  {:>10} bytes  {}\n", id["id"].get<std::string>(), plain(id["bytes"]),
                  known ? id["source"].get<std::string>() : "(no source described)");
    }
    if (unknown > most) print(out, "  {} more IDs without a source, {}\n", unknown - most, counted(more_bytes, "byte"));
}

void print_text(TextSink& out, const ordered_json& info, const answers::Account& account,
                const pipeline::Continuations& continuations, bool details) {
    print(out, "capture {}\n", info["capture"].get<std::string>());
    if (info.contains("description")) print(out, "  {}\n", info["description"].get<std::string>());
    print_account(out, account);
    if (const std::string text = continuations.text(); !text.empty()) print(out, "  {}\n", text);
    for (const auto& b : info["buffers"]) {
        if (continuations.has_buffer(b["name"].get<std::string>())) continue;
        std::string files;
        for (const auto& file : b["files"]) files += (files.empty() ? "" : ", ") + file.get<std::string>();
        const std::uint64_t bytes = b["bytes"].get<std::uint64_t>();
        print(out, "\nbuffer {}  {}, {}, {}\n", b["name"].get<std::string>(), b["format"].get<std::string>(),
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
        print_words(out, "  ", words);
        print_words(out, fmt::format("  {} bytes = ", plain(b["bytes"])), places, " + ");
        print_ids(out, b["ids"]);
    }
    for (const auto& s : info["sources"])
        if (!continuations.has_source(s["name"].get<std::string>())) print_source(out, info["sources"], s, details);
    if (info.contains("maps")) print_maps(out, info["maps"]);
    if (info.contains("peculiarities") && !info["peculiarities"].empty()) {
        out.write("\npeculiarities of this file\n");
        for (const auto& p : info["peculiarities"])
            print(out, "  - {}: {}\n", p["kind"].get<std::string>(), p["text"].get<std::string>());
    }
    if (info["problems"].empty()) {
        if (!answers::completeness(account).strict) out.write("\nNothing wrong was found.\n");
        return;
    }
    out.write("\nremarks\n");
    for (const auto& problem : info["problems"]) print(out, "  - {}\n", problem.get<std::string>());
}

}  // namespace

Looked looked_at(const pipeline::Session& session, const pipeline::Report& report) {
    Looked out;
    for (const pipeline::BufferReport& buffer : report.buffers) {
        out.bytes += buffer.bytes;
        out.of += buffer.error ? buffer.bytes : whole_bytes(buffer, session);
    }
    return out;
}

void print_capture_info(TextSink& out, const pipeline::Session& session,
                        const std::vector<const pipeline::Source*>& selected, const pipeline::Report& report,
                        const answers::Account& account, const InfoOptions& options) {
    const ordered_json info = describe(session, selected, report, account, options.threads);
    if (options.format == LineFormat::text)
        print_text(out, info, account, {session, selected, report}, options.details);
    else
        print_document(out, info, options.format);
}

}  // namespace waymark::listing
