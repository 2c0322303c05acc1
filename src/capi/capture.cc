#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "objects.h"
#include "waymark/analysis/samples.h"
#include "waymark/answers/file.h"
#include "waymark/core/wire.h"
#include "waymark/coresight/trace_id.h"
#include "waymark/isa/cores.h"
#include "waymark/pipeline/answers_file.h"
#include "waymark/pipeline/gathered.h"
#include "waymark/pipeline/protocols.h"

wm_capture::~wm_capture() {
    if (file >= 0) ::close(file);
}

const char* wm_capture::keep(std::string_view text) const {
    const std::lock_guard lock(mutex_);
    return texts_.emplace(text).first->c_str();
}

waymark::Error wm_capture::named(waymark::Error error) const {
    error.message = waymark::capi::for_callers(std::move(error.message));
    if (file < 0) return error;
    const std::string& path = input.capture;
    for (std::size_t at = 0; (at = error.message.find(path, at)) != std::string::npos; at += name.size())
        error.message.replace(at, path.size(), name);
    return error;
}

namespace waymark::capi {

namespace {

/// The source type for the option `protocol`: a name as on the command line, or a type as captures spell it.
Result<std::string> source_type_of(const std::string& name) {
    if (const pipeline::Protocol* protocol = pipeline::protocol_of_option(name)) return protocol->type_of_option(name);
    if (pipeline::protocol_of(name) != nullptr) return name;
    if (name.empty())
        return Error{Errc::usage, fmt::format("nothing describes the trace: set the option protocol ({}, or a source "
                                              "type of {})",
                                              doctor::protocol_option_names(), pipeline::decoded_types())};
    return Error{Errc::usage, fmt::format("the protocol '{}' is not known; known are {}, and source types of {}", name,
                                          doctor::protocol_option_names(), pipeline::decoded_types())};
}

Result<std::vector<std::uint8_t>> trace_ids_of(const std::vector<std::string>& texts, bool framed) {
    std::vector<std::uint8_t> out;
    for (const std::string& text : texts) {
        std::uint64_t id = 0;
        if (!wire::scan_number(text, id) || id > 0x7f || !coresight::is_source({static_cast<std::uint8_t>(id)}))
            return Error{Errc::usage, fmt::format("the option trace-id takes an ID from 0x01 to 0x6f, not '{}'", text)};
        out.push_back(static_cast<std::uint8_t>(id));
    }
    if (framed && out.empty())
        return Error{Errc::usage, "frames need the option trace-id for each source that is to be decoded"};
    if (!framed && out.size() > 1)
        return Error{Errc::usage,
                     "source_data contains the bytes of one source, so there can be at most one trace-id; for frames "
                     "set buffer-format to coresight or dstream_coresight"};
    return out;
}

/// Trace that is described by options alone.
Result<capture::Capture> described_capture(const wm_options& options, const std::string& path) {
    const doctor::CaptureInput& input = options.input;
    capture::RawOptions raw;
    WM_ASSIGN_OR_RETURN(raw.source_type, source_type_of(input.protocol));
    if (!input.buffer_format.empty()) {
        raw.format = capture::buffer_format(input.buffer_format);
        if (raw.format == capture::Buffer::Format::unknown)
            return Error{Errc::usage, fmt::format("the buffer-format '{}' is not known; known are coresight, "
                                                  "source_data and dstream_coresight",
                                                  input.buffer_format)};
    }
    const bool framed = raw.format != capture::Buffer::Format::source_data;
    WM_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> ids, trace_ids_of(input.trace_ids, framed));
    const pipeline::Protocol& protocol = *pipeline::protocol_of(raw.source_type);
    if (!options.core.empty()) {
        WM_RETURN_IF_ERROR(isa::check_core("the option core", options.core));
    }
    raw.core_type = options.core;
    raw.registers = options.registers;
    for (const protocol::RegisterOption& option : protocol.register_options()) {
        const auto given = input.registers.find(option.option);
        if (given == input.registers.end() || given->second.empty()) continue;
        WM_ASSIGN_OR_RETURN(const std::uint64_t value, doctor::read_number(given->second, option.option, 0xffffffff));
        raw.registers.push_back({std::string(option.register_name), value});
    }
    const protocol::TraceIdField field = protocol.trace_id().value_or(protocol::TraceIdField{});
    if (!ids.empty())
        std::erase_if(raw.registers, [&](const RegisterValue& r) { return r.name == field.register_name; });
    const std::vector<capture::Register> registers = raw.registers;
    const auto name_of = [](std::uint8_t id) { return fmt::format("source_{:02x}", id); };
    const auto id_register = [&](std::uint8_t id) {
        return capture::Register{std::string(field.register_name), std::uint64_t{id} << field.lowest_bit};
    };
    if (!ids.empty()) {
        raw.source_name = name_of(ids.front());
        raw.registers.push_back(id_register(ids.front()));
    }
    capture::Capture out = capture::raw_capture(path, raw);
    for (std::size_t i = 1; i < ids.size(); ++i) {
        capture::Source another = out.sources.front();
        another.name = name_of(ids[i]);
        another.registers = registers;
        another.registers.push_back(id_register(ids[i]));
        out.buffers.front().sources.push_back(another.name);
        out.sources.push_back(std::move(another));
    }
    return out;
}

/// Whether options describe bytes that the command line cannot describe.
bool is_described(const wm_options& options) {
    return !options.registers.empty() || !options.core.empty() ||
           (!options.input.protocol.empty() && pipeline::protocol_of_option(options.input.protocol) == nullptr);
}

Result<pipeline::Session> described_session(const wm_options& options, const doctor::CaptureInput& input) {
    WM_ASSIGN_OR_RETURN(capture::Capture capture, described_capture(options, input.capture));
    pipeline::SessionOptions session{.images = input.images, .symbols = input.symbols};
    session.perf_maps = input.perf_maps;
    session.jitdumps = input.jitdumps;
    WM_ASSIGN_OR_RETURN(session.files, input.file_search());
    session.code = input.code;
    session.ask = input.ask;
    return pipeline::make_session(std::move(capture), session);
}

unsigned space_bits(const isa::Space& space) {
    const auto bit = [](bool is_set, unsigned value) { return is_set ? value : 0U; };
    return bit(space.ns, WM_SPACE_NON_SECURE) | bit(space.hyp, WM_SPACE_HYP) | bit(space.nse, WM_SPACE_NSE);
}

/// Applies the options, except the path of the bytes.
Status take_options(wm_capture& capture, const wm_options& options) {
    capture.input = options.input;
    capture.input.code_of_files = true;  // answers with instructions may be requested
    capture.kallsyms = options.kallsyms;
    if (!options.midr.empty()) {
        WM_ASSIGN_OR_RETURN(const std::uint64_t midr, doctor::read_number(options.midr, "midr", 0xffffffff));
        capture.midr = static_cast<std::uint32_t>(midr);
    }
    if (options.callback != nullptr)
        capture.input.ask = [ask = options.callback, user = options.user](Address address, const isa::Space& space,
                                                                          std::span<std::uint8_t> into) {
            return ask(address.value, space_bits(space), into.data(), into.size(), user);
        };
    return Nothing{};
}

void take_session(wm_capture& capture, pipeline::Session session) {
    capture.session = std::move(session);
    for (const pipeline::Source& source : capture.session.sources)
        capture.sources.push_back(
            {&capture, &source, source.protocol == nullptr ? "" : std::string(source.protocol->words().unit)});
    for (const std::string& problem : pipeline::gathered(capture.session.problems))
        capture.problems.push_back(capture.named({Errc::usage, problem}).message);
}

/// The option `protocol` of a bare profiling buffer.
bool is_samples(std::string_view protocol) { return protocol == "spe" || protocol == "SPE"; }

/// Opens `input.capture`, which exists.
Status open_files(wm_capture& capture, const wm_options& options) {
    const std::string& path = capture.input.capture;
    const open::Container& container = capture.input.container();
    if (container.contents() == open::Content::answers) {
        capture.kind = WM_CAPTURE_ANSWERS;
        WM_ASSIGN_OR_RETURN(capture.stored, pipeline::read_answers_file(path));
        return Nothing{};
    }
    if (container.contents() == open::Content::counters) {
        capture.kind = WM_CAPTURE_COUNTERS;
        return Nothing{};
    }
    if (auto taken_out = doctor::trace_taken_out(container)) return std::move(*taken_out);
    if (is_samples(capture.input.protocol) || container.contents() == open::Content::samples) {
        if (auto other = open::no_trace(container)) return std::move(*other);
        WM_LEAVE_IF_ERROR(open::open_samples(container));
        capture.kind = WM_CAPTURE_SAMPLES;
        return Nothing{};
    }
    auto session = is_described(options) ? described_session(options, capture.input)
                                         : doctor::open_capture(capture.input, nullptr, [&](const std::string& note) {
                                               capture.problems.push_back(for_callers(note));
                                           });
    if (!session) return std::move(session.error());
    take_session(capture, std::move(*session));
    return Nothing{};
}

/// Creates an unnamed file in memory with these bytes.
Status put_into_memory(wm_capture& capture, Bytes bytes) {
    const auto failed = [&](const char* what) {
        return Error{Errc::unreadable,
                     fmt::format("{}: {} {} bytes: {}", capture.name, what, bytes.size(), std::strerror(errno))};
    };
    capture.file = ::memfd_create("waymark", MFD_CLOEXEC);
    if (capture.file < 0) return failed("there is no place in memory for");
    for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t count = ::write(capture.file, bytes.data() + done, bytes.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return failed("cannot copy");
        done += static_cast<std::size_t>(count);
    }
    capture.input.capture = fmt::format("/proc/self/fd/{}", capture.file);
    return Nothing{};
}

/// Makes a capture; `open` fills it. `path`: for messages.
template <class Open>
wm_status make_capture(const wm_options* options, std::string_view name, wm_capture** out, wm_error** error,
                       Open&& open) {
    return guarded(error, [&] {
        const wm_options none, &given = options == nullptr ? none : *options;
        auto capture = std::make_unique<wm_capture>();
        capture->name = name;
        Status done = take_options(*capture, given);
        if (done) {
            capture->input.capture = name;
            done = open(*capture, given);
        }
        if (!done) return fail(error, capture->named(std::move(done.error())));
        *out = capture.release();
        return WM_OK;
    });
}

}  // namespace
}  // namespace waymark::capi

extern "C" {

wm_status wm_open(const char* path, const wm_options* options, wm_capture** capture, wm_error** error) {
    if (path == nullptr) return waymark::capi::missing(error, "wm_open", "path");
    if (capture == nullptr) return waymark::capi::missing(error, "wm_open", "capture");
    return waymark::capi::make_capture(options, path, capture, error, waymark::capi::open_files);
}

wm_status wm_open_memory(const void* bytes, size_t count, const char* name, const wm_options* options,
                         wm_capture** capture, wm_error** error) {
    if (bytes == nullptr) return waymark::capi::missing(error, "wm_open_memory", "bytes");
    if (capture == nullptr) return waymark::capi::missing(error, "wm_open_memory", "capture");
    return waymark::capi::make_capture(options, name == nullptr ? "memory" : name, capture, error,
                                       [&](wm_capture& made, const wm_options& given) -> waymark::Status {
                                           const waymark::Bytes all(static_cast<const std::uint8_t*>(bytes), count);
                                           WM_LEAVE_IF_ERROR(waymark::capi::put_into_memory(made, all));
                                           return waymark::capi::open_files(made, given);
                                       });
}

wm_status wm_open_live(const wm_options* options, wm_capture** capture, wm_error** error) {
    if (capture == nullptr) return waymark::capi::missing(error, "wm_open_live", "capture");
    return waymark::capi::make_capture(
        options, "live", capture, error, [](wm_capture& made, const wm_options& given) -> waymark::Status {
            made.live = true;
            WM_ASSIGN_OR_RETURN(auto session, waymark::capi::described_session(given, made.input));
            waymark::capi::take_session(made, std::move(session));
            return waymark::Nothing{};
        });
}

void wm_close(wm_capture* capture) { delete capture; }

wm_capture_kind wm_capture_get_kind(const wm_capture* capture) { return capture->kind; }
size_t wm_capture_problem_count(const wm_capture* capture) { return capture == nullptr ? 0 : capture->problems.size(); }
const char* wm_capture_problem(const wm_capture* capture, size_t index) {
    return capture == nullptr || index >= capture->problems.size() ? nullptr : capture->problems[index].c_str();
}

size_t wm_source_count(const wm_capture* capture) { return capture == nullptr ? 0 : capture->sources.size(); }
const wm_source* wm_source_at(const wm_capture* capture, size_t index) {
    return capture == nullptr || index >= capture->sources.size() ? nullptr : &capture->sources[index];
}
const char* wm_source_name(const wm_source* source) { return source->source->name.c_str(); }
const char* wm_source_type(const wm_source* source) { return source->source->type.c_str(); }
const char* wm_source_core_type(const wm_source* source) { return source->source->core_type.c_str(); }
const char* wm_source_unit(const wm_source* source) { return source->unit.c_str(); }
int wm_source_trace_id(const wm_source* source) {
    return source->source->trace_id ? static_cast<int>(source->source->trace_id->value) : -1;
}
int wm_source_has_flow(const wm_source* source) { return source->source->has_flow() ? 1 : 0; }

wm_status wm_symbol_at(const wm_source* source, uint64_t address, wm_symbol* symbol, wm_error** error) {
    if (source == nullptr) return waymark::capi::missing(error, "wm_symbol_at", "source");
    if (symbol == nullptr) return waymark::capi::missing(error, "wm_symbol_at", "symbol");
    return waymark::capi::guarded(error, [&] {
        const auto found = source->source->names->symbols.find({address});
        if (!found)
            return waymark::capi::fail(error, WM_NOT_FOUND, fmt::format("no symbol is known at {:#x}", address));
        waymark::capi::fill(symbol, wm_symbol{sizeof(wm_symbol), source->capture->keep(found->symbol.name),
                                              source->capture->keep(found->symbol.linkage_name),
                                              found->symbol.address.value, found->symbol.bytes, found->offset});
        return WM_OK;
    });
}

wm_status wm_symbol_address(const wm_source* source, const char* name, uint64_t* address, wm_error** error) {
    if (source == nullptr) return waymark::capi::missing(error, "wm_symbol_address", "source");
    if (name == nullptr) return waymark::capi::missing(error, "wm_symbol_address", "name");
    return waymark::capi::guarded(error, [&] {
        const auto found = source->source->names->symbols.function_called(name);
        if (!found)
            return waymark::capi::fail(error, WM_NOT_FOUND,
                                       fmt::format("no symbol, or more than one, is called '{}'", name));
        if (address != nullptr) *address = found->value;
        return WM_OK;
    });
}

}  // extern "C"
