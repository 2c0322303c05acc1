/// `waymark info`: the contents of a capture, how its units were programmed, and its problems.
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "answers.h"
#include "commands.h"
#include "dpu/listing.h"
#include "info_others.h"
#include "info_text.h"
#include "maps_listing.h"
#include "options.h"
#include "table.h"
#include "trouble.h"
#include "waymark/answers/account.h"
#include "waymark/capture/temporary_file.h"
#include "waymark/core/file_error.h"
#include "waymark/coresight/guess.h"
#include "waymark/doctor/sample.h"
#include "waymark/pipeline/account.h"
#include "waymark/pipeline/diagnosis.h"
#include "waymark/pipeline/message_answers.h"
#include "waymark/pipeline/packet_counter.h"
#include "waymark/pipeline/problems.h"
#include "waymark/pipeline/process_survey.h"

namespace waymark::cli {

namespace {

using nlohmann::ordered_json;
using pipeline::PacketCounter;

struct InfoOptions {
    InputOptions input;
    std::string format = "text";
    std::uint64_t sample_mib = doctor::sample_bytes >> 20;
    bool details = false;
};

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

/// Size of the trace in a buffer that consists of parts.
std::uint64_t whole_bytes(const pipeline::BufferReport& report, const pipeline::Session& session) {
    const capture::Buffer* whole = session.capture.find_buffer(report.name);
    return whole == nullptr || whole->parts.empty() ? report.bytes : capture::bytes_in(whole->parts);
}

/// The part of the trace that was read.
struct Looked {
    std::uint64_t bytes{}, of{};
};
Looked looked_at(const pipeline::Session& session, const pipeline::Report& report) {
    Looked out;
    for (const pipeline::BufferReport& buffer : report.buffers) {
        out.bytes += buffer.bytes;
        out.of += buffer.error ? buffer.bytes : whole_bytes(buffer, session);
    }
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
                   const std::vector<const pipeline::Source*>& selected) {
    const pipeline::ProcessSurvey survey =
        pipeline::survey_processes(session, selected, doctor::sample_bytes, workers(0));
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
                      const pipeline::Report& report, const answers::Account& account) {
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
    info["problems"] = gathered(session.problems);
    for (const std::string& problem : pipeline::problems_in(session, selected, report))
        info["problems"].push_back(problem);
    if (const Looked looked = looked_at(session, report); looked.bytes < looked.of)
        info["problems"].push_back(fmt::format(
            "frames and packets were counted in {} of {} bytes of trace, from the beginning of each buffer on; "
            "--sample 0 counts all",
            grouped(looked.bytes), grouped(looked.of)));
    if (session.capture.spaces != nullptr) add_processes(info, session, selected);
    return info;
}

// ---- text

/// Prints every leaf as a line: its path and its value.
void print_tsv(Output& out, const ordered_json& value, const std::string& path) {
    if (value.is_structured()) {
        std::size_t index = 0;
        for (const auto& [key, below] : value.items()) {
            const std::string step = value.is_array() ? std::to_string(index++) : key;
            print_tsv(out, below, path.empty() ? step : path + "/" + step);
        }
        return;
    }
    out.print("{}\t{}\n", path, value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump());
}

/// Replaces standard input by a temporary file with its bytes, unless it is a file already: the contents decide which
/// reader is used, and a pipe can be read only once. Error `unreadable`: the bytes cannot be read, or there is no room
/// for them.
waymark::Status keep_standard_input() {
    struct stat about {};
    if (::fstat(STDIN_FILENO, &about) == 0 && S_ISREG(about.st_mode)) return Nothing{};
    const auto failed = [](std::string_view what) {
        return Error{Errc::unreadable, fmt::format("cannot {}: {}", what, reason(errno))};
    };
    WM_ASSIGN_OR_RETURN(const int descriptor, capture::open_temporary_file("standard input"));
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(::fdopen(descriptor, "w+b"), &std::fclose);
    if (!file) return failed("create a temporary file for standard input");
    std::vector<char> piece(1 << 16);
    for (ssize_t count = 0; (count = ::read(STDIN_FILENO, piece.data(), piece.size())) != 0;) {
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return failed("read standard input");
        if (std::fwrite(piece.data(), 1, static_cast<std::size_t>(count), file.get()) !=
            static_cast<std::size_t>(count))
            return failed("keep standard input in a temporary file");
    }
    if (std::fflush(file.get()) != 0 || ::lseek(::fileno(file.get()), 0, SEEK_SET) != 0 ||
        ::dup2(::fileno(file.get()), STDIN_FILENO) < 0)
        return failed("keep standard input in a temporary file");
    return Nothing{};
}

ExitStatus run_info(const InfoOptions& options) {
    // A bare file is examined piece by piece, and a pipe can be read only once.
    if (options.input.capture == "-" && is_bare(options.input))
        if (const auto kept = keep_standard_input(); !kept) return fail(kept.error());
    const open::Container& container = options.input.container();
    if (const auto taken_out = trace_taken_out(container)) return fail_answers(*taken_out, {});
    switch (container.contents()) {
        case Content::counters: return run_dpu_info(options.input, options.format);
        case Content::branch_lists: return run_branch_list_info(options.input, options.format);
        case Content::samples: return run_profile_info(options.input, options.format);
        case Content::flow: break;
        case Content::answers:
        case Content::bytes:
        case Content::nothing:
            if (is_bare(options.input)) return run_bare_info(options.input, options.format);
    }
    auto opened = open_session(options.input);
    if (!opened) return fail(opened.error());
    const pipeline::Session session = std::move(*opened);
    const auto selected = session.select(options.input.sources);
    if (!selected) return fail(selected.error());
    auto out = Output::open(options.input.output, options.input.files());
    if (!out) return fail(out.error());
    ProgressLine progress;
    // Counting the packets of a large file takes long and changes little.
    std::optional<pipeline::Session> part;
    if (options.sample_mib != 0 && session.capture.spaces != nullptr)
        pipeline::shorten(part.emplace(session).capture, options.sample_mib << 20);
    const pipeline::Report report =
        pipeline::run(part ? *part : session, *selected, pipeline::count_packets, shown_on(progress));
    // Part of the trace cannot account for the whole run.
    answers::Account account;
    std::vector<Error> unread;
    if (const Looked looked = looked_at(session, report); looked.bytes == looked.of)
        account = pipeline::has_messages_alone(*selected)
                      ? pipeline::counted_account(session, *selected, report)
                      : pipeline::account_of(session, *selected, shown_on(progress), &unread);
    const ordered_json info = describe(session, *selected, report, account);
    if (options.format == "text")
        print_snapshot_info(*out, info, account, {session, *selected, report}, options.details);
    else
        print_info_for_programs(*out, info, options.format);
    if (out->close() != decoded) return unreadable;
    const bool read_errors = report_read_errors(session, report) || say_unread(unread);
    std::uint64_t packets = 0;
    for (const pipeline::StreamReport& stream : report.streams) {
        const auto* counter = dynamic_cast<const PacketCounter*>(stream.consumer.get());
        if (counter == nullptr) continue;
        for (const auto& [name, count] : counter->survey().packets) packets += count;
    }
    if (packets == 0)
        say("error", with_doctor("nothing decoded: " + pipeline::why_nothing(session, *selected, report, {}),
                                 options.input.capture, options.input.images));
    return read_errors ? unreadable : packets == 0 ? nothing : decoded;
}

}  // namespace

void print_info_for_programs(Output& out, const ordered_json& info, const std::string& format) {
    if (format == "json") {
        out.write(json_text(info) + "\n");
        return;
    }
    out.write("item\tvalue\n");
    print_tsv(out, info, "");
}

Run add_info(const Command& app) {
    auto options = std::make_shared<InfoOptions>();
    const Command command = app.add("info");
    options->input.add_to(command);
    std::vector<std::string_view> units;
    for (const pipeline::Protocol* protocol : pipeline::protocols())
        if (!protocol->option_names().empty() || !protocol->how_to_read("-").empty())
            units.push_back(protocol->words().unit);
    const std::string_view last = units.back();
    units.pop_back();
    command.get_option("CAPTURE")->description(fmt::format(
        "Any capture: a snapshot folder or its snapshot.ini; a folder with a dpu.ini (DPU); a perf.data file, also as "
        "written to a pipe; text of perf script with branch stacks; or a bare buffer of {}. Files may be compressed "
        "(.gz, .zst); - is standard input. What a "
        "bare buffer contains is inferred from its bytes, unless --protocol is given",
        fmt::format("{} or {}", fmt::join(units, ", "), last)));
    command.option("--format", options->format);
    command.flag("--details", options->details);
    command.option("--sample", options->sample_mib)->check(range(std::uint64_t{0}, std::uint64_t{1} << 30));
    return [options] { return run_info(*options); };
}

}  // namespace waymark::cli
