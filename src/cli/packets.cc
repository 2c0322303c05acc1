/// `waymark packets`: lists packets of the trace.
#include <algorithm>
#include <memory>
#include <set>

#include "commands.h"
#include "dpu/listing.h"
#include "options.h"
#include "selected_session.h"
#include "spe/answers.h"
#include "trouble.h"
#include "unit_answers.h"
#include "waymark/listing/packets.h"
#include "waymark/pipeline/diagnosis.h"
#include "waymark/pipeline/protocols.h"

namespace waymark::cli {

namespace {

struct PacketOptions {
    InputOptions input;
    std::string format = "text";
    std::vector<std::string> types;
};

/// Each unit has its own packet types. `usage`: a requested type exists in none of these units.
waymark::Status check_types(const PacketOptions& options, const std::vector<const pipeline::Protocol*>& protocols) {
    if (protocols.empty()) return Nothing{};
    std::vector<std::string> known, units;
    for (const pipeline::Protocol* protocol : protocols) {
        for (std::string& name : protocol->packet_names()) known.push_back(std::move(name));
        units.emplace_back(protocol->words().unit_title);
    }
    for (const std::string& type : options.types)
        if (std::find(known.begin(), known.end(), type) == known.end())
            return Error{Errc::usage,
                         fmt::format("--type {}: {} is a capture of a {}, which has no such packets; it has {}. See "
                                     "waymark packets --help",
                                     type, options.input.capture, fmt::join(units, " and a "), fmt::join(known, ", "))};
    return Nothing{};
}

/// The protocols of the sources, each once.
std::vector<const pipeline::Protocol*> protocols_of(const std::vector<const pipeline::Source*>& sources) {
    std::vector<const pipeline::Protocol*> out;
    for (const pipeline::Source* source : sources)
        if (source->has_packets() && std::find(out.begin(), out.end(), source->protocol) == out.end())
            out.push_back(source->protocol);
    return out;
}

ExitStatus run_spe_packets(const InputOptions& input, const std::string& format,
                           const std::vector<std::string>& types) {
    const auto capture = open::open_samples(input.container());
    if (!capture) return fail(not_opened(capture.error()));
    auto out = Output::open(input.output, input.files());
    if (!out) return fail(out.error());
    listing::PacketsListed listed;
    const auto done =
        listing::list_spe_packets(*capture, *out, listing::format_of(format), {types.begin(), types.end()}, listed);
    if (out->close() != decoded) return unreadable;
    if (!done) return fail(done.error());
    ExitStatus status = nothing;
    say_gaps(listed);
    if (listed.packets == 0)
        say("error", "nothing decoded: the file contains no trace of a Statistical Profiling unit");
    else
        status = say_types_not_found(types, listed, "packet");
    return say_all("error", doctor::file_damage(*capture)) ? unreadable : status;
}

ExitStatus run_packets(const PacketOptions& options) {
    const Content contents = options.input.container().contents();
    if (contents == Content::counters) {
        if (const auto known = check_types(options, {pipeline::protocol_of_unit("DPU")}); !known)
            return fail(known.error());
        return run_dpu_packets(options.input, options.format, options.types);
    }
    if (contents == Content::samples) {
        if (const auto known = check_types(options, {pipeline::protocol_of_unit("SPE")}); !known)
            return fail(known.error());
        return run_spe_packets(options.input, options.format, options.types);
    }
    const auto opened = open_selected(options.input);
    if (!opened) return fail(opened.error());
    const pipeline::Session& session = opened->session;
    if (const auto known = check_types(options, protocols_of(opened->selected)); !known) return fail(known.error());
    const std::vector<const pipeline::Source*> sources = listable(opened->selected);
    auto out = Output::open(options.input.output, options.input.files());
    if (!out) return fail(out.error());
    const listing::PacketTypes types(options.types.begin(), options.types.end());
    listing::PacketListing packets(*out, listing::format_of(options.format), types);
    ProgressLine progress;
    const pipeline::Report report = pipeline::run(
        session, sources, [&](const pipeline::StreamInfo& stream) { return packets.of(stream); }, shown_on(progress));
    if (out->close() != decoded) return unreadable;
    const bool read_errors = report_read_errors(session, report);
    for (const pipeline::BufferReport& buffer : report.buffers) say_damage(pipeline::damage_in(buffer));
    say_damage(listing::PacketListing::damage_in(report));
    const listing::PacketsListed listed = packets.listed();
    ExitStatus status = nothing;
    if (listed.packets == 0)
        say("error", with_doctor("nothing decoded: " + pipeline::why_nothing(session, opened->selected, report, {}),
                                 options.input.capture, options.input.images));
    else
        status = say_types_not_found(options.types, listed, "packet");
    return read_errors ? unreadable : status;
}

}  // namespace

Run add_packets(const Command& app) {
    auto options = std::make_shared<PacketOptions>();
    const Command command = app.add("packets");
    options->input.add_to(command);
    command.option("--format", options->format);
    std::vector<std::string> types;
    std::string of_units;
    for (const pipeline::Protocol* protocol : pipeline::protocols()) {
        const std::vector<std::string> names = protocol->packet_names();
        of_units +=
            fmt::format("{}{}: {}", of_units.empty() ? "" : "; ", protocol->words().unit, fmt::join(names, ", "));
        for (const std::string& name : names)
            if (std::find(types.begin(), types.end(), name) == types.end()) types.push_back(name);
    }
    command.option("--type", options->types)->transform(one_of(types));
    command.fill_footer("types", of_units);
    return [options] { return run_packets(*options); };
}

}  // namespace waymark::cli
