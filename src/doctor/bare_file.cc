#include "bare_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "waymark/capture/byte_stream.h"
#include "waymark/core/quote.h"
#include "waymark/core/wire.h"
#include "waymark/coresight/bare_frames.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/coresight/dstream.h"
#include "waymark/coresight/guess.h"
#include "waymark/doctor/identify.h"
#include "waymark/isa/cores.h"
#include "waymark/pipeline/protocols.h"
#include "waymark/protocol/adapters.h"

namespace waymark::doctor {

namespace {

/// The protocol of the bytes in a file without frames; null if none is recognised.
const pipeline::Protocol* protocol_in(std::vector<std::uint8_t> head) {
    const coresight::FramingGuess guess = coresight::guess_framing(head);
    if (guess.kind != coresight::BufferKind::raw && guess.confidence != coresight::Confidence::low) return nullptr;
    Stretch stretch;
    stretch.bytes = std::move(head);
    stretch.head = true;
    return identify({std::move(stretch)}).protocol;
}

Result<capture::Buffer::Format> given_format(const CaptureInput& options, const Note& note) {
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
    WM_ASSIGN_OR_RETURN(const auto head, file_head(options.capture));
    if (coresight::read_half_syncs(head))
        return Error{Errc::bad_format,
                     fmt::format("{0} is the stream of a trace port with half syncs and no full sync, so nothing shows "
                                 "where its frames begin; 'waymark doctor {0} --write-snapshot DIR' finds it, and "
                                 "writes the frames",
                                 options.capture)};
    const coresight::FramingGuess guess = coresight::guess_framing(head);
    // A few bytes may look like frames by chance, but hardly like trace.
    const bool bare = guess.confidence == coresight::Confidence::low && protocol_in(head) != nullptr;
    const auto format = bare                                           ? capture::Buffer::Format::source_data
                        : guess.footers                                ? capture::Buffer::Format::dstream_coresight
                        : guess.kind == coresight::BufferKind::aligned ? capture::Buffer::Format::coresight
                        : guess.kind == coresight::BufferKind::tpiu    ? capture::Buffer::Format::dstream_coresight
                                                                       : capture::Buffer::Format::source_data;
    if (note)
        note(fmt::format("{} looks like {}{}; if not, give --buffer-format", options.capture,
                         format == capture::Buffer::Format::coresight     ? "16-byte CoreSight frames (coresight)"
                         : format == capture::Buffer::Format::source_data ? "the bytes of one source (source_data)"
                         : guess.footers ? "the blocks of a DSTREAM, with CoreSight frames (dstream_coresight)"
                                         : "CoreSight frames with syncs (dstream_coresight)",
                         guess.confidence == coresight::Confidence::low && !bare ? ", with low confidence" : ""));
    return format;
}

/// Counts the bytes of each source in a bare file of frames. An ID with a few bytes and no A-sync is ignored: it was
/// damaged.
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
        WM_ASSIGN_OR_RETURN(const auto head, file_head(path));
        layout = coresight::dstream_layout(head);
    }
    WM_ASSIGN_OR_RETURN(const auto stream, capture::open_bytes(path));
    coresight::DstreamDeformatter deformatter(layout);
    CountIds handler;
    std::vector<std::uint8_t> piece(1 << 20);
    for (;;) {
        const auto count = stream->read(piece);
        if (!count || *count == 0) break;  // the actual reading will report the failure
        deformatter.feed(Bytes(piece).first(*count), handler);
    }
    deformatter.finish(handler);
    return handler.ids();
}

}  // namespace

Result<std::vector<std::uint8_t>> file_head(const std::string& path) {
    WM_ASSIGN_OR_RETURN(const auto stream, capture::open_bytes(path));
    std::vector<std::uint8_t> head(1 << 16);
    std::size_t have = 0;
    while (have < head.size()) {
        const auto count = stream->read(std::span(head).subspan(have));
        if (!count || *count == 0) break;
        have += *count;
        if (const std::size_t idle = coresight::idle_bytes(Bytes(head).first(have)); idle != 0) {
            std::copy(head.begin() + static_cast<std::ptrdiff_t>(idle),
                      head.begin() + static_cast<std::ptrdiff_t>(have), head.begin());
            have -= idle;
        }
    }
    head.resize(have);
    return head;
}

Error what_it_takes(const CaptureInput& options) {
    const bool is_stream = options.capture == "-";
    const pipeline::Protocol* protocol = nullptr;
    if (!is_stream) {
        auto head = file_head(options.capture);
        if (!head) return std::move(head.error());
        if (options.container().is_perf())
            return {Errc::usage, fmt::format("{}: this perf.data file has no CoreSight trace. waymark info {} shows "
                                             "what it has, "
                                             "waymark spe report its SPE samples",
                                             options.capture, shell_file(options.capture))};
        const coresight::FramingGuess guess = coresight::guess_framing(*head);
        if (guess.kind != coresight::BufferKind::raw && guess.confidence != coresight::Confidence::low)
            return {
                Errc::usage,
                fmt::format("{} is not a capture folder, which would contain snapshot.ini or dpu.ini, and looks like "
                            "a buffer of CoreSight frames; waymark doctor {} --write-snapshot DIR finds the sources in "
                            "it, and makes a capture folder",
                            options.capture, shell_file(options.capture))};
        protocol = protocol_in(std::move(*head));
    }
    if (protocol != nullptr)
        if (std::string how = protocol->how_to_read(shell_file(options.capture)); !how.empty())
            return {Errc::usage, std::move(how)};
    // If no protocol is recognised, the first one serves as example.
    std::string registers;
    const bool known = protocol != nullptr && !protocol->option_names().empty();
    const pipeline::Protocol* const of = known ? protocol : pipeline::protocols().front();
    const std::string_view unit = of->words().unit, names = of->option_names();
    for (const protocol::RegisterOption& option : of->register_options())
        registers += fmt::format("{}{} VALUE", registers.empty() ? "" : " ", option.option);
    if (registers.empty()) registers = "--register NAME=VALUE";
    return {Errc::usage,
            fmt::format(
                "{} is not a capture folder, which would contain snapshot.ini or dpu.ini{}. To decode it as the "
                "bare trace of one {}, give its protocol (--protocol {}), how the {} was programmed ({}), and what ran "
                "(--image FILE[@ADDRESS]){}",
                is_stream ? "standard input" : options.capture, is_stream ? "" : ", and no perf.data file", unit,
                names.substr(0, names.find_first_of(" ,")), unit, registers,
                is_stream ? std::string()
                          : fmt::format("; waymark doctor {} infers these values", shell_file(options.capture)))};
}

namespace {

/// Whether the unit has a register with this name.
bool has_register(const pipeline::Protocol& protocol, const std::string& name) {
    class Any final : public protocol::FieldVisitor {
    public:
        void number(std::string_view, std::uint64_t) override { any = true; }
        void text(std::string_view, std::string_view) override { any = true; }
        bool any = false;
    } fields;
    protocol.visit_register({name, ~std::uint64_t{0}}, fields);
    return fields.any;
}

}  // namespace

Result<capture::Capture> bare_capture(const CaptureInput& options, const Note& note) {
    const pipeline::Protocol* const protocol = pipeline::protocol_of_option(options.protocol);
    for (const pipeline::Protocol* other : pipeline::protocols())
        if (protocol == nullptr && protocol::upper(options.protocol) == other->words().unit)
            return Error{Errc::usage, other->how_to_read(shell_file(options.capture))};
    if (protocol == nullptr)
        return Error{Errc::usage, fmt::format("--protocol '{}' is not known; known are {}", options.protocol,
                                              protocol_option_names())};
    WM_ASSIGN_OR_RETURN(const auto format, given_format(options, note));
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
    for (const std::string& text : options.named_registers) {
        WM_ASSIGN_OR_RETURN(RegisterValue value, read_register(text));
        if (!has_register(*protocol, value.name))
            return Error{
                Errc::usage,
                fmt::format("--register {}: {} has no register of that name{}{}", text, protocol->words().unit_title,
                            protocol->words().settings.empty() ? "" : "; how its bytes are read depends on ",
                            protocol->words().settings)};
        std::erase_if(raw.registers, [&](const RegisterValue& r) { return r.name == value.name; });
        raw.registers.push_back(std::move(value));
    }
    if (!options.core.empty()) {
        WM_RETURN_IF_ERROR(isa::check_core("--core", options.core));
    }
    raw.core_type = options.core;
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
    if (!ids.empty())
        std::erase_if(raw.registers, [&](const RegisterValue& r) { return r.name == id_register(0).name; });
    const std::vector<capture::Register> registers = raw.registers;
    if (!ids.empty()) raw.registers.push_back(id_register(ids.front()));
    raw.source_name = ids.empty() ? "source" : fmt::format("source_{:02x}", ids.front());
    capture::Capture capture = capture::raw_capture(options.capture, raw);
    // The user named only the wanted IDs; there may be others.
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

}  // namespace waymark::doctor
