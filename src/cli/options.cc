#include "options.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "info_others.h"
#include "trouble.h"
#include "unit_answers.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/capture/perf_cs_etm.h"
#include "waymark/capture/perf_file.h"
#include "waymark/capture/snapshot.h"
#include "waymark/core/regular_file.h"
#include "waymark/core/wire.h"
#include "waymark/coresight/dstream.h"
#include "waymark/coresight/guess.h"
#include "waymark/doctor/identify.h"
#include "waymark/pipeline/damage.h"

namespace waymark::cli {

namespace {

namespace fs = std::filesystem;

/// The names that --protocol takes.
std::string protocol_names() {
    std::string out;
    for (const pipeline::Protocol* protocol : pipeline::protocols()) {
        if (protocol->option_names().empty()) continue;
        if (!out.empty()) out += ", ";
        out += protocol->option_names();
    }
    return out;
}

/// Calls `take(protocol, option)` with every option that gives a register of a bare trace file.
template <class Take>
void each_register_option(Take&& take) {
    for (const pipeline::Protocol* protocol : pipeline::protocols())
        for (const protocol::RegisterOption& option : protocol->register_options()) take(*protocol, option);
}

Result<std::vector<std::uint8_t>> head_of(const std::string& path) {
    WM_ASSIGN_OR_RETURN(const auto stream, capture::open_bytes(path));
    std::vector<std::uint8_t> head(1 << 16);
    std::size_t have = 0;
    while (have < head.size()) {
        const auto count = stream->read(std::span(head).subspan(have));
        if (!count || *count == 0) break;
        have += *count;
    }
    head.resize(have);
    return head;
}

Result<capture::Buffer::Format> buffer_format(const InputOptions& options) {
    if (!options.buffer_format.empty()) {
        const auto format = capture::buffer_format(options.buffer_format);
        if (format == capture::Buffer::Format::unknown)
            return Error{Errc::usage,
                         fmt::format("--buffer-format '{}' is not known; known are coresight, source_data and "
                                     "dstream_coresight",
                                     options.buffer_format)};
        return format;
    }
    if (options.capture == "-") return capture::Buffer::Format::source_data;
    WM_ASSIGN_OR_RETURN(const auto head, head_of(options.capture));
    const coresight::FramingGuess guess = coresight::guess_framing(head);
    const auto format = guess.footers                                  ? capture::Buffer::Format::dstream_coresight
                        : guess.kind == coresight::BufferKind::aligned ? capture::Buffer::Format::coresight
                        : guess.kind == coresight::BufferKind::tpiu    ? capture::Buffer::Format::dstream_coresight
                                                                       : capture::Buffer::Format::source_data;
    say("note", fmt::format("{} looks like {}{}; if not, give --buffer-format", options.capture,
                            format == capture::Buffer::Format::coresight     ? "16-byte CoreSight frames (coresight)"
                            : format == capture::Buffer::Format::source_data ? "the bytes of one source (source_data)"
                            : guess.footers ? "the blocks of a DSTREAM, with CoreSight frames (dstream_coresight)"
                                            : "CoreSight frames with syncs (dstream_coresight)",
                            guess.confidence == coresight::Confidence::low ? ", with low confidence" : ""));
    return format;
}

/// Which sources have bytes in a bare file of frames. A few bytes without an A-sync are no source's: an ID was damaged.
class CountIds {
public:
    void data(coresight::TraceId id, Bytes bytes, Offset) {
        Seen& seen = seen_[id.value];
        seen.bytes += bytes.size();
        for (const std::uint8_t byte : bytes) {
            seen.async |= byte == 0x80 && seen.zeros >= 5;
            seen.zeros = byte == 0 ? seen.zeros + 1 : 0;
        }
    }
    void trigger(coresight::TraceId, Offset, std::uint8_t) {}
    void gap(const Gap&) {}
    void reset(Offset) {}
    [[nodiscard]] std::vector<std::uint8_t> ids() const {
        constexpr std::uint64_t bytes_of_a_source = 1024;
        std::vector<std::uint8_t> sources, all;
        for (unsigned id = 0; id < coresight::trace_ids; ++id) {
            if (seen_[id].bytes == 0) continue;
            all.push_back(static_cast<std::uint8_t>(id));
            if (seen_[id].async || seen_[id].bytes >= bytes_of_a_source) sources.push_back(all.back());
        }
        return sources.empty() ? all : sources;
    }

private:
    struct Seen {
        std::uint64_t bytes = 0, zeros = 0;
        bool async = false;
    };
    std::array<Seen, coresight::trace_ids> seen_{};
};
Result<std::vector<std::uint8_t>> ids_in(const std::string& path, capture::Buffer::Format format) {
    coresight::DstreamLayout layout{coresight::Framing::aligned, false};
    if (format == capture::Buffer::Format::dstream_coresight) {
        WM_ASSIGN_OR_RETURN(const auto head, head_of(path));
        layout = coresight::dstream_layout(head);
    }
    WM_ASSIGN_OR_RETURN(const auto stream, capture::open_bytes(path));
    coresight::DstreamDeformatter deformatter(layout);
    CountIds handler;
    std::vector<std::uint8_t> piece(1 << 20);
    for (;;) {
        const auto count = stream->read(piece);
        if (!count || *count == 0) break;  // reading again for real will report the failure
        deformatter.feed(Bytes(piece).first(*count), handler);
    }
    deformatter.finish(handler);
    return handler.ids();
}

/// What the bytes of a file without frames are; null: nothing that is known.
const pipeline::Protocol* protocol_in(std::vector<std::uint8_t> head) {
    const coresight::FramingGuess guess = coresight::guess_framing(head);
    if (guess.kind != coresight::BufferKind::raw && guess.confidence != coresight::Confidence::low) return nullptr;
    doctor::Stretch stretch;
    stretch.bytes = std::move(head);
    stretch.head = true;
    return doctor::identify({std::move(stretch)}).protocol;
}

/// A bare file that nothing describes: what it is, as far as its bytes show, and how to read it.
Error what_it_takes(const InputOptions& options) {
    const bool is_stream = options.capture == "-";
    const pipeline::Protocol* protocol = nullptr;
    if (!is_stream) {
        auto head = head_of(options.capture);
        if (!head) return std::move(head.error());
        if (capture::perf::is_perf_data(*head))
            return {Errc::usage, fmt::format("{} is a perf.data file: waymark spe quality {} shows what it contains, "
                                             "waymark spe report what it means",
                                             options.capture, options.capture)};
        protocol = protocol_in(std::move(*head));
    }
    if (protocol != nullptr)
        if (std::string how = protocol->how_to_read(options.capture); !how.empty())
            return {Errc::usage, std::move(how)};
    // The first protocol serves as the example.
    std::string registers;
    const pipeline::Protocol* const of = pipeline::protocols().front();
    const std::string_view unit = of->words().unit, names = of->option_names();
    for (const protocol::RegisterOption& option : of->register_options())
        registers += fmt::format("{}{} VALUE", registers.empty() ? "" : " ", option.option);
    return {Errc::usage,
            fmt::format(
                "{} is not a capture folder, which would contain snapshot.ini or dpu.ini{}. To decode it as the "
                "bare trace of a {}, give its protocol (--protocol {}), how the {} was programmed ({}), and what ran "
                "(--image FILE[@ADDRESS]){}",
                is_stream ? "standard input" : options.capture, is_stream ? "" : ", and no perf.data file", unit,
                names.substr(0, names.find(' ')), unit, registers,
                is_stream ? std::string() : fmt::format("; waymark doctor {} infers these values", options.capture))};
}

/// A perf.data file with trace of CoreSight units.
Result<capture::Capture> open_perf(const InputOptions& options, const capture::perf::PerfFile& file) {
    ProgressLine line;
    class Shown final : public capture::perf::Progress {
    public:
        explicit Shown(ProgressLine& to) : to_(to) {}
        void at(std::uint64_t bytes, std::uint64_t of) override {
            if (to_.active()) to_.show(bytes, of);
        }

    private:
        ProgressLine& to_;
    } progress(line);
    WM_ASSIGN_OR_RETURN(auto data, capture::perf::read_perf_data(file, &progress));
    return capture::perf::cs_etm_capture(options.capture, file.file, std::move(data));
}

std::string raw_option(const InputOptions& options);

Result<capture::Capture> open_raw(const InputOptions& options) {
    if (options.protocol.empty()) {
        if (options.capture == "-" || is_cs_etm(options.capture)) {
            const auto file = capture::perf::open_perf_file(options.capture);
            if (file && capture::perf::auxtrace_type(*file->file) == capture::perf::AuxtraceInfo::cs_etm) {
                if (!options.buffer_format.empty() || !options.trace_ids.empty() || !options.register_option().empty())
                    return Error{Errc::usage,
                                 fmt::format("{} is a perf.data file, which describes its contents and how it was "
                                             "recorded; leave out {}",
                                             options.capture, raw_option(options))};
                return open_perf(options, *file);
            }
        }
        if (auto error = other_file(options.capture)) return std::move(*error);
        return what_it_takes(options);
    }
    const pipeline::Protocol* const protocol = pipeline::protocol_of_option(options.protocol);
    if (protocol == nullptr)
        return Error{Errc::usage,
                     fmt::format("--protocol '{}' is not known; known are {}", options.protocol, protocol_names())};
    WM_ASSIGN_OR_RETURN(const auto format, buffer_format(options));
    capture::RawOptions raw;
    raw.format = format;
    raw.source_type = protocol->type_of_option(options.protocol);
    for (const protocol::RegisterOption& option : protocol->register_options()) {
        const auto given = options.registers.find(option.option);
        if (given == options.registers.end() || given->second.empty()) continue;
        WM_ASSIGN_OR_RETURN(const std::uint64_t value,
                            read_number(given->second, std::string(option.option), 0xffffffff));
        raw.registers.push_back({std::string(option.register_name), value});
    }
    const auto id_register = [&](std::uint8_t id) {
        const protocol::TraceIdField field = protocol->trace_id().value_or(protocol::TraceIdField{});
        return capture::Register{std::string(field.register_name), std::uint64_t{id} << field.lowest_bit};
    };

    std::vector<std::uint8_t> ids;
    for (const std::string& text : options.trace_ids) {
        std::uint64_t id = 0;
        if (!wire::scan_number(text, id) || id > 0x6f || !coresight::is_source({static_cast<std::uint8_t>(id)}))
            return Error{Errc::usage, fmt::format("--trace-id takes an ID from 0x01 to 0x6f, not '{}'", text)};
        if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(static_cast<std::uint8_t>(id));
    }
    if (format == capture::Buffer::Format::source_data) {
        if (ids.size() > 1)
            return Error{Errc::usage,
                         "source_data is the bytes of one source, so there can be one --trace-id at most; frames of "
                         "several need --buffer-format coresight or dstream_coresight"};
    } else if (ids.empty()) {
        if (options.capture == "-")
            return Error{Errc::usage,
                         "frames from standard input need --trace-id ID for each source to be decoded, since they can "
                         "be read only once"};
        WM_ASSIGN_OR_RETURN(ids, ids_in(options.capture, format));
    }
    const std::vector<capture::Register> registers = raw.registers;
    if (!ids.empty()) raw.registers.push_back(id_register(ids.front()));
    raw.source_name = ids.empty() ? "source" : fmt::format("source_{:02x}", ids.front());
    capture::Capture capture = capture::raw_capture(options.capture, raw);
    // Those named are the ones asked for, not all there are.
    capture.buffers.front().other_sources = !options.trace_ids.empty();
    for (std::size_t i = 1; i < ids.size(); ++i) {
        capture::Source another = capture.sources.front();
        another.name = fmt::format("source_{:02x}", ids[i]);
        another.registers = registers;
        another.registers.push_back(id_register(ids[i]));
        capture.buffers.front().sources.push_back(another.name);
        capture.sources.push_back(std::move(another));
    }
    return capture;
}

/// A folder that is no capture: names the captures in it that may be meant.
Error no_capture(const fs::path& folder) {
    std::string inside;
    std::error_code error;
    std::vector<std::string> captures;
    constexpr std::size_t most_looked_at = 1000;
    std::size_t looked_at = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
        if (++looked_at > most_looked_at) break;
        const bool is_folder =
            fs::exists(entry.path() / "snapshot.ini", error) || fs::exists(entry.path() / "dpu.ini", error);
        if (is_folder || is_profile(entry.path().string())) captures.push_back(entry.path().string());
    }
    std::sort(captures.begin(), captures.end());
    if (!captures.empty()) inside = fmt::format("; it contains {}: name that", captures.front());
    return {
        Errc::not_found,
        fmt::format("{}: this folder contains neither snapshot.ini nor dpu.ini, so it is not a capture{}",
                    folder.string(), inside.empty() ? "; name the folder that has one, or a perf.data file" : inside)};
}

/// The first option given that is for bare trace files only.
std::string raw_option(const InputOptions& options) {
    if (!options.protocol.empty()) return "--protocol";
    if (!options.buffer_format.empty()) return "--buffer-format";
    if (!options.trace_ids.empty()) return "--trace-id";
    return options.register_option();
}

}  // namespace

std::vector<std::string> InputOptions::files() const {
    std::vector<std::string> out = symbols;
    out.insert(out.end(), perf_maps.begin(), perf_maps.end());
    out.insert(out.end(), jitdumps.begin(), jitdumps.end());
    out.push_back(capture);
    for (const std::string& argument : images)
        if (const auto image = image::parse_image_argument(argument)) out.push_back(image->path.string());
    return out;
}

Result<std::uint64_t> read_number(const std::string& text, std::string_view option, std::uint64_t most) {
    std::uint64_t value = 0;
    if (!wire::scan_number(text, value) || value > most)
        return Error{Errc::usage, fmt::format("{} takes a number from 0 to {:#x} (0x for hexadecimal), not '{}'",
                                              option, most, text)};
    return value;
}

void InputOptions::add_to(CLI::App& command) {
    command
        .add_option("CAPTURE", capture,
                    "A snapshot folder or its snapshot.ini; a perf.data file; a folder with a dpu.ini (DPU); or a bare "
                    "trace file "
                    "(.gz and .zst too; - is standard input), which needs --protocol")
        ->required();
    command.add_option("--source", sources, "Only this source: trace ID (0x13) or name. May be repeated")
        ->type_name("ID|NAME")
        ->take_all();
    command
        .add_option("--image", images,
                    "Program image: an ELF file, or a memory dump with its address. May be repeated; added to the "
                    "capture's own "
                    "memory. Where images overlap, the last one given is used")
        ->type_name("FILE[@ADDRESS]")
        ->take_all();
    command.add_option("--symbols", symbols, "ELF file used for names only. May be repeated")
        ->type_name("FILE")
        ->take_all();
    add_folders_to(command);
    add_generated_to(command);
    command.add_option("-o,--output", output, "Output file instead of standard output")->type_name("FILE");
    const auto raw = [&](const std::string& name, std::string& value, const std::string& help, const char* type) {
        command.add_option(name, value, help)->type_name(type)->group("Bare trace files");
    };
    raw("--protocol", protocol, fmt::format("Protocol of the trace in the file: {}", protocol_names()), "NAME");
    raw("--buffer-format", buffer_format,
        "source_data: bytes of one source; coresight: 16-byte frames; dstream_coresight: frames with syncs. Guessed if "
        "not given "
        "(standard input: source_data)",
        "NAME");
    command
        .add_option("--trace-id", trace_ids,
                    "Source in a file of frames. May be repeated; all sources found if not given")
        ->type_name("ID")
        ->take_all()
        ->group("Bare trace files");
    each_register_option([&](const pipeline::Protocol&, const protocol::RegisterOption& option) {
        raw(std::string(option.option), registers[std::string(option.option)], std::string(option.help), "VALUE");
    });
}

std::string InputOptions::register_option() const {
    std::string out;
    each_register_option([&](const pipeline::Protocol&, const protocol::RegisterOption& option) {
        const auto given = registers.find(option.option);
        if (out.empty() && given != registers.end() && !given->second.empty()) out = option.option;
    });
    return out;
}

void InputOptions::add_folders_to(CLI::App& command) {
    constexpr const char* group = "Names";
    command
        .add_option(
            "--symfs", symfs,
            "Folder with the programs and libraries of the recorded machine, searched by path, then by name alone; "
            "default: the files of this machine")
        ->type_name("DIR")
        ->group(group);
    command
        .add_option("--debug-dir", debug_folders,
                    "Folder of debug files by build ID, such as ~/.debug or /usr/lib/debug. May be repeated")
        ->type_name("DIR")
        ->allow_extra_args(false)
        ->take_all()
        ->group(group);
}

void InputOptions::add_generated_to(CLI::App& command) {
    const auto add = [&](const char* name, std::vector<std::string>& into, const char* help) {
        command.add_option(name, into, help)->type_name("FILE")->allow_extra_args(false)->take_all()->group("Names");
    };
    add("--perf-map", perf_maps,
        "Names of generated code (JIT): lines START SIZE NAME, as in /tmp/perf-PID.map. If several lines name an "
        "address, the last one is used. May be repeated");
    add("--jitdump", jitdumps,
        "The same from a jitdump file (jit-PID.dump). It also contains the code, so if an address has several names, "
        "each is used where its code ran. May be repeated");
}

Result<image::FileSearch> InputOptions::file_search() const {
    image::FileSearch out{symfs, {debug_folders.begin(), debug_folders.end()}};
    std::error_code ignored;
    const auto check = [&](const char* option, const std::string& folder) -> waymark::Status {
        if (fs::is_directory(folder, ignored)) return Nothing{};
        return Error{Errc::usage, fmt::format("{}: {} is not a folder", option, folder)};
    };
    if (!symfs.empty()) WM_RETURN_IF_ERROR(check("--symfs", symfs));
    for (const std::string& folder : debug_folders) WM_RETURN_IF_ERROR(check("--debug-dir", folder));
    return out;
}

std::optional<Error> other_file(const std::string& path) {
    if (path == "-" || no_regular_file(path)) return {};
    const auto head = head_of(path);
    if (!head) return {};
    const std::string_view text(reinterpret_cast<const char*>(head->data()), head->size());
    if (text.starts_with("\x7f"
                         "ELF"))
        return Error{
            Errc::usage,
            fmt::format("{} is an ELF file, a program or a library, and contains no trace. Name the capture, and "
                        "give this file with --image {}",
                        path, path)};
    constexpr std::size_t least_bytes = 8;
    const bool readable = std::all_of(
        text.begin(), text.end(), [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t'; });
    if (readable && text.size() >= least_bytes)
        return Error{Errc::usage,
                     fmt::format("{} is a text file and contains no trace. Name a capture folder, a perf.data "
                                 "file, or the file of a trace buffer",
                                 path)};
    return {};
}

bool is_bare(const InputOptions& options) {
    std::error_code error;
    const fs::path path = options.capture;
    if (!raw_option(options).empty() || !options.images.empty() || !options.symbols.empty() ||
        !options.perf_maps.empty() || !options.jitdumps.empty() || !options.sources.empty())
        return false;
    return options.capture == "-" || (fs::exists(path, error) && !fs::is_directory(path, error) &&
                                      path.extension() != ".ini" && !no_regular_file(path));
}

Result<pipeline::Session> open_session(const InputOptions& options) {
    std::error_code error;
    const fs::path path = options.capture;
    const bool perf_folder = options.capture != "-" && capture::perf::is_perf_folder(path);
    const bool snapshot =
        options.capture != "-" && !perf_folder && (fs::is_directory(path, error) || path.extension() == ".ini");
    if (!snapshot && options.capture != "-" && !fs::exists(path, error))
        return Error{Errc::not_found, fmt::format("{}: no such file or folder", options.capture)};
    if (options.capture != "-" && !perf_folder)
        if (const auto error_of = no_regular_file(path)) return *error_of;
    if (snapshot && fs::is_directory(path, error) && !fs::exists(path / "snapshot.ini", error)) return no_capture(path);
    if (const std::string given = raw_option(options); snapshot && !given.empty())
        return Error{Errc::usage,
                     fmt::format("{} is a snapshot, which describes its contents and how it was recorded; leave out {} "
                                 "(or change the snapshot's ini files)",
                                 options.capture, given)};
    Result<capture::Capture> capture = snapshot ? capture::read_snapshot(path) : open_raw(options);
    if (!capture) return std::move(capture.error());
    WM_ASSIGN_OR_RETURN(image::FileSearch files, options.file_search());
    pipeline::SessionOptions session{.images = options.images, .symbols = options.symbols};
    session.perf_maps = options.perf_maps;
    session.jitdumps = options.jitdumps;
    session.files = std::move(files);
    session.code_of_files = options.code_of_files;
    return pipeline::make_session(std::move(*capture), session);
}

unsigned workers(unsigned jobs) {
    constexpr unsigned most = 256;
    // Those this process may run on, which may be fewer than the machine has.
    const auto processors = static_cast<unsigned>(std::max(1, tbb::info::default_concurrency()));
    if (jobs == 0) return processors;
    jobs = std::min(jobs, most);
    // More than there are processors has to be allowed first.
    static std::unique_ptr<tbb::global_control> allowed;
    if (jobs > processors)
        allowed = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, jobs);
    return jobs;
}

ExitStatus status_of(const Error& error) { return error.code == Errc::usage ? usage : unreadable; }

ExitStatus fail(const Error& error) {
    say("error", error.message);
    return status_of(error);
}

namespace {

/// Those of which `can` holds; says which are left out, since `why`.
std::vector<const pipeline::Source*> chosen(const std::vector<const pipeline::Source*>& selected,
                                            bool (pipeline::Source::*can)() const, std::string_view why) {
    std::vector<const pipeline::Source*> out;
    std::string others;
    for (const pipeline::Source* source : selected) {
        if ((source->*can)())
            out.push_back(source);
        else
            others += fmt::format("{}{} ({})", others.empty() ? "" : ", ", source->label(),
                                  source->type.empty() ? "of unknown type" : source->type);
    }
    if (!others.empty()) say("note", fmt::format("left out, since {}: {}", why, others));
    return out;
}

}  // namespace

std::vector<const pipeline::Source*> decodable(const std::vector<const pipeline::Source*>& selected) {
    return chosen(selected, &pipeline::Source::has_flow, "Waymark does not decode their protocol");
}
std::vector<const pipeline::Source*> listable(const std::vector<const pipeline::Source*>& selected) {
    return chosen(selected, &pipeline::Source::has_packets, "Waymark does not decode their protocol");
}

void warn(const pipeline::Session& session) {
    for (const std::string& sentence : gathered(session.problems)) say("warning", sentence);
}

bool report_read_errors(const pipeline::Report& report) {
    bool any = false;
    for (const pipeline::BufferReport& buffer : report.buffers) {
        if (const auto cut = pipeline::cut_of(buffer)) {
            say("error", cut->sentence);
            any = true;
        }
        if (!buffer.error) continue;
        say("error", fmt::format("buffer {}: {}{}", buffer.name, buffer.error->message,
                                 buffer.bytes == 0 ? "" : fmt::format(" ({} read)", counted(buffer.bytes, "byte"))));
        any = true;
    }
    return any;
}

}  // namespace waymark::cli
