/// `waymark spe records`: one line per sample, from perf.data or from the bare bytes of a profiling buffer.
#include "waymark/listing/spe_records.h"

#include <algorithm>
#include <memory>

#include "../options.h"
#include "../trouble.h"
#include "answers.h"
#include "commands.h"
#include "waymark/core/wire.h"

namespace waymark::cli {

namespace {

namespace perf = capture::perf;

struct RecordsOptions : ProfileInput {
    std::string kind = "all";
};

/// Refuses a file without any trace.
waymark::Status check_trace(const analysis::SampleCapture& capture) {
    const std::string& file = capture.file->name();
    if (capture.bare) return Nothing{};
    if (!capture.data->auxtrace_info)
        return Error{
            Errc::bad_format,
            fmt::format("{}: contains no AUXTRACE_INFO record, so no trace: was it recorded with -e arm_spe//?", file)};
    if (capture.data->chunks.empty())
        return Error{Errc::bad_format, fmt::format("{}: contains no AUXTRACE record, so no trace", file)};
    return Nothing{};
}

/// Prints the losses that the recorder reported.
void say_losses(const analysis::SampleCapture& capture) {
    const auto buffers = [&](std::uint64_t flags) {
        return static_cast<std::uint64_t>(
            std::count_if(capture.data->aux.begin(), capture.data->aux.end(),
                          [&](const perf::AuxRange& aux) { return (aux.flags & flags) != 0; }));
    };
    if (std::any_of(capture.streams.begin(), capture.streams.end(),
                    [&](const perf::Stream& s) { return capture.midr_of(s.cpu) == 0; }))
        say("note", "the core is not known, so data sources are numbers; name it with --midr");
    if (const std::uint64_t n = buffers(perf::AuxRange::truncated | perf::AuxRange::partial); n != 0)
        say("warning", fmt::format("the buffer overflowed {}: samples are missing there", times(n)));
    if (const std::uint64_t n = buffers(perf::AuxRange::collision); n != 0)
        say("note", fmt::format("samples collided in {}: the interval is short for this load", counted(n, "buffer")));
}

ExitStatus run_records(const RecordsOptions& options) {
    std::uint64_t midr = 0;
    if (!options.midr.empty() && (!wire::scan_number(options.midr, midr) || midr > 0xffffffff))
        return fail(
            {Errc::usage, fmt::format("--midr takes the core's MIDR_EL1, such as 0x410fd0c0, not '{}'", options.midr)});
    const auto capture = open::open_samples(open::identify(options.capture), static_cast<std::uint32_t>(midr));
    if (!capture) return fail(capture.error());
    auto out = Output::open(options.output, {options.capture});
    if (!out) return fail(out.error());
    say_all("error", doctor::file_damage(*capture));
    waymark::Status done = check_trace(*capture);
    listing::RecordsListed listed;
    if (done) {
        listing::RecordListingOptions how;
        how.format = listing::format_of(options.format);
        if (options.kind == "ldst") how.kind = spe::OperationClass::load_store;
        if (options.kind == "br") how.kind = spe::OperationClass::branch;
        if (options.kind == "other") how.kind = spe::OperationClass::other;
        how.mid_record = options.mid_record;
        how.workers = workers(options.jobs);
        ShowProgress progress;
        listed = listing::list_spe_records(*capture, how, *out, &progress);
        if (listed.error) done = *listed.error;
        say_gathered("warning", listed.warnings);
        say_gathered("note", listed.notes);
    }
    if (done && !capture->bare) say_losses(*capture);
    if (out->close() != decoded) return unreadable;
    if (!done) return fail(done.error());
    // A file with missing parts was not read to its end, even if the other parts gave results.
    if (!capture->damage.empty() || capture->data->loss_count != 0) return unreadable;
    if (listed.records == listed.no_pc) {
        say("error", "no record with a PC: this does not look like an SPE buffer, or it is empty");
        return nothing;
    }
    if (listed.shown == 0)
        say("note", fmt::format("none of {} is of kind {}", counted(listed.records, "record"), options.kind));
    if (const auto doubt =
            doctor::hardly_a_buffer(*capture, options.capture, listed.damaged + listed.no_pc, listed.records)) {
        say("error", *doubt);
        return nothing;
    }
    if (!options.strict || listed.lost_bytes + capture->data->lost_bytes + listed.damaged + listed.no_pc == 0)
        return decoded;
    say("error", "--strict: something was lost or damaged; waymark spe quality shows where");
    return nothing;
}

}  // namespace

Run add_spe_records(const Command& app) {
    auto options = std::make_shared<RecordsOptions>();
    const Command command = app.add("records");
    options->add_capture_to(command);
    command.option("--format", options->format);
    command.option("--kind", options->kind);
    options->add_reading_to(command);
    return [options] { return run_records(*options); };
}

}  // namespace waymark::cli
