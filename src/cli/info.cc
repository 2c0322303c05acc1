/// `waymark info`: the contents of a capture, how its units were programmed, and its problems.
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "answers.h"
#include "commands.h"
#include "dpu/listing.h"
#include "info_others.h"
#include "options.h"
#include "trouble.h"
#include "waymark/answers/account.h"
#include "waymark/capture/temporary_file.h"
#include "waymark/core/file_error.h"
#include "waymark/doctor/sample.h"
#include "waymark/listing/capture_info.h"
#include "waymark/pipeline/account.h"
#include "waymark/pipeline/diagnosis.h"
#include "waymark/pipeline/message_answers.h"
#include "waymark/pipeline/packet_counter.h"
#include "waymark/pipeline/problems.h"
#include "waymark/pipeline/process_survey.h"

namespace waymark::cli {

namespace {

using pipeline::PacketCounter;

struct InfoCommandOptions {
    InputOptions input;
    std::string format = "text";
    std::uint64_t sample_mib = doctor::sample_bytes >> 20;
    bool details = false;
};

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

ExitStatus run_info(const InfoCommandOptions& options) {
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
    if (const listing::Looked looked = listing::looked_at(session, report); looked.bytes == looked.of)
        account = pipeline::has_messages_alone(*selected)
                      ? pipeline::counted_account(session, *selected, report)
                      : pipeline::account_of(session, *selected, shown_on(progress), &unread);
    listing::print_capture_info(*out, session, *selected, report, account,
                                {listing::format_of(options.format), options.details, workers(0)});
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

Run add_info(const Command& app) {
    auto options = std::make_shared<InfoCommandOptions>();
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
