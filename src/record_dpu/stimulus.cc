#include "waymark/record_dpu/stimulus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "driven_unit.h"
#include "waymark/capture/dpu_folder.h"
#include "waymark/capture/ini_value.h"
#include "waymark/capture/placed_file.h"
#include "waymark/core/numbers.h"
#include "waymark/core/wire.h"
#include "waymark/dpu/events.h"
#include "waymark/dpu/program_effects.h"
#include "waymark/dpu/registers.h"
#include "waymark/record/files.h"

namespace waymark::record {

namespace {

using dpu::EonceItem, dpu::EventWire, dpu::ItemKind;

// A text of a few lines can request any number of cycles, but the model's run time depends on the number of steps,
// including repetitions.
constexpr std::size_t most_steps = 4'000'000;
constexpr std::size_t most_stimulus_bytes = std::size_t{16} << 20;
constexpr std::uint64_t most_cycles = std::uint64_t{1} << 31, most_stepped_cycles = 100'000'000;

struct KindName {
    std::string_view name;
    ItemKind kind;
    unsigned addresses;  ///< that follow
};
constexpr KindName kind_names[] = {{"call", ItemKind::call, 2},
                                   {"return", ItemKind::ret, 2},
                                   {"rte", ItemKind::rte, 2},
                                   {"interrupt", ItemKind::interrupt, 2},
                                   {"exception", ItemKind::interrupt, 2},
                                   {"system-call", ItemKind::interrupt, 2},
                                   {"jump", ItemKind::cof, 2},
                                   {"short-loop", ItemKind::loop_short, 1},
                                   {"long-loop", ItemKind::loop_long, 2},
                                   {"mark", ItemKind::mark, 1},
                                   {"set", ItemKind::exec_set, 1},
                                   {"edca", ItemKind::edca, 1},
                                   {"edcd", ItemKind::edcd, 0},
                                   {"debugev", ItemKind::debugev, 0}};

std::vector<std::string_view> words_of(std::string_view line) {
    line = line.substr(0, line.find('#'));
    std::vector<std::string_view> out;
    while (!line.empty()) {
        const std::size_t first = line.find_first_not_of(" \t\r");
        if (first == line.npos) break;
        const std::size_t end = std::min(line.find_first_of(" \t\r", first), line.size());
        out.push_back(line.substr(first, end - first));
        line.remove_prefix(end);
    }
    return out;
}

/// Iterates over the steps of a stimulus in execution order.
class StepOrder {
public:
    explicit StepOrder(const DpuStimulus& stimulus) : stimulus_(stimulus) {
        for (const StimulusRepeat& repeat : stimulus.repeats) left_.push_back(repeat.times);
    }
    /// The next step; null at the end.
    const StimulusStep* next() {
        if (at_ == stimulus_.steps.size()) return nullptr;
        const StimulusStep* const out = &stimulus_.steps[at_++];
        const auto& repeats = stimulus_.repeats;
        auto repeat = std::lower_bound(repeats.begin(), repeats.end(), at_,
                                       [](const StimulusRepeat& r, std::size_t end) { return r.end < end; });
        for (; repeat != repeats.end() && repeat->end == at_; ++repeat) {
            std::uint64_t& left = left_[static_cast<std::size_t>(repeat - repeats.begin())];
            if (--left != 0) {
                at_ = repeat->first;
                break;
            }
            left = repeat->times;
        }
        return out;
    }

private:
    const DpuStimulus& stimulus_;
    std::vector<std::uint64_t> left_;  // of each repeat
    std::size_t at_ = 0;
};

class StimulusReader {
public:
    Result<DpuStimulus> read(std::string_view text) {
        if (text.size() > most_stimulus_bytes)
            return Error{Errc::unsupported, "over 16 MiB, so it is not a stimulus", {}};
        for (unsigned number = 1; !text.empty(); ++number) {
            const std::string_view line = text.substr(0, text.find('\n'));
            text.remove_prefix(std::min(line.size() + 1, text.size()));
            line_ = number;
            if (Status read = take(line); !read)
                return Error{read.error().code, fmt::format("line {}: {}", number, read.error().message)};
        }
        if (!repeats_.empty()) return bad(fmt::format("the 'repeat' of line {} has no 'end'", repeats_.back().line));
        if (!next_.items.empty() || !next_.writes.empty() || next_.sample)
            return bad("items and writes at the end are in no cycle; write 'cycle' after them");
        if (out_.steps.empty()) return bad("there is no line 'cycle' or 'cycles', so nothing happens");
        return std::move(out_);
    }

private:
    static Error bad(std::string what) { return {Errc::bad_format, std::move(what)}; }

    static Result<std::uint64_t> number(std::string_view word, std::uint64_t most, std::string_view what) {
        std::uint64_t value = 0;
        if (!wire::scan_number(word, value) || value > most)
            return bad(fmt::format("'{}' is no {}; expected a number up to {:#x}", word, what, most));
        return value;
    }
    static Result<dpu::CoreContext> context(std::span<const std::string_view> words) {
        if (words.size() < 2 || words.size() > 3 || (words[0] != "user" && words[0] != "supervisor"))
            return bad(
                "a context is 'user' or 'supervisor', the program ID and the data ID, as in 'user 5 5'; one number "
                "is both IDs");
        dpu::CoreContext out;
        out.supervisor = words[0] == "supervisor";
        WM_ASSIGN_OR_RETURN(const std::uint64_t pid, number(words[1], 255, "task ID"));
        WM_ASSIGN_OR_RETURN(const std::uint64_t did, number(words.back(), 255, "task ID"));
        out.pid = static_cast<std::uint8_t>(pid);
        out.did = static_cast<std::uint8_t>(did);
        return out;
    }

    Status take(std::string_view line) {
        const std::vector<std::string_view> words = words_of(line);
        if (words.empty()) return Nothing{};
        const std::string_view verb = words[0];
        const std::span<const std::string_view> rest = std::span(words).subspan(1);
        if (verb == "context") {
            WM_ASSIGN_OR_RETURN(now_, context(rest));
            return Nothing{};
        }
        if (verb == "debug") {
            if (rest.size() != 1 || (rest[0] != "on" && rest[0] != "off"))
                return bad("expected 'debug on' or 'debug off'");
            in_debug_ = rest[0] == "on";
            return Nothing{};
        }
        if (verb == "cycle" || verb == "cycles") return cycles(verb == "cycles", rest);
        if (verb == "item") return item(rest);
        if (verb == "write") {
            const std::size_t at = line.find("write");
            const auto program = dpu::read_program(line.substr(at + 5, line.find('#', at) - at - 5));
            if (!program) return bad(program.error().message.substr(program.error().message.find(": ") + 2));
            if (program->size() != 1 || program->front().cycle != 0)
                return bad("expected one write without a cycle, as in 'write DP_TD 0x1234'");
            next_.writes.push_back(program->front());
            return Nothing{};
        }
        if (verb == "sample") {
            next_.sample = true;
            return Nothing{};
        }
        if (verb == "repeat") {
            if (rest.size() != 1) return bad("expected 'repeat N'");
            WM_ASSIGN_OR_RETURN(const std::uint64_t times, number(rest[0], most_steps, "number of times"));
            repeats_.push_back({out_.steps.size(), times, line_, runs_});
            return Nothing{};
        }
        if (verb == "end") return end();
        if (verb == "eonce") {
            for (const std::string_view word : rest) {
                static constexpr std::string_view classes[] = {"TCHOF", "TINT", "TEXEC", "TMARK",
                                                               "TLOOP", "TSUB", "TRTE"};
                if (word == "TCOUNT")
                    out_.tcount = true;
                else if (word == "TCNTEXT")
                    out_.tcntext = true;
                else if (std::find(std::begin(classes), std::end(classes), word) != std::end(classes))
                    out_.eonce.emplace_back(word);
                else
                    return bad(fmt::format("'{}' is not a class of the EOnCE; the classes are {}, TCOUNT and TCNTEXT",
                                           word, fmt::join(classes, ", ")));
            }
            return Nothing{};
        }
        if (verb == "symbol" || verb == "task") {
            if (rest.size() < 2) return bad(fmt::format("expected '{} NUMBER NAME'", verb));
            WM_ASSIGN_OR_RETURN(const std::uint64_t at, number(rest[0], verb == "task" ? 255 : 0xffffffff, "number"));
            std::string name = fmt::format("{}", fmt::join(rest.subspan(1), " "));
            WM_RETURN_IF_ERROR(capture::check_value("dpu.ini", verb == "task" ? "task name" : "symbol", name));
            (verb == "task" ? out_.tasks : out_.symbols).emplace_back(static_cast<std::uint32_t>(at), std::move(name));
            return Nothing{};
        }
        return bad(
            fmt::format("'{}' is not a line of a stimulus; lines begin with context, cycle, cycles, item, write, "
                        "sample, debug, repeat, end, eonce, symbol and task",
                        verb));
    }

    Status cycles(bool many, std::span<const std::string_view> words) {
        StimulusStep step = std::exchange(next_, {});
        step.context = before_;
        step.in_debug = in_debug_;
        step.line = line_;
        if (step.items.empty()) step.context = now_;
        if (many) {
            if (words.empty()) return bad("expected 'cycles N' and the events in them, as in 'cycles 100 VLES=80'");
            WM_ASSIGN_OR_RETURN(step.cycles, number(words[0], most_cycles, "number of cycles"));
            if (step.cycles == 0) return bad("no cycles: expected at least 1");
            if (!step.items.empty() || !step.writes.empty() || step.sample)
                return bad(
                    "items and writes are in one cycle; write 'cycle' after them, and 'cycles' for what follows");
            words = words.subspan(1);
        }
        for (const std::string_view word : words) {
            const std::size_t equals = word.find('=');
            const auto wire = dpu::event_wire(word.substr(0, equals));
            if (!wire || *wire == EventWire::none)
                return bad(fmt::format("'{}' is not an event; section 8 of docs/spec/dpu.md lists them",
                                       word.substr(0, equals)));
            if (dpu::is_own(*wire))
                return bad(fmt::format("the unit itself makes the event {}, from contexts, items and its buffer",
                                       dpu::name(*wire)));
            std::uint64_t times = 1;
            if (equals != word.npos) {
                WM_ASSIGN_OR_RETURN(times, number(word.substr(equals + 1), most_cycles, "number of events"));
            }
            if (dpu::is_duration(*wire) && times > step.cycles)
                return bad(fmt::format("{} lasts {} of {}; expected at most as many", dpu::name(*wire),
                                       counted(times, "cycle"), step.cycles));
            std::erase_if(step.events, [&](const auto& event) { return event.first == *wire; });
            if (times != 0) step.events.emplace_back(*wire, times);
        }
        before_ = now_;
        return add(std::move(step));
    }

    Status item(std::span<const std::string_view> words) {
        if (words.empty()) return bad("expected 'item KIND', as in 'item call 0x1000 0x2000'");
        const auto kind = std::find_if(std::begin(kind_names), std::end(kind_names),
                                       [&](const KindName& k) { return k.name == words[0]; });
        if (kind == std::end(kind_names)) {
            std::string all;
            for (const KindName& k : kind_names) all += fmt::format("{}{}", all.empty() ? "" : ", ", k.name);
            return bad(fmt::format("'{}' is not a kind of item; the kinds are {}", words[0], all));
        }
        if (next_.items.empty()) before_ = now_;
        EonceItem out;
        out.kind = kind->kind;
        out.cause = kind->name == "exception"     ? dpu::InterruptCause::exception
                    : kind->name == "system-call" ? dpu::InterruptCause::system_call
                                                  : dpu::InterruptCause::interrupt;
        words = words.subspan(1);
        std::vector<std::uint32_t> numbers;
        while (!words.empty() && numbers.size() < kind->addresses + (kind->kind == ItemKind::edca ? 1 : 0) &&
               words[0] != "user" && words[0] != "supervisor" && words[0].find('=') == words[0].npos) {
            WM_ASSIGN_OR_RETURN(const std::uint64_t value, number(words[0], 0xffffffff, "address"));
            numbers.push_back(static_cast<std::uint32_t>(value));
            words = words.subspan(1);
        }
        if (numbers.size() < kind->addresses)
            return bad(fmt::format("item {} has {}; expected {}", kind->name, counted(numbers.size(), "number"),
                                   kind->kind == ItemKind::edca ? "a channel from 0 to 5, and perhaps an address"
                                   : kind->addresses == 2       ? "a source and a destination"
                                                                : "an address"));
        if (kind->kind == ItemKind::edca) {
            if (numbers[0] > 5) return bad(fmt::format("channel {}; expected one from 0 to 5", numbers[0]));
            out.channel = static_cast<std::uint8_t>(numbers[0]);
            numbers.erase(numbers.begin());
        }
        if (!numbers.empty()) out.src = numbers[0];
        if (numbers.size() > 1) out.dst = numbers[1];
        for (; !words.empty() && words[0].find('=') != words[0].npos; words = words.subspan(1)) {
            const std::size_t equals = words[0].find('=');
            WM_ASSIGN_OR_RETURN(const std::uint64_t value,
                                number(words[0].substr(equals + 1), dpu::counter_mask, "count"));
            if (words[0].substr(0, equals) == "count")
                out.count = static_cast<std::uint32_t>(value);
            else if (words[0].substr(0, equals) == "ext")
                out.ext = static_cast<std::uint32_t>(value);
            else
                return bad(fmt::format("'{}' is not a property of an item; expected count=N or ext=N", words[0]));
        }
        if (!words.empty()) {
            WM_ASSIGN_OR_RETURN(now_, context(words));
        }
        out.after = now_;
        next_.items.push_back(out);
        return Nothing{};
    }

    Status end() {
        if (repeats_.empty()) return bad("'end' without a 'repeat' before it");
        const Repeat repeat = repeats_.back();
        repeats_.pop_back();
        if (!next_.items.empty() || !next_.writes.empty() || next_.sample)
            return bad("items and writes before 'end' are in no cycle; write 'cycle' after them");
        const std::uint64_t body = runs_ - repeat.runs_before;
        if (body == 0) return Nothing{};
        if (repeat.times > (most_steps - repeat.runs_before) / body)
            return Error{
                Errc::unsupported,
                fmt::format("{} times {} steps{}; a stimulus has at most {}", repeat.times, body,
                            repeat.runs_before == 0 ? "" : fmt::format(" after {}", repeat.runs_before), most_steps)};
        runs_ = repeat.runs_before + repeat.times * body;
        if (repeat.times == 0) {
            out_.steps.resize(repeat.first);
            std::erase_if(out_.repeats, [&](const StimulusRepeat& inner) { return inner.end > repeat.first; });
        } else if (repeat.times != 1) {
            out_.repeats.push_back({repeat.first, out_.steps.size(), repeat.times});
        }
        return Nothing{};
    }

    Status add(StimulusStep step) {
        if (runs_ >= most_steps) return Error{Errc::unsupported, fmt::format("more than {} steps", most_steps)};
        ++runs_;
        out_.steps.push_back(std::move(step));
        return Nothing{};
    }

    struct Repeat {
        std::size_t first;
        std::uint64_t times;
        unsigned line;
        std::uint64_t runs_before;
    };
    std::uint64_t runs_ = 0;  // steps so far, including repetitions
    DpuStimulus out_;
    StimulusStep next_;
    dpu::CoreContext now_, before_;
    bool in_debug_ = false;
    std::vector<Repeat> repeats_;
    unsigned line_ = 0;
};

/// The model, its buffer, and the handling of its outputs.
class StimulusRunner {
public:
    StimulusRunner(const dpu::RegisterProgram& program, const DpuStimulus& stimulus, const dpu::ModelConfig& config)
        : program_(program), stimulus_(stimulus), config_(config), model_(config) {
        dpu::Registers registers;
        for (const dpu::RegisterWrite& w : program) registers.set(w.offset, w.value);
        for (const StimulusStep& step : stimulus.steps)
            for (const dpu::RegisterWrite& w : step.writes) registers.set(w.offset, w.value);
        single_ = registers.tc.vtb_mode() == dpu::VtbMode::single_address;
        first_ = to_value(registers.tsa), last_ = to_value(registers.tea);
    }

    Status run() {
        constexpr std::uint32_t most_ring = 1U << 28;
        if (!single_ && last_ >= first_) {
            if (last_ - first_ >= most_ring)
                return Error{
                    Errc::unsupported,
                    fmt::format("DP_TSA {:#x} and DP_TEA {:#x} make a buffer of {} MiB, which would be written "
                                "as a file; the model takes at most {} MiB: write a lower DP_TEA",
                                first_, last_, (last_ - first_) >> 20, most_ring >> 20)};
            ring_.emplace(first_, last_);
        }
        StepOrder order(stimulus_);
        while (const StimulusStep* next = order.next()) {
            const StimulusStep& step = *next;
            dpu::CycleInput in;
            in.ctx = step.context;
            in.in_debug = step.in_debug;
            in.items = step.items;
            for (const dpu::RegisterWrite& w : step.writes) model_.write(w.offset, w.value);
            if (step.sample) {
                dpu::DpTc tc = from_value<dpu::DpTc>(model_.read(dpu::DpTc::offset));
                tc.sample = true;
                model_.write(dpu::DpTc::offset, to_value(tc));
            }
            for (const auto& [wire, times] : step.events) driven_.insert(wire);
            WM_RETURN_IF_ERROR(stretch(in, step));
        }
        stop();
        return Nothing{};
    }

    Status write(const std::filesystem::path& folder) {
        const auto save = [&](const std::filesystem::path& path, const std::vector<std::uint8_t>& bytes) -> Status {
            std::ofstream out(path, std::ios::binary);
            out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
            if (!out.flush()) return cannot("write", path);
            return Nothing{};
        };
        capture::DpuCapture c;
        describe(c);
        c.buffer = folder / "vtb.bin";
        const std::vector<std::uint8_t> bytes =
            ring_ ? std::vector<std::uint8_t>(ring_->bytes().begin(), ring_->bytes().end()) : lines_;
        WM_RETURN_IF_ERROR(save(c.buffer, bytes));
        if (sends_messages_) {
            c.nexus = folder / "nexus.bin";
            WM_RETURN_IF_ERROR(save(c.nexus, nexus_));
        }
        return capture::write_dpu_folder(c, folder);
    }

    StimulusRun result;

private:
    void write_due() {
        for (; next_ < program_.size() && program_[next_].cycle <= model_.cycle(); ++next_)
            model_.write(program_[next_].offset, program_[next_].value);
    }

    Status stretch(dpu::CycleInput in, const StimulusStep& step) {
        std::uint64_t done = 0;
        // Number of occurrences by the end of cycle `at` of the step: they are spread evenly.
        const auto by = [&](std::uint64_t times, std::uint64_t at) {
            return times / step.cycles * at + times % step.cycles * at / step.cycles;
        };
        while (done < step.cycles) {
            write_due();
            std::uint64_t piece = step.cycles - done;
            if (next_ < program_.size()) piece = std::min(piece, program_[next_].cycle - model_.cycle());
            for (const auto& [wire, times] : step.events)
                in.wire[static_cast<std::size_t>(wire)] = by(times, done + piece) - by(times, done);
            if (const dpu::CycleOutput* out = piece > 1 ? model_.run(in, piece) : nullptr) {
                give(*out);
                done += piece;
                continue;
            }
            for (const auto& [wire, times] : step.events)
                in.wire[static_cast<std::size_t>(wire)] = by(times, done + 1) - by(times, done);
            give(model_.step(in));
            in.items = {};
            ++done;
            if (++stepped_ > most_stepped_cycles)
                return Error{
                    Errc::unsupported,
                    fmt::format("line {}: more than {} cycles have to be run one by one (one-shot counters, or the "
                                "unit is off); use fewer",
                                step.line, most_stepped_cycles)};
        }
        return Nothing{};
    }

    void give(const dpu::CycleOutput& out) {
        while (period_lines_.size() < model_.periods().size()) period_lines_.push_back(written_lines_);
        for (const dpu::Burst& burst : out.bursts) {
            written_lines_ += burst.lines;
            if (ring_) {
                if (!ring_->store(burst)) result.outside += burst.lines;
                continue;
            }
            if (!single_) result.outside += burst.lines;
            for (const std::uint32_t word : burst.used())
                for (unsigned shift = 32; shift != 0;)
                    lines_.push_back(static_cast<std::uint8_t>(word >> (shift -= 8)));
        }
        sends_messages_ |= !out.nexus.empty();
        nexus_.insert(nexus_.end(), out.nexus.begin(), out.nexus.end());
        for (unsigned line = 0; line < 2; ++line) {
            if (out.pic[line] && !pic_[line]) ++result.interrupts[line];
            pic_[line] = out.pic[line];
        }
        if (out.debug_request) ++result.debug_requests;
        for (const dpu::ProgrammingError& e : out.errors)
            result.problems.push_back(fmt::format("cycle {}: {}", e.cycle, e.message));
    }

    /// Stops tracing, and flushes everything to the buffer.
    void stop() {
        run_cycles_ = model_.cycle();
        stopped_ = model_.registers();
        history_ = model_.counter_history();
        const auto& periods = model_.periods();
        final_ = !periods.empty() && !stopped_.tc.en && periods.back().final ? *periods.back().final : model_.values();
        dpu::CycleInput in;
        in.ctx = stimulus_.steps.back().context;
        if (!stimulus_.steps.back().items.empty()) in.ctx = stimulus_.steps.back().items.back().after;
        dpu::DpTc off = stopped_.tc;
        off.en = false;
        model_.write(dpu::DpTc::offset, to_value(off));
        constexpr unsigned most = 100'000;
        for (unsigned i = 0; i < most; ++i) {
            give(model_.step(in));
            if (model_.idle()) break;
        }
        result.counts = model_.counts();
    }

    /// Describes how long tracing was off, and where.
    void describe_off(capture::DpuCapture& c) const {
        const auto& periods = model_.periods();
        if (periods.empty()) return;
        std::uint64_t between = 0;
        for (std::size_t i = 1; i < periods.size(); ++i)
            between += periods[i].cycle - periods[i - 1].end.value_or(periods[i].cycle);
        const std::uint64_t before = periods.front().cycle;
        const bool ended = !stopped_.tc.en && periods.back().end;
        const std::uint64_t after = ended ? run_cycles_ - *periods.back().end : 0;
        if (before == 0 && between == 0 && after == 0) return;
        for (const auto& [key, value] : {std::pair{capture::run_cycles_key, run_cycles_},
                                         {capture::off_before_key, before},
                                         {capture::off_between_key, between},
                                         {capture::off_after_key, after}})
            c.parameters.emplace_back(std::string(key), std::to_string(value));
    }

    void describe(capture::DpuCapture& c) const {
        c.layout = std::string(dpu::layout_name);
        dpu::Registers registers = model_.registers();
        // Stopping the unit changed it.
        const bool twba = registers.sr.twba;
        registers.sr = stopped_.sr;
        registers.sr.twba = twba;
        dpu::Registers::for_each(registers, [&](const auto& r) {
            if (r.offset < dpu::DpTd::offset) c.registers.push_back({std::string(r.name), to_value(r), {}});
        });
        const auto& periods = model_.periods();
        if (!periods.empty()) {
            c.initial = periods.front().initial;
            const dpu::CoreContext& context = periods.front().context;
            c.initial_context = capture::DpuContext{context.supervisor, context.pid, context.did};
            c.final = final_;
        }
        describe_programming(c, model_, period_lines_, sends_messages_);
        c.history = capture::DpuCounterHistory{history_.partial, history_.changed, history_.rewritten};
        c.lines_written = model_.counts().lines_written;
        c.eonce_classes = class_names(config_.eonce);
        c.eonce_counters = config_.eonce.counters();
        std::vector<std::string>& driven = c.driven.emplace();
        for (std::size_t i = 0; i < dpu::event_wires; ++i) {
            const auto wire = static_cast<EventWire>(i);
            if (driven_.contains(wire) || (wire != EventWire::none && dpu::is_own(wire)))
                driven.emplace_back(dpu::name(wire));
        }
        for (const auto& [address, name] : stimulus_.symbols) c.symbols.push_back({address, name});
        for (const auto& [id, name] : stimulus_.tasks) c.parameters.emplace_back(fmt::format("task{}", id), name);
        describe_off(c);
        c.parameters.emplace_back("ended", std::string(capture::whole_run));
        c.parameters.emplace_back("cycles", "of a stimulus");
    }

    const dpu::RegisterProgram& program_;
    const DpuStimulus& stimulus_;
    const dpu::ModelConfig& config_;
    dpu::Model model_;
    std::optional<dpu::VirtualTraceBuffer> ring_;
    std::uint32_t first_ = 0, last_ = 0;  // first and last line of the buffer
    bool single_ = false, sends_messages_ = false;
    std::vector<std::uint8_t> lines_, nexus_;
    std::size_t next_ = 0;
    std::uint64_t run_cycles_ = 0;
    std::uint64_t written_lines_ = 0, stepped_ = 0;
    std::vector<std::uint64_t> period_lines_;
    std::array<bool, 2> pic_{};
    std::set<EventWire> driven_;
    dpu::Registers stopped_;
    dpu::CounterHistory history_;
    dpu::Counters final_{};
};

}  // namespace

std::uint64_t DpuStimulus::cycles() const {
    std::uint64_t out = 0;
    StepOrder order(*this);
    while (const StimulusStep* step = order.next()) out += step->cycles;
    return out;
}

Result<DpuStimulus> read_stimulus(std::string_view text) { return StimulusReader().read(text); }

Result<StimulusRun> run_stimulus(const dpu::RegisterProgram& program, const DpuStimulus& stimulus,
                                 const std::filesystem::path& folder) {
    std::error_code error;
    if (std::filesystem::exists(folder, error) && !std::filesystem::is_empty(folder, error))
        return Error{Errc::usage, fmt::format("{} exists and is not empty; name a new folder", folder.string())};
    if (folder.has_parent_path()) std::filesystem::create_directories(folder.parent_path(), error);
    if (error) return Error{Errc::unreadable, fmt::format("cannot create {}: {}", folder.string(), error.message())};
    WM_ASSIGN_OR_RETURN(const auto placed, capture::PlacedFolder::open(folder.string()));
    dpu::RegisterProgram all = program;
    for (const StimulusStep& step : stimulus.steps) all.insert(all.end(), step.writes.begin(), step.writes.end());
    dpu::ModelConfig config = dpu::config_for(all, stimulus.eonce);
    config.eonce.tcount = stimulus.tcount;
    config.eonce.tcntext = stimulus.tcntext;
    WM_RETURN_IF_ERROR(config.check());
    StimulusRunner runner(program, stimulus, config);
    WM_RETURN_IF_ERROR(runner.run());
    if (Status written = runner.write(placed->folder()); !written) return placed->as_placed(std::move(written.error()));
    WM_RETURN_IF_ERROR(placed->commit_new());
    return std::move(runner.result);
}

}  // namespace waymark::record
