/// `waymark messages`: lists messages of units that do not trace program flow.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "options.h"
#include "selected_session.h"
#include "trouble.h"
#include "waymark/answers/account.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/capture/live_stream.h"
#include "waymark/command_line/terminal.h"
#include "waymark/core/file_error.h"
#include "waymark/core/utf8.h"
#include "waymark/listing/messages.h"
#include "waymark/pipeline/account.h"
#include "waymark/pipeline/diagnosis.h"
#include "waymark/pipeline/message_answers.h"
#include "waymark/pipeline/piece_reader.h"
#include "waymark/syst/records.h"

namespace waymark::cli {

namespace {

using protocol::MessageKind;

struct MessageOptions {
    InputOptions input;
    std::string format = "text";
    std::vector<std::string> kinds;
    std::vector<std::uint32_t> ports, masters, channels;
    std::string layout, client;
    std::vector<std::string> catalogs;
    bool strict = false, follow = false;
};

constexpr const char* all_kinds = "all";

std::vector<std::string> kind_words() {
    std::vector<std::string> out;
    for (unsigned kind = 0; kind < protocol::message_kinds; ++kind)
        out.emplace_back(protocol::name(static_cast<MessageKind>(kind)));
    out.emplace_back(all_kinds);
    return out;
}

listing::MessageChoice choice_of(const MessageOptions& options) {
    listing::MessageChoice out;
    out.ports.insert(options.ports.begin(), options.ports.end());
    out.masters.insert(options.masters.begin(), options.masters.end());
    out.channels.insert(options.channels.begin(), options.channels.end());
    const std::vector<std::string> words = kind_words();
    for (const std::string& kind : options.kinds) {
        if (kind == all_kinds) {
            out.kinds.clear();
            return out;
        }
        out.kinds.insert(static_cast<MessageKind>(std::find(words.begin(), words.end(), kind) - words.begin()));
    }
    // By default, show software's writes and gaps.
    if (out.kinds.empty())
        out.kinds = {MessageKind::text, MessageKind::record, MessageKind::overflow, MessageKind::damage};
    return out;
}

Error no_messages(const std::string& capture, const std::string& what) {
    return Error{Errc::not_found, fmt::format("{}: {}; only an ITM or STM sends messages", capture, what)};
}

std::vector<std::string> layout_words() {
    std::vector<std::string> out;
    for (unsigned layout = 0; layout < syst::layouts; ++layout)
        out.emplace_back(syst::name(static_cast<syst::Layout>(layout)));
    return out;
}

/// How writes are joined to records; nullopt if they are not. `collateral` gets the contents of the collateral files.
Result<std::optional<listing::RecordChoice>> records_of(const MessageOptions& options, syst::Collateral& collateral) {
    std::optional<listing::RecordChoice> out;
    if (!options.layout.empty()) {
        const std::vector<std::string> words = layout_words();
        out.emplace();
        out->layout = static_cast<syst::Layout>(std::find(words.begin(), words.end(), options.layout) - words.begin());
    }
    if (options.catalogs.empty() && options.client.empty()) return out;
    if (!out) out.emplace();
    if (out->layout != syst::Layout::sys_t) return Error{Errc::usage, "--catalog and --client are for --layout sys-t"};
    if (options.catalogs.empty())
        return Error{Errc::usage, "--client names a client of a --catalog, but no --catalog is given"};
    for (const std::string& file : options.catalogs) {
        WM_ASSIGN_OR_RETURN(auto stream, capture::open_bytes(file));
        WM_ASSIGN_OR_RETURN(const auto bytes, capture::read_all(*stream, syst::Collateral::most_bytes));
        if (auto error = collateral.add({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file))
            return *error;
    }
    out->collateral = &collateral;
    if (options.client.empty()) return out;
    out->client = collateral.named(options.client);
    if (out->client == nullptr) {
        std::string names;
        for (const syst::Client& client : collateral.clients()) names += (names.empty() ? "" : ", ") + client.name;
        return Error{Errc::not_found,
                     fmt::format("no client '{}' in --catalog; it has {}", options.client, one_line(names))};
    }
    return out;
}

volatile std::sig_atomic_t follow_over = 0;
extern "C" void end_following(int) { follow_over = 1; }

/// During its lifetime, SIGINT and SIGTERM end only this wait for new messages, so that the messages received so far
/// are listed.
class Following {
public:
    Following() {
        struct sigaction action {};
        action.sa_handler = end_following;
        sigemptyset(&action.sa_mask);
        for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &action, &before_[i]);
    }
    ~Following() {
        for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
    }
    Following(const Following&) = delete;
    Following& operator=(const Following&) = delete;

    [[nodiscard]] static bool over() { return follow_over != 0; }
    /// Waits for the file's first byte.
    static void wait_for(const std::string& path) {
        constexpr int milliseconds = 50;
        std::error_code none;
        while (!over() && std::filesystem::is_regular_file(path, none) && std::filesystem::file_size(path, none) == 0)
            ::poll(nullptr, 0, milliseconds);
    }

private:
    static constexpr std::array<int, 2> signals{SIGINT, SIGTERM};
    std::array<struct sigaction, 2> before_{};
};

/// Lists messages until the stream ends or a signal arrives.
pipeline::Report list_live(const pipeline::Session& session, const std::vector<const pipeline::Source*>& sources,
                           listing::MessageListing& messages, Output& out) {
    const auto open = [&](const capture::Buffer& buffer) -> Result<std::unique_ptr<capture::ByteStream>> {
        if (buffer.container != nullptr || buffer.files.size() != 1)
            return Error{Errc::usage,
                         fmt::format("buffer '{}': it is not a single file, and --follow reads only one", buffer.name)};
        return capture::follow_bytes(buffer.files.front(), {Following::over, [&] {
                                                                messages.deliver_held();
                                                                out.write_now();
                                                            }});
    };
    pipeline::PieceReader reader(
        session, sources, [&](const pipeline::StreamInfo& stream) { return messages.of(stream); }, open, nullptr, true);
    while (reader.step()) out.write_now();
    return reader.report();
}

/// Connects standard input to the server that `tcp:PORT` names. False if the capture's name has another form.
Result<bool> connect_input(MessageOptions& options) {
    WM_ASSIGN_OR_RETURN(const auto address, capture::tcp_address(options.input.capture));
    if (!address) return false;
    if (!options.follow) return Error{Errc::usage, options.input.capture + ": a TCP port is read with --follow"};
    WM_ASSIGN_OR_RETURN(const int descriptor, capture::connect_to(*address));
    if (::dup2(descriptor, STDIN_FILENO) < 0)
        return Error{Errc::unreadable, fmt::format("{}: {}", options.input.capture, reason(errno))};
    ::close(descriptor);
    options.input.capture = "-";
    return true;
}

/// Whether the capture lacks a part that --strict requires: it reads the trace a second time. Standard input and
/// growing files can be read only once, and have no description that states more losses than the trace.
bool is_part(const MessageOptions& options, const pipeline::Session& session,
             const std::vector<const pipeline::Source*>& sources) {
    return !options.follow && options.input.capture != "-" &&
           answers::completeness(pipeline::account_of(session, sources)).strict;
}

ExitStatus run_messages(MessageOptions& options) {
    std::optional<Following> following;
    if (options.follow) {
        if (!options.input.output.empty())
            return fail({Errc::usage, "--follow writes to standard output: leave out -o"});
        refuse_pager();
        following.emplace();
        Following::wait_for(options.input.capture);
    }
    if (const auto connected = connect_input(options); !connected) return fail(connected.error());
    const std::string& capture = options.input.capture;
    const Content content = options.input.container().contents();
    if (content == Content::counters || content == Content::samples) {
        say("error", no_messages(capture, "it has no source with messages").message);
        return nothing;
    }
    syst::Collateral collateral;
    const auto records = records_of(options, collateral);
    if (!records) return fail(records.error());
    const auto opened = open_selected(options.input);
    if (!opened) return fail(opened.error());
    const pipeline::Session& session = opened->session;
    std::vector<const pipeline::Source*> sources;
    for (const pipeline::Source* source : opened->selected)
        if (pipeline::has_messages(*source)) sources.push_back(source);
    if (sources.empty()) {
        say("error", no_messages(capture, "none of the selected sources has messages").message);
        return nothing;
    }
    auto out = Output::open(options.input.output, options.input.files());
    if (!out) return fail(out.error());
    listing::MessageListing messages(*out, listing::format_of(options.format), choice_of(options), *records);
    ProgressLine progress;
    const pipeline::Report report =
        options.follow ? list_live(session, sources, messages, *out)
                       : pipeline::run(
                             session, sources, [&](const pipeline::StreamInfo& stream) { return messages.of(stream); },
                             shown_on(progress));
    if (out->close() != decoded) return unreadable;
    const bool read_errors = report_read_errors(session, report);
    for (const pipeline::BufferReport& buffer : report.buffers) say_damage(pipeline::damage_in(buffer));
    say_damage(listing::MessageListing::damage_in(report));
    const listing::MessagesListed listed = messages.listed();
    if (listed.unconfirmed != 0)
        say("note", fmt::format("{} of {}: no synchronisation packet confirms where they begin; a packet is assumed to "
                                "begin at the first byte",
                                grouped(listed.unconfirmed), counted(listed.messages, "message")));
    if (listed.problems != 0)
        say("warning", fmt::format("{} of {} could not be read completely; the first: {}", grouped(listed.problems),
                                   counted(listed.listed, "message"), one_line(listed.problem)));
    ExitStatus status = decoded;
    if (listed.messages == 0) {
        say("error", with_doctor("nothing decoded: " + pipeline::why_no_messages(session, sources, report),
                                 options.input.capture, options.input.images));
        status = nothing;
    } else if (listed.listed == 0) {
        std::string met;
        for (unsigned kind = 0; kind < protocol::message_kinds; ++kind)
            if (listed.of[kind] != 0)
                met += fmt::format("{}{} {}", met.empty() ? "" : ", ", grouped(listed.of[kind]),
                                   protocol::name(static_cast<MessageKind>(kind)));
        say("error",
            fmt::format("no message of the requested kinds, ports, masters and channels; the capture has {} (--kind)",
                        met));
        status = nothing;
    } else if (options.strict &&
               (listed.problems != 0 || listed.of[static_cast<unsigned>(MessageKind::overflow)] != 0 ||
                listed.of[static_cast<unsigned>(MessageKind::damage)] != 0 || is_part(options, session, sources))) {
        say("error", "messages were lost, or could not be read (--strict)");
        status = nothing;
    }
    return read_errors ? unreadable : status;
}

}  // namespace

Run add_messages(const Command& app);
Run add_messages(const Command& app) {
    auto options = std::make_shared<MessageOptions>();
    const Command command = app.add("messages");
    options->input.add_to(command);
    command.option("--format", options->format);
    command.option("--kind", options->kinds)->transform(one_of(kind_words()));
    command.option("--port", options->ports)->check(range(0, 255));
    command.option("--master", options->masters)->check(range(0, 0xffff));
    command.option("--channel", options->channels)->check(range(0, 0xffff));
    command.option("--layout", options->layout)->transform(one_of(layout_words()));
    command.option("--catalog", options->catalogs);
    command.option("--client", options->client);
    command.flag("--follow", options->follow);
    command.flag("--strict", options->strict);
    return [options] { return run_messages(*options); };
}

}  // namespace waymark::cli
