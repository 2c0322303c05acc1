#include "waymark/pipeline/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "names.h"
#include "ring_bytes.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/capture/snapshot_sinks.h"
#include "waymark/core/wire.h"
#include "waymark/image/agreement.h"
#include "waymark/image/package.h"
#include "waymark/pipeline/id_register.h"
#include "waymark/protocol/ring.h"
#include "waymark/sink/explain.h"
#include "written_code.h"

namespace waymark::pipeline {

namespace {

using capture::Problem;

class Maker {
public:
    Maker(Session& session, const SessionOptions& options)
        : session_(session),
          options_(options),
          names_(
              session.capture, options,
              [this](const std::filesystem::path& file, std::string message) {
                  problem(file, std::move(message), Problem::Kind::names);
              },
              [this](const std::filesystem::path& file, std::string message) { problem(file, std::move(message)); }) {}

    Status run() {
        WM_RETURN_IF_ERROR(check_machines());
        name_packed_files();
        WM_RETURN_IF_ERROR(names_.open([this] { return dumped_memory(); }));
        for (const capture::Source& described : session_.capture.sources) {
            auto source = make(described);
            if (!source) return std::move(source.error());
            source->continues = continued_by(source->name);
            session_.sources.push_back(std::move(*source));
        }
        arrange_buffers();
        note_sinks();
        names_.report_doubtful();
        report_shared_ids();
        return check_builds();
    }

private:
    void problem(const std::filesystem::path& file, std::string message,
                 Problem::Kind kind = Problem::Kind::description) {
        const Problem found{file, 0, std::move(message), {}, kind};
        if (std::find(session_.problems.begin(), session_.problems.end(), found) == session_.problems.end())
            session_.problems.push_back(found);
    }

    /// Code mapped from a package, as Android does, belongs to a file that is stored in the package.
    void name_packed_files() {
        namespace fs = std::filesystem;
        std::map<std::string, std::vector<image::PackedFile>> packages;
        for (capture::Module& module : session_.capture.modules.modules) {
            if (!module.file.ends_with(".apk")) continue;
            const auto [known, fresh] = packages.try_emplace(module.file);
            if (fresh) {
                const std::vector<fs::path> places = options_.files.places(module.file, {});
                const auto is_file = [](const fs::path& path) {
                    std::error_code none;
                    return fs::is_regular_file(path, none);
                };
                const auto place = std::find_if(places.begin(), places.end(), is_file);
                if (place == places.end()) continue;
                auto files = image::packed_files(*place);
                if (files)
                    known->second = std::move(*files);
                else
                    problem({}, files.error().message);
            }
            for (const image::PackedFile& file : known->second) {
                if (module.offset < file.offset || module.offset - file.offset >= file.bytes) continue;
                module.file += std::string(image::in_package) + file.name;
                module.offset -= file.offset;
                break;
            }
        }
    }

    /// Errors: `unsupported`: a program for another machine than the traced one.
    Status check_machines() {
        const auto aarch32_only = [](const capture::Source& s) {
            const Protocol* protocol = protocol_of(s.type);
            return protocol != nullptr && protocol->aarch32_only();
        };
        const bool x86 = session_.capture.x86_64;
        if (!x86 && std::none_of(session_.capture.sources.begin(), session_.capture.sources.end(), aarch32_only))
            return Nothing{};
        const image::ElfMachine traced = x86 ? image::ElfMachine::x86_64 : image::ElfMachine::arm;
        std::vector<std::filesystem::path> files(options_.symbols.begin(), options_.symbols.end());
        for (const std::string& argument : options_.images) {
            WM_ASSIGN_OR_RETURN(const image::ImageArgument image, image::parse_image_argument(argument));
            WM_ASSIGN_OR_RETURN(const image::ImageKind kind, image::recognise(image.path));
            if (kind == image::ImageKind::elf) files.push_back(image.path);
        }
        for (const std::filesystem::path& file : files) {
            WM_ASSIGN_OR_RETURN(const image::Agreement found, image::agreement(file, 0, {}));
            if (found.machine != traced)
                return Error{Errc::unsupported,
                             fmt::format("{}: is a program for {}, but the trace is of a core that runs programs for "
                                         "{}; name the program that was traced",
                                         file.string(), image::name(found.machine), image::name(traced))};
        }
        return Nothing{};
    }
    /// Checks, as far as possible, that images and name files belong to the program that ran.
    Status check_builds() {
        WM_RETURN_IF_ERROR(check_images());
        std::vector<std::shared_ptr<const image::MemoryMap>> maps;
        for (const Source& source : session_.sources)
            if (source.has_flow() && source.memory && !source.memory->empty() &&
                std::find(maps.begin(), maps.end(), source.memory) == maps.end())
                maps.push_back(source.memory);
        if (maps.empty()) return Nothing{};
        for (const std::string& file : options_.symbols) {
            const image::ImageArgument argument{file, std::nullopt};
            WM_ASSIGN_OR_RETURN(const image::Agreement found, image::agreement(file, names_.load_bias(argument), maps));
            check_build(file, found, names_.is_mapped(argument));
        }
        return Nothing{};
    }
    /// The memory in the capture itself, a map for each traced core.
    std::vector<std::shared_ptr<const image::MemoryMap>> dumped_memory() {
        std::set<std::string> cores;
        std::vector<std::shared_ptr<const image::MemoryMap>> out;
        for (const capture::Source& source : session_.capture.sources) {
            const Protocol* const protocol = protocol_of(source.type);
            if (protocol == nullptr || !cores.insert(source.core).second) continue;
            const auto map = std::make_shared<image::MemoryMap>();
            add_dumps(*map, source.core);
            if (!map->empty()) out.push_back(map);
        }
        return out;
    }
    /// Compares images with the memory in the capture itself, since an image always agrees with its own code.
    Status check_images() {
        if (options_.images.empty() || session_.capture.dumps.empty()) return Nothing{};
        const std::vector<std::shared_ptr<const image::MemoryMap>> maps = dumped_memory();
        if (maps.empty()) return Nothing{};
        for (const std::string& text : options_.images) {
            WM_ASSIGN_OR_RETURN(const image::ImageArgument argument, image::parse_image_argument(text));
            WM_ASSIGN_OR_RETURN(const image::ImageKind kind, image::recognise(argument.path));
            if (kind != image::ImageKind::elf || names_.is_refused(argument)) continue;
            WM_ASSIGN_OR_RETURN(image::Agreement found,
                                image::agreement(argument.path, names_.load_bias(argument), maps));
            // Dumped memory need not contain all code that ran, but the memory of a recording does.
            if (session_.capture.modules.empty() && found.known == 0) continue;
            check_build(argument.path, found, names_.is_mapped(argument) || argument.address.has_value());
        }
        return Nothing{};
    }
    void check_build(const std::filesystem::path& path, const image::Agreement& found, bool placed) {
        const bool other_id = !found.build_id_there.empty() && found.build_id_there != found.build_id;
        // A kernel patches its own code in places; in a relocatable file, the loader may change anything.
        constexpr std::uint64_t enough = 32;
        const bool other_code = found.build_id_there.empty() && !found.relocatable && found.compared >= enough &&
                                found.different > found.compared / 16;
        const std::string where = !placed && (found.position_independent || found.relocatable)
                                      ? " It can be loaded anywhere; give its address with --image FILE@ADDRESS."
                                      : "";
        if (other_id)
            problem(path,
                    fmt::format("it is of another build than the program that was traced: its build ID is {}, that "
                                "of the program in memory {}. Names may be wrong; give the file of that build.",
                                found.build_id, found.build_id_there));
        else if (other_code)
            problem(path, fmt::format("it is of another build or another program than the one that was traced: of {} "
                                      "bytes of its code that the capture contains too, {} differ there.{} Names may "
                                      "be wrong; give the file of that build.",
                                      found.compared, found.different, where));
        else if (found.first != found.end && found.known == 0)
            problem(path,
                    fmt::format("its code lies from {:#010x} to {:#010x}, where the capture has no memory: it names "
                                "nothing that ran.{}",
                                found.first.value, found.end.value,
                                where.empty() ? " Is it the program that was traced?" : where),
                    Problem::Kind::unused);
    }

    Result<Source> make(const capture::Source& described) {
        Source source{described.name,
                      described.type,
                      described.core,
                      described.core_type,
                      {},
                      protocol_of(described.type),
                      described.registers,
                      {},
                      {},
                      {}};
        if (const auto id = trace_id(described.registers)) source.trace_id = {*id};
        const std::filesystem::path folder = session_.capture.path.parent_path();
        if (source.protocol != nullptr)
            configure(source, described.file.empty() ? std::filesystem::path() : folder / described.file);
        WM_ASSIGN_OR_RETURN(source.memory, memory_of(source.core, source.name));
        if (session_.capture.spaces) {
            if (!code_)
                code_ = std::make_shared<ProcessCode>(session_.capture.spaces, source.memory, changed_, by_hand_);
            source.code = code_;
        }
        WM_ASSIGN_OR_RETURN(source.names, names_.names_of(source.name, *source.memory));
        return source;
    }

    /// The source that traced its thread before, if all trace of that source comes before the trace of this one.
    [[nodiscard]] std::string continued_by(const std::string& source) const {
        const std::string_view before = session_.capture.modules.before(source);
        if (before.empty()) return {};
        bool met = false;
        for (const capture::Buffer& buffer : session_.capture.buffers) {
            const auto holds = [&](std::string_view name) {
                return std::find(buffer.sources.begin(), buffer.sources.end(), name) != buffer.sources.end();
            };
            if (met && holds(before)) return {};
            met |= holds(source);
            if (met && holds(before)) return {};
        }
        return std::string(before);
    }

    /// `file`: the file that describes the source; empty for a bare trace file, which the command line describes.
    void configure(Source& source, const std::filesystem::path& file) {
        protocol::Configured configured =
            source.protocol->configure({source.name, source.type, source.core_type, source.registers, file.empty()});
        source.configuration = std::move(configured.configuration);
        for (std::string& text : configured.problems) problem(file, std::move(text));
        // The bytes of a single source carry no ID.
        const auto framed = [&](const capture::Buffer& buffer) {
            return buffer.format != capture::Buffer::Format::source_data &&
                   std::find(buffer.sources.begin(), buffer.sources.end(), source.name) != buffer.sources.end();
        };
        if (source.trace_id && !coresight::is_source(*source.trace_id) &&
            std::any_of(session_.capture.buffers.begin(), session_.capture.buffers.end(), framed))
            problem(file,
                    fmt::format("source '{}': trace ID {:#04x} in {} is not one a source can have (0x01 to 0x6f); "
                                "no bytes of a formatted buffer can belong to it.",
                                source.name, source.trace_id->value, id_register(source)));
    }

    /// The code of mapped files, which are opened when it is first needed: a capture usually has all the code that ran.
    static image::MemoryMap::Ask beyond_dumps(std::vector<std::pair<std::filesystem::path, std::uint64_t>> files) {
        auto code = std::make_shared<std::optional<image::MemoryMap>>();
        return
            [code, files = std::move(files)](Address address, const isa::Space& space, std::span<std::uint8_t> into) {
                if (!*code) {
                    code->emplace();
                    // A file that cannot be read has no code here; the lists of all code say why.
                    for (const auto& [path, bias] : files) static_cast<void>((*code)->add_elf(path, bias));
                }
                const Bytes known = (*code)->at(address, space).bytes;
                const std::size_t size = std::min(known.size(), into.size());
                std::copy_n(known.begin(), size, into.begin());
                return size;
            };
    }

    /// The dumps that a core sees, then the images of the options. A source without a known core sees the dumps of all
    /// cores.
    Result<std::shared_ptr<const image::MemoryMap>> memory_of(const std::string& core, const std::string& source) {
        // With several processes, all cores have all files at their places.
        const std::string& key = session_.capture.spaces ? std::string() : core;
        const auto known = maps_.find(key);
        if (known != maps_.end()) return known->second;
        auto map = std::make_shared<image::MemoryMap>();
        if (session_.capture.x86_64) map->accept(image::Machines::arm_and_x86_64);
        if (options_.ask) map->ask_beyond(options_.ask);
        const image::AddressOf outside = [this](const std::string& name) { return names_.kernel_function(name); };
        if (options_.code_of_files || session_.capture.spaces) {
            for (const auto& [path, bias] : names_.code_files(source))
                if (const auto added = map->add_elf(path, bias, {}, {}, outside); !added)
                    problem({}, added.error().message);
        } else if (auto files = names_.code_files(source); !options_.ask && !files.empty()) {
            map->ask_beyond(beyond_dumps(std::move(files)));
        }
        add_dumps(*map, core);
        for (const std::string& text : options_.images) {
            WM_ASSIGN_OR_RETURN(const image::ImageArgument argument, image::parse_image_argument(text));
            if (names_.is_refused(argument)) continue;
            auto image = names_.is_mapped(argument)
                             ? map->add_elf(argument.path, names_.load_bias(argument, source), {}, {}, outside)
                             : image::add_image(*map, text, {}, outside);
            if (!image) return std::move(image.error());
            if (argument.address && session_.capture.spaces)
                for (std::uint32_t i = 0; i < image->sections; ++i) by_hand_.push_back(image->section + i);
            for (std::string& note : image->notes) problem({}, std::move(note));
        }
        for (const auto& [address, bytes] : options_.code)
            if (auto added = map->add_bytes(bytes, address); !added) return std::move(added.error());
        if (session_.capture.spaces) {
            add_kcore(*map);
            WM_RETURN_IF_ERROR(add_changed_code(*map));
        }
        maps_[key] = map;
        return std::shared_ptr<const image::MemoryMap>(map);
    }

    /// Adds the recorder's copy of the running kernel's memory (perf record --kcore), which is right even if vmlinux
    /// differs from the executed code.
    void add_kcore(image::MemoryMap& map) {
        const std::filesystem::path file = kcore_of(session_.capture);
        std::error_code error;
        if (!std::filesystem::is_regular_file(file, error)) return;
        if (const auto added = map.add_elf(file); !added)
            problem(file, added.error().message + "; the copy of the kernel's code is not used.");
    }
    /// Called only once: all cores share one map.
    Status add_changed_code(image::MemoryMap& map) {
        auto changed = std::make_shared<ChangedCode>();
        for (const capture::CodeChange& change : session_.capture.spaces->code_changes()) changed->add(change);
        WM_RETURN_IF_ERROR(add_written_code(session_.capture, options_, *changed,
                                            [this](std::string message) { problem({}, std::move(message)); }));
        if (changed->empty()) return Nothing{};
        changed->finish(map);
        names_.set_changed_code(changed);
        changed_ = std::move(changed);
        return Nothing{};
    }

    void add_dumps(image::MemoryMap& map, const std::string& core) {
        // Several cores often list the same dump.
        std::set<
            std::tuple<std::string_view, std::uint64_t, std::uint64_t, std::optional<std::uint64_t>, std::string_view>>
            added;
        for (const capture::MemoryDump& dump : session_.capture.dumps) {
            if (!core.empty() && !dump.core.empty() && dump.core != core) continue;
            if (added.emplace(dump.file.native(), dump.address.value, dump.offset, dump.length, dump.space).second)
                add_dump(map, dump);
        }
    }

    void add_dump(image::MemoryMap& map, const capture::MemoryDump& dump) {
        const auto space = image::SpaceFilter::parse(dump.space);
        if (!space) {
            problem(dump.file,
                    fmt::format(
                        "memory space '{}' is not known (N, S, R, H, EL1N, EL1S, EL1R, EL2, EL2R, EL3, ROOT, P, SP, "
                        "NP); the dump is shown to every state.",
                        dump.space));
        }
        auto added =
            map.add_file(dump.file, dump.address, dump.offset, dump.length, space.value_or(image::SpaceFilter{}));
        // Missing and short files were found while the capture was read, and are reported with the line that names
        // them.
        std::error_code error;
        const std::uintmax_t bytes = std::filesystem::file_size(dump.file, error);
        const bool reported = error || bytes < dump.offset || bytes - dump.offset < dump.length.value_or(0);
        if (!added && !reported) problem({}, added.error().message);
        if (!added || reported) return;
        for (std::string& note : added->notes) problem({}, std::move(note));
    }

    /// Turns buffers of units that write into a ring of memory into parts, in the order of writing.
    void arrange_buffers() {
        for (capture::Buffer& buffer : session_.capture.buffers) {
            if (buffer.format != capture::Buffer::Format::source_data || buffer.container || buffer.sources.size() != 1)
                continue;
            const auto source = std::find_if(session_.sources.begin(), session_.sources.end(),
                                             [&](const Source& s) { return s.name == buffer.sources.front(); });
            if (source == session_.sources.end()) continue;
            if (const auto* ring = dynamic_cast<const protocol::RingSource*>(source->configuration.get()))
                arrange(buffer, *ring);
        }
    }
    void arrange(capture::Buffer& buffer, const protocol::RingSource& ring) {
        const auto stream = capture::open_buffer(buffer);
        if (!stream) return;  // reading it reports why
        auto dump = capture::read_all(**stream, protocol::RingSource::most_bytes);
        const std::filesystem::path file = buffer.files.empty() ? std::filesystem::path() : buffer.files.front();
        if (!dump) return problem(file, dump.error().message + ". Its bytes are read without frames.");
        protocol::Arrangement found = ring.arrange(*dump);
        for (std::string& text : found.problems) problem(file, std::move(text));
        for (const protocol::Arrangement::Piece& piece : found.pieces)
            buffer.parts.push_back({.offset = piece.offset,
                                    .bytes = piece.bytes,
                                    .follows = !piece.lost && !buffer.parts.empty(),
                                    .lost = piece.lost});
        // The capture's own statements were reported when it was read.
        capture::Buffer seen{.name = buffer.name, .length = capture::bytes_in(buffer.parts), .wrapped = found.wrapped};
        seen.ends = found.ends;
        for (std::string& text : capture::missing_parts(seen)) problem(file, std::move(text), Problem::Kind::part);
        buffer.wrapped |= found.wrapped;
        if (!found.ends.empty()) buffer.ends = std::move(found.ends);
        buffer.container = std::make_shared<RingBytes>(capture::byte_file_from_memory(std::move(*dump), file.string()));
    }

    static std::size_t count_sinks(const std::vector<capture::SinkDevice>& devices) {
        return static_cast<std::size_t>(std::count_if(devices.begin(), devices.end(),
                                                      [](const capture::SinkDevice& device) { return !device.link; }));
    }

    /// Trace that buffers of the capture do not hold, as the registers of their trace buffers state.
    void note_sinks() {
        std::vector<capture::Buffer>& buffers = session_.capture.buffers;
        const std::filesystem::path& file = session_.capture.path;
        if (buffers.empty() || (file.filename() != "snapshot.ini" && file.filename() != "contents.ini")) return;
        const auto sinks = capture::read_snapshot_sinks(file);
        if (!sinks) return;
        for (const capture::SinkDevice& device : *sinks) {
            const auto kind = sink::kind_of(device.type.empty() ? device.name : device.type);
            if (!kind) continue;
            std::vector<RegisterValue> registers;
            for (const capture::Register& r : device.registers) registers.push_back({r.name, r.value, {}, 32});
            const sink::NotHeld not_held = sink::not_held(*kind, registers);
            const auto named = std::find_if(buffers.begin(), buffers.end(),
                                            [&](const capture::Buffer& buffer) { return buffer.name == device.name; });
            // A buffer of another name is that of the only device.
            if (named == buffers.end() && (buffers.size() != 1 || count_sinks(*sinks) != 1)) continue;
            capture::Buffer& buffer = named != buffers.end() ? *named : buffers.front();
            // The capture's own statements were reported when it was read.
            capture::Buffer seen{.name = buffer.name, .length = buffer.length};
            if (not_held.older && !buffer.wrapped) seen.wrapped = buffer.wrapped = true;
            if (not_held.later && buffers.back().ends.empty() && buffer.ends.empty())
                seen.ends = buffer.ends = "when the trigger stopped the buffer (STS.Triggered)";
            for (std::string& text : capture::missing_parts(seen))
                problem(file.parent_path(), std::move(text), Problem::Kind::part);
        }
    }

    /// Two sources with one ID in one buffer cannot be distinguished.
    void report_shared_ids() {
        for (const capture::Buffer& buffer : session_.capture.buffers) {
            if (buffer.format == capture::Buffer::Format::source_data) continue;
            std::map<std::uint8_t, const Source*> by_id;
            for (const Source& source : session_.sources) {
                if (std::find(buffer.sources.begin(), buffer.sources.end(), source.name) == buffer.sources.end())
                    continue;
                if (!source.trace_id) {
                    report_no_id(source, buffer);
                    continue;
                }
                const auto [other, first] = by_id.try_emplace(source.trace_id->value, &source);
                if (!first)
                    problem(session_.capture.path, fmt::format("sources '{}' and '{}' both have trace ID {:#04x} in "
                                                               "buffer '{}'; its bytes are given to '{}'. "
                                                               "Correct {} of one of them.",
                                                               other->second->name, source.name, source.trace_id->value,
                                                               buffer.name, other->second->name, id_register(source)));
            }
        }
    }

    void report_no_id(const Source& source, const capture::Buffer& buffer) {
        const capture::Source* described = session_.capture.find_source(source.name);
        if (described == nullptr || described->file.empty())
            problem(session_.capture.path,
                    fmt::format("no trace ID of a source is in it, read as {}; it may be framed otherwise "
                                "(--buffer-format), or be no trace.",
                                capture::name(buffer.format)));
        else
            problem(session_.capture.path.parent_path() / described->file,
                    fmt::format("source '{}' ({}) has no trace ID (register {}), so its bytes in buffer '{}' "
                                "cannot be distinguished from others. Add '{}=ID' to its [regs].",
                                source.name, source.type, id_register(source), buffer.name, id_register(source)));
    }

    Session& session_;
    const SessionOptions& options_;
    NameFinder names_;
    std::map<std::string, std::shared_ptr<const image::MemoryMap>> maps_;
    std::shared_ptr<const ChangedCode> changed_;  // null if no code changed
    std::shared_ptr<const ProcessCode> code_;
    std::vector<std::uint32_t> by_hand_;  // indices of sections in the map for processes, for images with an address
};

}  // namespace

std::string Source::id_text() const { return trace_id ? fmt::format("{:#04x}", trace_id->value) : name; }
std::string Source::label() const { return trace_id ? fmt::format("{:#04x} {}", trace_id->value, name) : name; }

Result<std::vector<const Source*>> Session::select(const std::vector<std::string>& selectors) const {
    std::vector<const Source*> out;
    if (selectors.empty()) {
        for (const Source& source : sources)
            if (!source.left_out) out.push_back(&source);
        return out;
    }
    for (const std::string& selector : selectors) {
        std::uint64_t id = 0;
        const bool number = wire::scan_number(selector, id);
        const auto found = std::find_if(sources.begin(), sources.end(), [&](const Source& s) {
            return s.name == selector || (number && s.trace_id && s.trace_id->value == id);
        });
        if (found == sources.end()) {
            std::string there;
            for (const Source& source : sources) there += (there.empty() ? "" : ", ") + source.label();
            return Error{Errc::usage,
                         fmt::format("'{}' is neither the trace ID nor the name of a source of {}. It has: {}.",
                                     selector, capture.path.string(), there.empty() ? "none" : there)};
        }
        if (found->left_out)
            return Error{
                Errc::usage,
                fmt::format("'{}' is not a source of the selected CPUs: leave out --source or --cpu", selector)};
        if (std::find(out.begin(), out.end(), &*found) == out.end()) out.push_back(&*found);
    }
    return out;
}

Result<Session> make_session(capture::Capture capture, const SessionOptions& options) {
    Session session;
    session.problems = capture.problems;
    session.capture = std::move(capture);
    WM_RETURN_IF_ERROR(Maker(session, options).run());
    return session;
}

}  // namespace waymark::pipeline
