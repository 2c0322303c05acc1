#include "waymark/record/recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <tuple>
#include <utility>

#include "waymark/capture/dpu_folder.h"
#include "waymark/capture/snapshot.h"
#include "waymark/core/file_error.h"
#include "waymark/core/numbers.h"
#include "waymark/record/files.h"
#include "waymark/record/mapped_file.h"

namespace waymark::record {

namespace fs = std::filesystem;

namespace {

/// What an ini file can hold of a text: `#` and `;`, as in `{lambda(int)#1}`, would begin a comment.
std::string in_ini(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '#' || c == ';' || c == '\n' || c == '\r'; }, '_');
    return text;
}

constexpr std::uint64_t most_buffer_bytes = 1 << 30;

/// How many bytes could be written.
std::size_t write_some(int file, Bytes bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t n = write(file, bytes.data() + done, bytes.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        done += static_cast<std::size_t>(n);
    }
    return done;
}

bool tells_exception(std::uint32_t word) {
    const std::uint32_t kind = word & words::kind_mask;
    return word > words::max_block && (kind == words::exception || kind == words::half);
}

}  // namespace

Recorder::Recorder(RecorderOptions options) : options_(std::move(options)), images_(options_.folder) {
    capture_.description = ini_text(options_.description);
    recorded_.began = !options_.start_at.has_value();
}

/// What the unit's comparators hold, as far as it is known where that lies.
void Recorder::place_unit() {
    // Where no code can be, so that nothing matches.
    const Address nowhere{options_.aarch64 ? ~std::uint64_t{7} : 0xfffffff8};
    options_.unit.view.clear();
    options_.unit.exclude.clear();
    for (const PlacedRange& range : options_.ranges) {
        const std::optional<Address> first = range.first.address();
        const std::optional<Address> end =
            !first      ? std::nullopt
            : range.end ? range.end->address()
                        : std::optional(*first + std::max<std::uint64_t>(range.first.bytes(), 4));
        const bool known = first && end && *first < *end;
        (range.exclude ? options_.unit.exclude : options_.unit.view)
            .push_back(known ? flow::AddressRange{*first, *end} : flow::AddressRange{nowhere, nowhere + 4});
    }
    if (options_.trigger_at) options_.unit.trigger_at = options_.trigger_at->address().value_or(nowhere);
    selected_ = options_.units->selects(options_.unit);
}

Recorder::~Recorder() {
    if (trace_file_ >= 0) close(trace_file_);
}

Result<std::unique_ptr<Recorder>> Recorder::create(RecorderOptions options) {
    WM_CHECK(options.units != nullptr);
    if (options.buffer_bytes != 0 &&
        (!coresight::TraceRam::is_size(options.buffer_bytes) || options.buffer_bytes > most_buffer_bytes))
        return Error{Errc::usage, fmt::format("a buffer of {} bytes: the size must be a multiple of {}, up to {}",
                                              options.buffer_bytes, coresight::frame_bytes, most_buffer_bytes)};
    const fs::path folder = options.folder;
    const auto holds_recording = [&] {
        std::error_code none;
        // A recording of another unit has a truth too.
        return fs::exists(folder / truth_file, none) && fs::exists(folder / "snapshot.ini", none) &&
               !fs::exists(folder / capture::dpu_ini, none);
    };
    WM_ASSIGN_OR_RETURN(OutputLock lock, lock_folder(folder, holds_recording, "a recording", options.force));
    std::error_code none;
    const bool replaced = holds_recording() || fs::exists(folder / capture::dpu_ini, none);
    remove_recordings(folder);
    std::unique_ptr<Recorder> recorder(new Recorder(std::move(options)));
    if (!recorder->options_.ranges.empty() || recorder->options_.trigger_at || recorder->options_.unit.programmed())
        recorder->place_unit();
    recorder->lock_ = std::move(lock);
    recorder->recorded_.replaced = replaced;
    recorder->map_system_image();
    if (Status described = recorder->describe(false); !described) {
        fs::remove_all(recorder->options_.folder / ".new", none);
        return described.error();
    }
    return recorder;
}

void Recorder::map_system_image() {
    if (options_.system_image.empty()) return;
    std::error_code error;
    const std::string path = fs::absolute(options_.system_image, error).string();
    for (const MappedFile::Part& part : read_mapped_file(path).executable) {
        MapPart map;
        map.address = part.address;
        map.bytes = part.bytes;
        map.file_offset = part.offset;
        modules_.mapped(map, path, 0);
    }
}

Recorder::Thread& Recorder::thread(std::uint32_t number) {
    const auto found = threads_.find(number);
    if (found != threads_.end()) return found->second;
    ++recorded_.threads;
    Thread& t = threads_.try_emplace(number, number, clock_, options_.system, options_.units->undefined_executes())
                    .first->second;
    t.tracker.context(options_.aarch64 && options_.system ? t.a64.context() : context_of(words::ns, number));
    if (options_.reset) t.tracker.resets_to(*options_.reset);
    return t;
}

void Recorder::definitions(std::span<const std::uint32_t> parts) {
    while (parts.size() >= 2) {
        const auto kind = static_cast<PartKind>(parts[0]);
        const std::size_t words = parts[1];
        if (words < 2 || words > parts.size()) return;
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(parts.data());
        if (kind == PartKind::block && words * 4 >= sizeof(BlockPart)) {
            BlockPart part;
            std::memcpy(&part, bytes, sizeof part);
            const std::uint8_t* code = bytes + sizeof part;
            if (sizeof part + part.code_bytes + part.text_bytes <= words * 4 && part.id <= words::max_block) {
                Definition definition{{part.address},
                                      {code, code + part.code_bytes},
                                      part.instructions,
                                      part.second == 0 ? std::nullopt : std::optional<Address>{{part.second}},
                                      {reinterpret_cast<const char*>(code) + part.code_bytes, part.text_bytes}};
                if (part.id >= blocks_.size()) {
                    blocks_.resize(part.id + 1);
                    rows_.resize(blocks_.size());
                }
                rows_[part.id] = {};
                blocks_[part.id].definition = std::move(definition);
                blocks_[part.id].module = modules_.at({part.address});
            }
        } else if (kind == PartKind::page && words * 4 >= sizeof(PagePart) + page_bytes) {
            PagePart part;
            std::memcpy(&part, bytes, sizeof part);
            images_.saw_page({part.address}, {bytes + sizeof part, page_bytes});
        } else if (kind == PartKind::map && words * 4 >= sizeof(MapPart)) {
            MapPart part;
            std::memcpy(&part, bytes, sizeof part);
            const std::string_view name{reinterpret_cast<const char*>(bytes) + sizeof part,
                                        std::min<std::size_t>(part.name_bytes, words * 4 - sizeof part)};
            modules_.mapped(part, name, clock_.cycle);
            for (std::optional<CodePlace>* place : {&options_.start_at, &options_.stop_at})
                if (*place) (*place)->mapped(std::string(name), {part.address}, part.file_offset, part.bytes);
            if (!options_.ranges.empty() || options_.trigger_at) {
                const auto mapped = [&](CodePlace& place) {
                    place.mapped(std::string(name), {part.address}, part.file_offset, part.bytes);
                };
                const flow::UnitOptions before = options_.unit;
                for (PlacedRange& range : options_.ranges) {
                    mapped(range.first);
                    if (range.end) mapped(*range.end);
                }
                if (options_.trigger_at) mapped(*options_.trigger_at);
                place_unit();
                if (before.view != options_.unit.view || before.exclude != options_.unit.exclude ||
                    before.trigger_at != options_.unit.trigger_at)
                    program_units();
            }
        } else if (kind == PartKind::unmap && words * 4 >= sizeof(UnmapPart)) {
            UnmapPart part;
            std::memcpy(&part, bytes, sizeof part);
            modules_.unmapped(part, clock_.cycle);
        } else if (kind == PartKind::still_mapped && words * 4 >= sizeof(StillMappedPart)) {
            StillMappedPart part;
            std::memcpy(&part, bytes, sizeof part);
            modules_.still_mapped(part);
        }
        parts = parts.subspan(words);
    }
}

void Recorder::execution(std::uint32_t number, std::span<const std::uint32_t> chunk) {
    if (recorded_.stopped || failure_) return;
    Thread& t = thread(number);
    const std::uint64_t limit = options_.limit_instructions != 0 ? options_.limit_instructions : ~std::uint64_t{0};
    for (;;) {
        if (chunk.empty()) break;
        // An exception says more about where it stopped the block.
        if (t.cut && !tells_exception(chunk.front())) settle(t, whole_block, false);
        chunk = chunk.subspan(t.tracker.follow(chunk, rows_, recorded_.epochs, limit, t.held));
        if (chunk.empty()) break;
        const std::uint32_t word = chunk.front();
        chunk = chunk.subspan(1);
        if (word <= words::max_block) {
            settle(t, whole_block, false);
            t.held = word;
            continue;
        }
        switch (word & words::kind_mask) {
            case words::cut: t.cut = word & words::value_mask; break;
            case words::system_call:
                settle(t, whole_block, false);
                if (t.tracker.attached()) t.tracker.system_call();
                break;
            case words::thread_end:
                settle(t, whole_block, false);
                close_stream(t);
                break;
            case words::exception:
            case words::signal:
            case words::written:
                t.exception = word & words::value_mask;
                t.kind = word & words::kind_mask;
                t.halves.clear();
                break;
            case words::half:
                t.halves.push_back(word & words::value_mask);
                if (t.halves.size() == halves_of(t.kind)) take_halves(t);
                break;
            case words::state: state(t, word & words::value_mask); break;
            default: break;
        }
    }
    collect(t);
    if (frames_.size() >= write_bytes) {
        if (const Status status = write_trace(); !status) fail(status.error());
    }
}

std::size_t Recorder::halves_of(std::uint32_t kind) const {
    switch (kind) {
        case words::signal: return options_.aarch64 ? 5 : 3;
        case words::exception: return options_.aarch64 ? 10 : 5;
        default: return 4;
    }
}

void Recorder::take_halves(Thread& t) {
    if (t.kind == words::signal)
        signal(t);
    else if (t.kind == words::written)
        written(t);
    else if (options_.aarch64)
        exception_aarch64(t);
    else
        exception_aarch32(t);
}

void Recorder::settle(Thread& t, std::uint32_t end, bool stopped) {
    const std::optional<std::uint32_t> cut = std::exchange(t.cut, std::nullopt);
    if (t.held == 0) return;
    if (end == whole_block && cut) {
        end = *cut;
        stopped = true;
    }
    const std::uint32_t id = t.held;
    t.held = 0;
    if (recorded_.stopped || id >= blocks_.size()) return;
    Block& block = known(t, id);
    const auto size = static_cast<std::uint32_t>(block.code.instructions.size());
    if (stopped && (end >= size || !block.code.instructions[end].may_stop)) {
        end = size;
        stopped = false;
    }
    execute(t, block, std::min(end, size), stopped);
}

Recorder::Block& Recorder::known(Thread& t, std::uint32_t id) {
    Block& block = blocks_[id];
    if (!block.definition) return block;
    const auto isa = options_.aarch64 ? std::optional(isa::Isa::a64) : instruction_set(*block.definition);
    block.code = understand(*block.definition, isa ? *isa : arriving(t, block.definition->address),
                            options_.units->decode_options(options_.unit));
    block.definition.reset();
    if (options_.system) block_isas_.insert_or_assign(block.code.address.value, block.code.isa);
    return block;
}

isa::Isa Recorder::isa_at(const Thread& t, Address address) const {
    if (address.value % 4 != 0) return isa::Isa::t32;
    if (const auto known = block_isas_.find(address.value); known != block_isas_.end()) return known->second;
    if (options_.instruction_set)
        if (const auto told = options_.instruction_set(address)) return *told;
    return t.tracker.isa();
}

isa::Isa Recorder::arriving(const Thread& t, Address address) const {
    if (const auto told = t.tracker.arriving(address)) return *told;
    if (options_.instruction_set) return options_.instruction_set(address).value_or(isa::Isa::a32);
    return isa::Isa::a32;
}

void Recorder::execute(Thread& t, Block& block, std::uint32_t end, bool stopped) {
    const Code& code = block.code;
    std::uint32_t first = 0;
    if (!recorded_.began) {
        const std::optional<Address> start = options_.start_at->address();
        const auto index = start ? code.index_of(*start) : std::nullopt;
        if (!index || *index >= end) return;
        first = *index;
        recorded_.began = true;
    }
    bool stop_here = false;
    const std::optional<Address> stop_at = options_.stop_at ? options_.stop_at->address() : std::nullopt;
    if (stop_at) {
        if (const auto index = code.index_of(*stop_at); index && *index >= first && *index < end) {
            end = *index;
            stopped = false;
            stop_here = true;
        }
    }
    // The unit traces A64 alone.
    if (t.a64.aarch32()) return;
    if (!t.tracker.attached()) open_stream(t);
    const Place place{code.address + (first == 0 ? 0 : code.instructions[first].offset), code.isa};
    if (block.epoch != recorded_.epochs) {
        // Other code at these addresses, or the same bytes from another file, which has other names for them.
        if (!images_.fits(code.address, code.bytes) || modules_.conflicts(block.module)) {
            if (++recorded_.code_changes > options_.limit_changes) {
                --recorded_.code_changes;
                recorded_.changed_too_often = true;
                t.tracker.arrive(place);
                stop(fmt::format("when code had changed {} times (--max-changes)", options_.limit_changes));
                return;
            }
            // The branch that leads to the new code goes with it, so that who called it is known.
            std::optional<Tracker::Open> branch = t.tracker.open_branch();
            std::vector<std::uint8_t> before;
            if (branch && (branch->end() <= code.address || branch->start.address >= code.end()))
                before = images_.executed(branch->start.address, branch->end() - branch->start.address);
            if (before.empty()) {
                t.tracker.arrive(place);
                branch.reset();
            } else {
                t.tracker.hand_over();
            }
            new_epoch();
            open_stream(t);
            if (branch) {
                images_.add(branch->start.address, before);
                t.tracker.take_over(*branch);
            }
        }
        t.tracker.arrive(place);
        images_.add(code.address, code.bytes);
        modules_.run(block.module, clock_.cycle);
        block.epoch = recorded_.epochs;
        const bool stops = stop_at && *stop_at >= code.address && *stop_at < code.end();
        if (!stops) rows_[static_cast<std::size_t>(&block - blocks_.data())] = row_of(code, block.epoch);
    } else {
        t.tracker.arrive(place);
    }
    if (code.instructions.empty()) {
        // A system's block without instructions is a place where nothing can be fetched: an exception follows.
        if (!options_.system) t.tracker.leave();
        return;
    }
    t.tracker.run(code, first, end, stopped);
    if (t.tracker.lost_way()) {
        recorded_.lost_way = place.address;
        stop(fmt::format("at {:#x}, where half a megabyte ran without a branch", place.address.value));
        return;
    }
    if (stop_here)
        stop(fmt::format("where execution reached {} (--stop-at)", options_.stop_at->text()));
    else if (options_.limit_instructions != 0 && clock_.cycle >= options_.limit_instructions)
        stop(fmt::format("after {} (--limit)", counted(options_.limit_instructions, "instruction")));
}

void Recorder::open_stream(Thread& t) {
    if (next_id_ > last_id) new_epoch();
    const std::string suffix = recorded_.epochs == 1 ? "" : fmt::format("_{}", recorded_.epochs);
    if (!formatter_) {
        const fs::path path = options_.folder / fmt::format("trace{}.bin", suffix);
        trace_file_ = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
        if (trace_file_ < 0) fail(cannot("create", path));
        if (options_.buffer_bytes != 0) ram_.emplace(static_cast<std::size_t>(options_.buffer_bytes));
        formatter_ = std::make_unique<coresight::Formatter>(frames_);
        capture_.buffers.push_back(
            {fmt::format("ETB{}", suffix), capture::Buffer::Format::coresight, "coresight", {path}, {}});
    }
    // A thread may come back after it ended only with a new number, but an epoch may see one begin twice.
    t.stream = std::make_unique<Stream>();
    Stream& s = *t.stream;
    s.id = {next_id_++};
    const std::uint32_t shown = options_.system ? t.number - 1 : t.number;
    s.name = fmt::format("{}_{}{}", options_.units->name(), shown, suffix);
    const std::string core = fmt::format("{}_{}{}", options_.system ? "core" : "thread", shown, suffix);
    const flow::UnitFactory& units = *options_.units;
    s.unit = units.make(options_.unit, s.trace);
    capture_.cores.push_back({.name = core, .type = units.core_type(options_.unit)});
    capture_.sources.push_back({.name = s.name,
                                .type = units.source_type(options_.unit),
                                .core = core,
                                .core_type = units.core_type(options_.unit),
                                .registers = units.registers(options_.unit, s.id.value)});
    capture_.buffers.back().sources.push_back(s.name);
    epoch_cores_.push_back(core);
    described_ = false;
    modules_.source_began(s.name, t.number, clock_.cycle);
    s.truth = truth_.sources.size();
    truth_.sources.push_back({.source = s.name});
    if (options_.truth_ranges) {
        const std::string name = fmt::format("truth_{}.bin", s.name);
        auto writer = RangeWriter::create(options_.folder / name);
        if (writer) {
            s.ranges = std::move(*writer);
            truth_.sources.back().file = name;
        } else {
            fail(writer.error());
        }
    }
    t.tracker.attach(*s.unit, truth_.sources[s.truth], s.ranges.get());
    t.tracker.select(selected_);
}

/// As a debugger would when it learns where the code lies.
void Recorder::program_units() {
    for (auto& [number, t] : threads_) {
        if (!t.stream) continue;
        t.tracker.program(options_.unit);
        t.tracker.select(selected_);
        for (capture::Source& source : capture_.sources)
            if (source.name == t.stream->name)
                source.registers = options_.units->registers(options_.unit, t.stream->id.value);
    }
    described_ = false;
}

void Recorder::close_stream(Thread& t) {
    t.tracker.detach();
    if (!t.stream) return;
    collect(t);
    modules_.source_ended(t.stream->name, clock_.cycle);
    if (t.stream->ranges && !t.stream->ranges->flush())
        fail(cannot("write", options_.folder / truth_.sources[t.stream->truth].file));
    t.stream.reset();
}

void Recorder::collect(Thread& t) {
    if (!t.stream || t.stream->trace.bytes.empty()) return;
    formatter_->add(t.stream->id, t.stream->trace.bytes);
    t.stream->trace.bytes.clear();
}

void Recorder::new_epoch() {
    for (auto& [number, t] : threads_) close_stream(t);
    if (formatter_) formatter_->flush();
    if (const Status status = write_trace(true); !status) fail(status.error());
    if (const Status status = write_ram(); !status) fail(status.error());
    if (const Status status = archive_images(); !status) fail(status.error());
    replaced_bytes_ += replaced_in_ram();
    ram_.reset();
    if (trace_file_ >= 0) close(trace_file_);
    trace_file_ = -1;
    buffer_bytes_ = 0;
    formatter_.reset();
    dumps_before_ = capture_.dumps.size();
    epoch_cores_.clear();
    described_ = false;
    modules_.new_epoch();
    next_id_ = first_id;
    ++recorded_.epochs;
}

/// The memory of this epoch goes to that of earlier ones.
Status Recorder::archive_images() {
    WM_RETURN_IF_ERROR(images_.archive());
    capture_.dumps.resize(dumps_before_);
    for (const std::string& core : epoch_cores_)
        for (capture::MemoryDump& dump : images_.dumps(core)) capture_.dumps.push_back(std::move(dump));
    images_.new_epoch();
    return Nothing{};
}

void Recorder::stop(std::string where) {
    for (auto& [number, t] : threads_) close_stream(t);
    // QEMU ends with the recording of a system, which would have gone on all the same.
    ends_ = std::move(where);
    recorded_.stopped = true;
}

void Recorder::fail(Error error) {
    if (!failure_) failure_ = std::move(error);
}

Status Recorder::write_trace(bool ended) {
    if (failure_) return *failure_;
    // The description comes first: trace on disk is always of sources and code that are on disk too. A buffer that is
    // not described nobody reads; a program that changes its code often would otherwise have all buffers described for
    // each change.
    const bool unknown = ended && capture_.buffers.size() > described_buffers_;
    if (!unknown && (!described_ || images_.changed())) WM_RETURN_IF_ERROR(describe(false));
    if (ram_) {
        ram_->write(frames_);
        trace_bytes_ += frames_.size();
        frames_.clear();
    }
    if (trace_file_ >= 0 && !frames_.empty()) {
        const std::size_t written = write_some(trace_file_, frames_);
        const bool all = written == frames_.size();
        Error why = cannot("write", capture_.buffers.back().files.front());
        // Only whole frames stay in the file.
        buffer_bytes_ += written - written % coresight::frame_bytes;
        trace_bytes_ += written - written % coresight::frame_bytes;
        if (!all) {
            static_cast<void>(ftruncate(trace_file_, static_cast<off_t>(buffer_bytes_)));
            return why;
        }
        frames_.clear();
    }
    return Nothing{};
}

/// Bytes of the buffer at hand that later ones took the place of.
std::uint64_t Recorder::replaced_in_ram() const {
    return ram_ ? ram_->written() - std::min<std::uint64_t>(ram_->written(), options_.buffer_bytes) : 0;
}

/// The oldest frame comes first. Moved into place, so that no reader meets half a buffer.
Status Recorder::write_ram() {
    if (failure_) return *failure_;
    if (!ram_) return Nothing{};
    capture::Buffer& buffer = capture_.buffers.back();
    const fs::path file = buffer.files.front(), fresh = options_.folder / ".trace";
    const std::vector<std::uint8_t> contents = ram_->contents();
    std::ofstream out(fresh, std::ios::binary);
    out.write(reinterpret_cast<const char*>(contents.data()), static_cast<std::streamsize>(contents.size()));
    if (!out.flush()) return cannot("write", fresh);
    out.close();
    std::error_code error;
    fs::rename(fresh, file, error);
    if (error) return Error{Errc::unreadable, fmt::format("cannot write {}: {}", file.string(), error.message())};
    if (ram_->written() <= options_.buffer_bytes) return Nothing{};
    recorded_.wrapped = true;
    buffer.overwritten = replaced_in_ram();
    for (SourceTruth& source : truth_.sources)
        if (std::find(buffer.sources.begin(), buffer.sources.end(), source.source) != buffer.sources.end())
            source.wrapped = true;
    return Nothing{};
}

Status Recorder::describe(bool complete) {
    WM_RETURN_IF_ERROR(images_.write());
    capture_.dumps.resize(dumps_before_);
    for (const std::string& core : epoch_cores_)
        for (capture::MemoryDump& dump : images_.dumps(core)) capture_.dumps.push_back(std::move(dump));

    // Written beside and moved into place, so that no reader meets half a file.
    const fs::path folder = options_.folder, fresh = folder / ".new";
    capture::Capture described = capture_;
    described.modules = modules_.map();
    described.modules.names = generated_names_;
    if (recorded_.wrapped)
        described.description += fmt::format(", the last {} bytes of a buffer that wrapped", options_.buffer_bytes);
    if (!described.buffers.empty()) {
        if (options_.start_at)
            described.buffers.front().begins =
                in_ini(fmt::format("where execution first reached {} (--start-at)", options_.start_at->text()));
        described.buffers.back().ends = in_ini(ends_);
        if (!complete && ends_.empty()) described.buffers.back().ends = "before the program did, or still goes on";
    }
    for (capture::MemoryDump& dump : described.dumps) dump.file = fresh / dump.file.filename();
    std::error_code error;
    for (capture::Buffer& buffer : described.buffers)
        for (fs::path& file : buffer.files) {
            // So that a reader knows when frames are missing later.
            if (complete)
                if (const std::uintmax_t bytes = fs::file_size(file, error); !error)
                    buffer.length = buffer.length.value_or(0) + bytes;
            file = fresh / file.filename();
        }
    fs::remove_all(fresh, error);
    WM_RETURN_IF_ERROR(capture::write_snapshot(described, fresh));
    truth_.complete = complete;
    const std::string text = to_text(truth_);
    if (!(std::ofstream(fresh / truth_file, std::ios::binary) << text).flush())
        return cannot("write", fresh / truth_file);
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(fresh, error)) files.push_back(entry.path());
    // snapshot.ini last: it names the others.
    std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
        const auto last = [](const fs::path& p) { return p.filename() == "snapshot.ini"; };
        return last(a) != last(b) ? last(b) : a < b;
    });
    for (const fs::path& file : files) {
        fs::rename(file, folder / file.filename(), error);
        if (error)
            return Error{Errc::unreadable,
                         fmt::format("cannot write {}: {}", (folder / file.filename()).string(), error.message())};
    }
    fs::remove_all(fresh, error);
    images_.remove_outdated();
    described_ = true;
    described_buffers_ = capture_.buffers.size();
    recorded_.decodable = !capture_.sources.empty();
    return Nothing{};
}

Status Recorder::flush() {
    if (failure_) return *failure_;
    for (auto& [number, t] : threads_)
        if (t.stream && t.stream->ranges) t.stream->ranges->flush();
    described_ = false;
    Status status = write_trace();
    if (status) status = write_ram();
    if (!status) fail(status.error());
    return status;
}

Result<std::size_t> Recorder::take_generated_names(std::uint32_t process, fs::file_time_type began) {
    using Format = capture::GeneratedNames::Format;
    const fs::path perf_map = fmt::format("/tmp/perf-{}.map", process), jitdump = fmt::format("jit-{}.dump", process);
    for (const auto& [from, copy, format] :
         {std::tuple{perf_map, perf_map_copy, Format::perf_map}, std::tuple{jitdump, jitdump_copy, Format::jitdump}}) {
        std::error_code error;
        // An older one is of another process that had the number.
        if (!fs::is_regular_file(from, error) || fs::last_write_time(from, error) < began || error) continue;
        if (!fs::copy_file(from, options_.folder / copy, fs::copy_options::overwrite_existing, error))
            return Error{Errc::unreadable, fmt::format("cannot copy {} to {}: {}", from.string(),
                                                       (options_.folder / copy).string(), error.message())};
        generated_names_.push_back({format, std::string(copy)});
    }
    return generated_names_.size();
}

Status Recorder::finish(bool complete) {
    // How far a block ran is unknown if nothing is known after it; that it was entered settles the one before.
    for (auto& [number, t] : threads_) settle(t, 0, false);
    for (auto& [number, t] : threads_) close_stream(t);
    if (formatter_) formatter_->flush();
    if (Status status = write_trace(); !status) fail(status.error());
    if (Status status = write_ram(); !status) fail(status.error());
    // Even where trace could not be written: the sums may still fit.
    if (Status status = describe(complete && !failure_); !status) fail(status.error());
    return failure_ ? Status(*failure_) : Status(Nothing{});
}

Recorded Recorder::recorded() const {
    Recorded r = recorded_;
    r.instructions = clock_.cycle;
    r.start_known = options_.start_at && options_.start_at->address();
    r.stop_known = options_.stop_at && options_.stop_at->address();
    const auto look = [&](const CodePlace& place) {
        if (!place.address()) r.unknown_places.push_back(place.text());
    };
    for (const PlacedRange& range : options_.ranges) {
        look(range.first);
        if (range.end) look(*range.end);
    }
    if (options_.trigger_at) look(*options_.trigger_at);
    for (const SourceTruth& s : truth_.sources) {
        r.ranges += s.ranges + s.lost_ranges;
        r.filtered_ranges += s.filtered_ranges;
    }
    r.trace_bytes = trace_bytes_ + frames_.size();
    r.kept_bytes = r.trace_bytes - replaced_bytes_ - replaced_in_ram();
    r.code_bytes = images_.bytes();
    for (const auto& [number, t] : threads_) {
        if (t.tracker.unknown_vector()) r.unknown_vector = t.tracker.unknown_vector();
        r.jumps += t.tracker.jumps();
    }
    return r;
}

}  // namespace waymark::record
