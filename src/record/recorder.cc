#include "waymark/record/recorder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "waymark/capture/dpu_folder.h"
#include "waymark/core/numbers.h"
#include "waymark/record/definition_parts.h"
#include "waymark/record/files.h"
#include "waymark/record/mapped_file.h"

namespace waymark::record {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t most_buffer_bytes = 1 << 30;

bool says_exception(std::uint32_t word) {
    const std::uint32_t kind = word & words::kind_mask;
    return word > words::max_block && (kind == words::exception || kind == words::half);
}

}  // namespace

Recorder::Recorder(RecorderOptions options)
    : options_(std::move(options)),
      extent_(std::move(options_.start_at), std::move(options_.stop_at)),
      reached_signals_(options_.signals.size()),
      images_(options_.folder),
      buffers_(options_.buffer_bytes, options_.sink) {
    capture_.description = ini_text(options_.description);
}

/// Resolves the addresses for the unit's comparators, as far as they are known.
void Recorder::place_unit() {
    // An address without code, so that nothing matches.
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
    // Only the unit knows which parts it was permitted to trace.
    if (!options_.signals.empty()) programmed_ = std::exchange(selected_, std::nullopt);
}

Recorder::~Recorder() {
    if (earlier_aside_) take_recordings_back(options_.folder);
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
        // A recording of another unit also has a truth.
        return fs::exists(folder / truth_file, none) && fs::exists(folder / "snapshot.ini", none) &&
               !fs::exists(folder / capture::dpu_ini, none);
    };
    WM_ASSIGN_OR_RETURN(OutputLock lock, lock_folder(folder, holds_recording, "a recording", options.force));
    std::error_code none;
    const bool replaced = holds_recording() || fs::exists(folder / capture::dpu_ini, none);
    WM_ASSIGN_OR_RETURN(const bool aside, set_recordings_aside(folder));
    std::unique_ptr<Recorder> recorder(new Recorder(std::move(options)));
    const RecorderOptions& asked = recorder->options_;
    if (!asked.ranges.empty() || asked.trigger_at || asked.unit.programmed() || !asked.signals.empty())
        recorder->place_unit();
    recorder->lock_ = std::move(lock);
    recorder->recorded_.replaced = replaced;
    recorder->earlier_aside_ = aside;
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
    Thread& t = threads_
                    .try_emplace(number, number, clock_, options_.system, *options_.units,
                                 options_.unit.vmid ? options_.units->vmid() : flow::VmidRegister::none)
                    .first->second;
    t.tracker.context(options_.aarch64 && options_.system ? t.a64.context() : context_of(words::ns, number));
    if (options_.reset) t.tracker.resets_to(*options_.reset);
    return t;
}

void Recorder::definitions(std::span<const std::uint32_t> parts) {
    for_each_part(parts, [&](const DefinitionPart& part) {
        BlockPart block;
        PagePart page;
        MapPart map;
        UnmapPart unmap;
        StillMappedPart still_mapped;
        if (part.is(block) && may_follow(block.id, blocks_.size())) {
            if (block.id >= blocks_.size()) {
                blocks_.resize(block.id + 1);
                rows_.resize(blocks_.size());
            }
            if (rows_[block.id].epoch != 0)
                for (auto& [number, t] : threads_) t.tracker.forget_sequences();
            rows_[block.id] = {};
            blocks_[block.id].definition = part.definition(block);
            blocks_[block.id].module = modules_.at({block.address});
        } else if (part.is(page)) {
            images_.saw_page({page.address}, part.after(page).first(page_bytes));
        } else if (part.is(map)) {
            modules_.mapped(map, part.name(map), clock_.cycle);
            extent_.mapped(map, part.name(map));
            map_unit(map, std::string(part.name(map)));
        } else if (part.is(unmap)) {
            modules_.unmapped(unmap, clock_.cycle);
        } else if (part.is(still_mapped)) {
            modules_.still_mapped(still_mapped);
        }
    });
}

/// A file is mapped, which may contain addresses for the unit's comparators.
void Recorder::map_unit(const MapPart& part, const std::string& name) {
    for (SignalChange& signal : options_.signals)
        if (signal.at) signal.at->mapped(name, {part.address}, part.file_offset, part.bytes);
    if (options_.ranges.empty() && !options_.trigger_at) return;
    const auto mapped = [&](CodePlace& place) { place.mapped(name, {part.address}, part.file_offset, part.bytes); };
    for (PlacedRange& range : options_.ranges) {
        mapped(range.first);
        if (range.end) mapped(*range.end);
    }
    if (options_.trigger_at) mapped(*options_.trigger_at);
    const flow::UnitOptions before = options_.unit;
    place_unit();
    if (before.view != options_.unit.view || before.exclude != options_.unit.exclude ||
        before.trigger_at != options_.unit.trigger_at)
        program_units();
}

void Recorder::execution(std::uint32_t number, std::span<const std::uint32_t> chunk) {
    if (recorded_.stopped || failure_) return;
    Thread& t = thread(number);
    const std::uint64_t limit = options_.limit_instructions != 0 ? options_.limit_instructions : ~std::uint64_t{0};
    for (;;) {
        if (chunk.empty()) break;
        // An exception gives more detail about the place at which it stopped the block.
        if (t.cut && !says_exception(chunk.front())) settle(t);
        chunk = chunk.subspan(t.tracker.follow(chunk, rows_, recorded_.epochs, limit, t.held));
        if (chunk.empty()) break;
        const std::uint32_t word = chunk.front();
        chunk = chunk.subspan(1);
        if (word <= words::max_block) {
            settle(t);
            t.held = word;
            continue;
        }
        switch (word & words::kind_mask) {
            case words::cut: t.cut = word & words::value_mask; break;
            case words::system_call:
                settle(t);
                if (t.tracker.attached()) t.tracker.system_call();
                break;
            case words::thread_end:
                settle(t);
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
    if (buffers_.waiting() >= write_bytes) fail_if(write_trace());
    if (buffers_.stopped() && buffers_.sink() != nullptr && buffers_.sink()->triggered() && !recorded_.stopped)
        stop(options_.sink->after_trigger()
                 ? fmt::format("where the trace buffer stopped, {} bytes after its trigger (--stop-after-trigger)",
                               *options_.sink->after_trigger())
                 : std::string("where the trace buffer stopped after its trigger"));
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

void Recorder::settle(Thread& t, std::optional<std::uint32_t> end, bool stopped) {
    const std::optional<std::uint32_t> cut = std::exchange(t.cut, std::nullopt);
    if (t.held == 0) return;
    const std::uint32_t id = std::exchange(t.held, 0);
    if (recorded_.stopped || id >= blocks_.size()) return;
    Block& block = known(t, id);
    execute(t, block, completed_part(block.code, end, stopped, cut));
}

Recorder::Block& Recorder::known(Thread& t, std::uint32_t id) {
    Block& block = blocks_[id];
    if (!block.definition) return block;
    const auto isa = options_.aarch64 ? std::optional(isa::Isa::a64) : instruction_set(*block.definition);
    block.code =
        understand(*block.definition, isa ? *isa : arriving(t, block.definition->address),
                   options_.units->decode_options(options_.unit), flow::traces_each_instruction(*options_.units));
    block.definition.reset();
    if (options_.system) block_isas_.insert_or_assign(block.code.address.value, block.code.isa);
    return block;
}

isa::Isa Recorder::isa_at(const Thread& t, Address address) const {
    if (address.value % 4 != 0) return isa::Isa::t32;
    if (const auto known = block_isas_.find(address.value); known != block_isas_.end()) return known->second;
    if (options_.instruction_set)
        if (const auto found = options_.instruction_set(address)) return *found;
    return t.tracker.isa();
}

isa::Isa Recorder::arriving(const Thread& t, Address address) const {
    if (const auto found = t.tracker.arriving(address)) return *found;
    if (options_.instruction_set) return options_.instruction_set(address).value_or(isa::Isa::a32);
    return isa::Isa::a32;
}

void Recorder::execute(Thread& t, Block& block, CompletedPart part) {
    constexpr std::uint32_t first_thread = 1;
    const Code& code = block.code;
    const bool other_thread = options_.start_of_first_thread && t.number != first_thread;
    const bool is_early = !extent_.began() && !other_thread;
    const std::optional<RecordedExtent::Piece> piece = extent_.piece(code, part, other_thread);
    if (is_early && !options_.system) {
        earlier_code_.ran(t.number, code, piece ? CompletedPart{0, piece->part.first, false} : part);
        modules_.ran_unrecorded(block.module);
    }
    if (!piece) return;
    const std::uint32_t first = piece->part.first;
    // The unit traces only A64.
    if (t.a64.aarch32()) return;
    if (!t.tracker.attached()) open_stream(t);
    const Place place{code.address + (first == 0 ? 0 : code.instructions[first].offset), code.isa};
    if (block.epoch != recorded_.epochs) {
        // There was other code at these addresses, or the same bytes from another file, with other names.
        if (!images_.fits(code.address, code.bytes) || modules_.conflicts(block.module)) {
            if (const sink::Tmc* const sink = buffers_.sink();
                sink != nullptr && options_.sink->after_trigger() && sink->trigger_at()) {
                // The new code would need a separate buffer, which would not stop: stop here.
                t.tracker.arrive(place);
                stop("where code changed while the trace buffer counted after its trigger");
                return;
            }
            if (++recorded_.code_changes > options_.limit_changes) {
                --recorded_.code_changes;
                recorded_.changed_too_often = true;
                t.tracker.arrive(place);
                stop(fmt::format("when code had changed {} times (--max-changes)", options_.limit_changes));
                return;
            }
            // The branch that leads to the new code is moved along, so that the caller is known.
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
        if (options_.trigger_at)
            if (const auto trigger = options_.trigger_at->address())
                reached_trigger_ |= code.address <= *trigger && *trigger < code.end();
        modules_.run(block.module, clock_.cycle);
        block.epoch = recorded_.epochs;
        if (!piece->has_stop) rows_[static_cast<std::size_t>(&block - blocks_.data())] = row_of(code, block.epoch);
    } else {
        t.tracker.arrive(place);
    }
    if (code.instructions.empty()) {
        // In a system, a block without instructions is an address that cannot be fetched: an exception follows.
        if (!options_.system) t.tracker.leave();
        return;
    }
    run(t, code, piece->part);
    if (t.tracker.lost_way()) {
        recorded_.lost_way = place.address;
        stop(fmt::format("at {:#x}, where half a megabyte ran without a branch", place.address.value));
        return;
    }
    if (piece->stops)
        stop(fmt::format("where execution reached {} (--stop-at)", extent_.stop()->text()));
    else if (options_.limit_instructions != 0 && clock_.cycle >= options_.limit_instructions)
        stop(fmt::format("after {} (--limit)", counted(options_.limit_instructions, "instruction")));
}

void Recorder::run(Thread& t, const Code& code, CompletedPart part) {
    if (options_.signals.empty()) return t.tracker.run(code, part.first, part.end, part.stopped);
    begin_signals(t);
    std::uint32_t at = part.first;
    for (std::uint32_t index = part.first; index < part.end; ++index) {
        const Address place = code.address + code.instructions[index].offset;
        for (std::size_t n = 0; n < options_.signals.size(); ++n) {
            const SignalChange& signal = options_.signals[n];
            if (!signal.at || signal.at->address() != place) continue;
            reached_signals_[n] = true;
            if (index != at) {
                t.tracker.run(code, at, index, false);
                t.tracker.arrive({place, code.isa});
                at = index;
            }
            change(t, signal);
        }
    }
    t.tracker.run(code, at, part.end, part.stopped);
}

void Recorder::begin_signals(Thread& t) {
    if (!t.stream || !std::exchange(t.stream->fresh, false)) return;
    if (recorded_.threads == 1 && recorded_.epochs == 1)
        for (const SignalChange& signal : options_.signals)
            if (!signal.at) change(t, signal);
    if (const auto permission = authentication_.permission(); permission != flow::TracePermission{})
        t.tracker.permit(permission);
    if (!t.powered) t.tracker.power(false, options_.unit);
    if (t.locked) t.tracker.os_lock(true);
}

void Recorder::change(Thread& t, const SignalChange& change) {
    switch (change.of) {
        case SignalChange::Of::authentication: {
            for (auto& [number, other] : threads_) note_prohibited(other);
            const auto set = [](bool& signal, const std::optional<bool>& value) { signal = value.value_or(signal); };
            set(authentication_.niden, change.niden);
            set(authentication_.dbgen, change.dbgen);
            set(authentication_.spniden, change.spniden);
            set(authentication_.spiden, change.spiden);
            for (auto& [number, other] : threads_)
                if (other.stream && !other.stream->fresh) other.tracker.permit(authentication_.permission());
            return;
        }
        case SignalChange::Of::power:
            note_prohibited(t);
            if (std::exchange(t.powered, change.on) != change.on) t.tracker.power(change.on, options_.unit);
            return;
        case SignalChange::Of::os_lock:
            note_prohibited(t);
            if (std::exchange(t.locked, change.on) != change.on) t.tracker.os_lock(change.on);
            return;
    }
}

void Recorder::note_prohibited(Thread& t) {
    if (!t.stream) return;
    Stream& s = *t.stream;
    const std::uint64_t ranges = t.tracker.not_permitted(), perhaps = t.tracker.perhaps_not_permitted();
    const std::uint64_t instructions = t.tracker.not_permitted_instructions();
    const std::uint64_t new_ranges = ranges - std::exchange(s.not_permitted_before, ranges);
    const std::uint64_t new_instructions = instructions - std::exchange(s.instructions_before, instructions);
    const bool unknown = std::exchange(s.perhaps_before, perhaps) != perhaps;
    if (!unknown && new_ranges == 0) return;
    const auto [non_secure, secure] = authentication_.permission();
    std::vector<std::string> why;
    if (!non_secure)
        why.emplace_back("NIDEN=0");
    else if (!secure && options_.system)
        why.emplace_back("SPNIDEN=0");
    if (!t.powered) why.emplace_back("no power");
    if (t.locked) why.emplace_back("OS Lock");
    if (why.empty()) return;
    const std::string reason = fmt::format("{}", fmt::join(why, " and "));
    auto known = std::find_if(recorded_.prohibited.begin(), recorded_.prohibited.end(),
                              [&](const capture::NotPermitted& one) { return one.reason == reason; });
    if (known == recorded_.prohibited.end()) known = recorded_.prohibited.insert(known, {reason, 0, 0});
    described_ = false;
    if (unknown) {
        known->instructions = known->ranges = std::nullopt;
    } else if (known->ranges) {
        *known->ranges += new_ranges;
        *known->instructions += new_instructions;
    }
}

void Recorder::open_stream(Thread& t) {
    if (next_id_ > last_id) new_epoch();
    const std::string suffix = recorded_.epochs == 1 ? "" : fmt::format("_{}", recorded_.epochs);
    if (!buffers_.is_open()) {
        const fs::path path = options_.folder / fmt::format("trace{}.bin", suffix);
        fail_if(buffers_.open(path));
        const std::string kind = options_.sink ? options_.sink->name() : "ETB";
        const bool port = options_.sink && !options_.sink->buffer;
        const auto format = port ? capture::Buffer::Format::dstream_coresight : capture::Buffer::Format::coresight;
        capture_.buffers.push_back({kind + suffix, format, std::string(capture::name(format)), {path}, {}});
        open_sinks_ = sinks_.size();
    }
    // After it ended, a thread can only return with a new number, but an epoch may see one number begin twice.
    t.stream = std::make_unique<Stream>();
    Stream& s = *t.stream;
    s.id = {next_id_++};
    const std::uint32_t shown = options_.system ? t.number - 1 : t.number;
    s.name = fmt::format("{}_{}{}", options_.units->name(), shown, suffix);
    const std::string core = fmt::format("{}_{}{}", options_.system ? "core" : "thread", shown, suffix);
    buffers_.connect(s.id);
    const flow::UnitFactory& units = *options_.units;
    s.unit = units.make(options_.unit, s.trace);
    if (flow::UnitSignals* const signals = flow::signals_of(*s.unit); options_.sink && signals != nullptr)
        signals->on_trigger([this, &s] { trigger(s); });
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
    t.tracker.attach(*s.unit, truth_.sources[s.truth], s.ranges.get(), !options_.signals.empty());
    t.tracker.select(selected_);
    t.tracker.programmed(programmed_);
}

/// Programs the unit like a debugger, when it knows the addresses.
void Recorder::program_units() {
    for (auto& [number, t] : threads_) {
        if (!t.stream) continue;
        t.tracker.program(options_.unit);
        t.tracker.select(selected_);
        t.tracker.programmed(programmed_);
        for (capture::Source& source : capture_.sources)
            if (source.name == t.stream->name)
                source.registers = options_.units->registers(options_.unit, t.stream->id.value);
    }
    described_ = false;
}

void Recorder::close_stream(Thread& t) {
    t.tracker.detach();
    if (!t.stream) return;
    if (!options_.signals.empty()) note_prohibited(t);
    collect(t);
    // Packets that the unit had not sent, or sent later, are not in the buffer.
    if (buffers_.stopped()) truth_.sources[t.stream->truth].stopped = true;
    modules_.source_ended(t.stream->name, clock_.cycle);
    if (t.stream->ranges && !t.stream->ranges->flush())
        fail(cannot("write", options_.folder / truth_.sources[t.stream->truth].file));
    t.stream.reset();
}

void Recorder::collect(Thread& t) {
    if (t.stream) collect(*t.stream);
}

void Recorder::collect(Stream& s) {
    if (s.trace.bytes.empty()) return;
    buffers_.add(s.id, s.trace.bytes);
    s.trace.bytes.clear();
}

void Recorder::trigger(Stream& s) {
    collect(s);
    if (buffers_.stopped()) return;
    ++recorded_.triggers;
    buffers_.trigger(s.id);
}

void Recorder::note_sink() {
    if (buffers_.path() == nullptr) return;
    const std::string suffix = recorded_.epochs == 1 ? "" : fmt::format("_{}", recorded_.epochs);
    sinks_.resize(open_sinks_);
    for (sink::SinkPath::Device& device : buffers_.path()->devices())
        sinks_.push_back({device.name + suffix, device.type, std::move(device.registers), device.is_link});
    const sink::Tmc* const sink = buffers_.sink();
    if (sink == nullptr) return;
    // A later buffer, for code that changed, does not replace the first trigger.
    if (!sink->trigger_at() || recorded_.before_trigger) return;
    recorded_.before_trigger = *sink->trigger_at();
    recorded_.after_trigger = sink->written() - *sink->trigger_at();
    const std::vector<RegisterValue> registers = sink->registers();
    const RegisterValue* const control = find_register(registers, sink::Tmc::register_name(sink::Tmc::ffcr));
    recorded_.stopped_by_trigger =
        sink->triggered() && control != nullptr && (control->value & sink::Ffcr::stop_on_trig_evt) != 0;
}

void Recorder::new_epoch() {
    for (auto& [number, t] : threads_) close_stream(t);
    buffers_.flush();
    fail_if(write_trace(true));
    fail_if(write_ram());
    fail_if(archive_images());
    buffers_.close();
    dumps_before_ = capture_.dumps.size();
    epoch_cores_.clear();
    described_ = false;
    modules_.new_epoch();
    next_id_ = first_id;
    ++recorded_.epochs;
}

void Recorder::stop(std::string where) {
    for (auto& [number, t] : threads_) close_stream(t);
    // QEMU ends with the recording of a system, which would otherwise continue.
    ends_ = std::move(where);
    recorded_.stopped = true;
}

void Recorder::fail(Error error) {
    if (!failure_) failure_ = std::move(error);
}

void Recorder::fail_if(const Status& status) {
    if (!status) fail(status.error());
}

Status Recorder::finish(bool complete, std::string_view ended) {
    if (!ended.empty()) capture_.description += ", " + ini_text(std::string(ended));
    // If nothing is known after the last block, it is not known how far it ran; its entry proves that the previous
    // block is complete.
    for (auto& [number, t] : threads_) settle(t, 0, false);
    for (auto& [number, t] : threads_) close_stream(t);
    buffers_.flush();
    fail_if(write_trace());
    fail_if(write_ram());
    // Even if trace could not be written, the sums may still fit.
    fail_if(describe(complete && !failure_));
    if (earlier_aside_) {
        // An earlier recording is only replaced by one that contains something.
        const bool undecodable = failure_ && (!recorded_.decodable || buffers_.kept_bytes() == 0);
        recorded_.kept_earlier = recorded().ranges == 0 || undecodable;
        if (recorded_.kept_earlier)
            take_recordings_back(options_.folder);
        else
            forget_recordings_aside(options_.folder);
        earlier_aside_ = false;
    }
    return failure_ ? Status(*failure_) : Status(Nothing{});
}

Recorded Recorder::recorded() const {
    Recorded r = recorded_;
    r.instructions = clock_.cycle;
    r.began = extent_.began();
    r.start_known = extent_.start_known();
    r.stop_known = extent_.stop_known();
    const auto look = [&](const CodePlace& place) {
        if (!place.address()) r.unknown_places.push_back(place.text());
    };
    for (const PlacedRange& range : options_.ranges) {
        look(range.first);
        if (range.end) look(*range.end);
    }
    if (options_.trigger_at) look(*options_.trigger_at);
    r.trigger_unreached = options_.trigger_at && options_.trigger_at->address() && !reached_trigger_;
    for (std::size_t n = 0; n < options_.signals.size(); ++n)
        if (const SignalChange& signal = options_.signals[n]; signal.at && !reached_signals_[n])
            r.unreached_signals.emplace_back(signal.option, signal.at->address().has_value());
    for (const SourceTruth& s : truth_.sources) {
        r.ranges += s.ranges + s.lost_ranges;
        r.filtered_ranges += s.filtered_ranges;
        r.filtered_instructions += s.filtered_instructions;
    }
    r.trace_bytes = buffers_.sent_bytes();
    r.kept_bytes = buffers_.kept_bytes();
    r.code_bytes = images_.bytes();
    for (const auto& [number, t] : threads_) {
        if (t.tracker.unknown_vector()) r.unknown_vector = t.tracker.unknown_vector();
        r.jumps += t.tracker.jumps();
        r.not_permitted_ranges += t.tracker.not_permitted();
    }
    return r;
}

}  // namespace waymark::record
