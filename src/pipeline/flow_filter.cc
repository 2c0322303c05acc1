#include "waymark/pipeline/flow_filter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <type_traits>

#include "waymark/core/numbers.h"
#include "waymark/core/wire.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::pipeline {

namespace {

using capture::AddressSpaces;
using Task = AddressSpaces::Task;

constexpr char expression_mark = '~';
/// The regular expression in a name that begins with the mark; nullopt if there is none.
std::optional<std::regex> expression_of(const std::string& pattern) {
    // The library throws if the text is not a regular expression.
    try {
        return std::regex(pattern.substr(1));
    } catch (const std::regex_error&) {
        return std::nullopt;
    }
}
bool matches(const std::string& pattern, const std::string& name) {
    if (pattern.starts_with(expression_mark)) {
        const auto expression = expression_of(pattern);
        return expression && std::regex_search(name, *expression);
    }
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}
/// Whether `wanted`, a decimal number or a name, selects this one.
bool means(const std::string& wanted, std::optional<std::uint32_t> number, const std::string& name) {
    return (number && wanted == std::to_string(*number)) || (!name.empty() && matches(wanted, name));
}
bool means_process(const std::string& wanted, const Task& task) {
    return means(wanted, task.process, task.process_name);
}
bool means_thread(const std::string& wanted, const Task& task) { return means(wanted, task.thread, task.name); }
bool means_image(const std::string& wanted, const AddressSpaces::Name& image) {
    // A build ID with fewer digits than this could be a name.
    constexpr std::size_t fewest_digits = 8;
    const std::string id = capture::hex_text(image.build_id);
    return matches(wanted, image.file) || matches(wanted, std::filesystem::path(image.file).filename().string()) ||
           (wanted.size() >= fewest_digits && id.starts_with(wanted));
}

/// The first names, and the number of further ones.
std::string list(const std::vector<std::string>& names) {
    constexpr std::size_t most = 12;
    if (names.empty()) return "none";
    const std::vector<std::string> first(names.begin(),
                                         names.begin() + static_cast<std::ptrdiff_t>(std::min(most, names.size())));
    return fmt::format("{}{}", fmt::join(first, ", "),
                       names.size() > most ? fmt::format(" and {} more", names.size() - most) : "");
}
std::string text(const std::string& name, std::uint32_t number) {
    return name.empty() ? std::to_string(number) : fmt::format("{}[{}]", name, number);
}
std::string seconds(std::uint64_t ns) {
    constexpr std::uint64_t second = 1'000'000'000;
    return fmt::format("{}.{:09}", ns / second, ns % second);
}

/// Resolves a selection.
class Selector {
public:
    Selector(Session& session, const FlowSelection& selection) : session_(session), wanted_(selection) {}

    /// Whether trace was removed.
    [[nodiscard]] bool drops() const { return drops_; }

    Status run() {
        const AddressSpaces& spaces = *session_.capture.spaces;
        const std::vector<Task> tasks = spaces.tasks();
        std::set<std::string> processes, threads;
        for (const Task& task : tasks) {
            if (task.process) processes.insert(text(task.process_name, *task.process));
            threads.insert(text(task.name, task.thread));
        }
        for (const auto& [option, all] :
             {std::pair("--process", &wanted_.processes), std::pair("--exclude-process", &wanted_.excluded),
              std::pair("--thread", &wanted_.threads), std::pair("--only-image", &wanted_.images)})
            for (const std::string& name : *all)
                if (name.starts_with(expression_mark) && !expression_of(name))
                    return Error{Errc::usage,
                                 fmt::format("{} '{}': the text after ~ is not a regular expression", option, name)};
        for (const std::string& name : wanted_.processes)
            if (std::none_of(tasks.begin(), tasks.end(), [&](const Task& t) { return means_process(name, t); }))
                return none("--process", name, "process", {processes.begin(), processes.end()});
        for (const std::string& name : wanted_.threads)
            if (std::none_of(tasks.begin(), tasks.end(), [&](const Task& t) { return means_thread(name, t); }))
                return none("--thread", name, "thread", {threads.begin(), threads.end()});
        const auto& names = spaces.names();
        for (const std::string& name : wanted_.images)
            if (std::none_of(names.begin(), names.end(), [&](const auto& image) { return means_image(name, image); })) {
                std::set<std::string> images;
                for (const AddressSpaces::Name& image : names) images.insert(image.file);
                return none("--only-image", name, "image", {images.begin(), images.end()});
            }
        if (!wanted_.processes.empty() || !wanted_.threads.empty() || !wanted_.excluded.empty())
            WM_RETURN_IF_ERROR(check_threads());
        if (!wanted_.cpus.empty()) WM_RETURN_IF_ERROR(select_cpus());
        if (wanted_.time) WM_RETURN_IF_ERROR(select_time());
        return Nothing{};
    }

private:
    static Error none(std::string_view option, const std::string& name, std::string_view what,
                      const std::vector<std::string>& there) {
        return {Errc::usage,
                fmt::format("{} '{}': the capture has no such {}. It has: {}", option, name, what, list(there))};
    }

    /// Checks that the threads are known, from the trace itself or from its rings.
    [[nodiscard]] Status check_threads() const {
        if (session_.capture.spaces->thread_of(1, 1)) return Nothing{};
        for (const capture::Buffer& buffer : session_.capture.buffers)
            for (const capture::BufferPart& part : buffer.parts)
                if (part.thread) return Nothing{};
        return Error{Errc::usage,
                     "--process and --thread need the thread that ran, and this trace has neither context IDs nor "
                     "rings of threads: record with contextid, or with --per-thread"};
    }

    Status select_cpus() {
        const auto name = [](std::uint32_t cpu) { return fmt::format("cpu{}", cpu); };
        for (Source& source : session_.sources) {
            source.left_out = std::none_of(wanted_.cpus.begin(), wanted_.cpus.end(),
                                           [&](std::uint32_t cpu) { return source.name == name(cpu); });
            drops_ |= source.left_out;
        }
        for (const std::uint32_t cpu : wanted_.cpus)
            if (std::none_of(session_.sources.begin(), session_.sources.end(),
                             [&](const Source& source) { return source.name == name(cpu); })) {
                std::vector<std::string> there;
                for (const Source& source : session_.sources) there.push_back(source.name);
                return none("--cpu", std::to_string(cpu), "CPU", there);
            }
        return Nothing{};
    }

    Status select_time() {
        std::uint64_t first = ~std::uint64_t{0}, last = 0;
        bool any = false;
        for (capture::Buffer& buffer : session_.capture.buffers) {
            std::vector<capture::BufferPart> parts;
            bool gap = false;
            for (capture::BufferPart part : buffer.parts) {
                // If the beginning of a range is not known, use its end.
                first = std::min(first, part.from == 0 ? part.to : part.from);
                last = std::max(last, part.to);
                if (part.to < wanted_.time->first || part.from > wanted_.time->second) {
                    gap = drops_ = true;
                    continue;
                }
                part.follows = part.follows && !gap;
                gap = false;
                parts.push_back(part);
                any = true;
            }
            buffer.parts = std::move(parts);
        }
        if (any) return Nothing{};
        if (first > last) return Error{Errc::usage, "--time: the capture has no trace with a time"};
        return Error{Errc::usage, fmt::format("--time {}..{}: there is no trace of that time. It goes from {} to {}",
                                              seconds(wanted_.time->first), seconds(wanted_.time->second),
                                              seconds(first), seconds(last))};
    }

    Session& session_;
    const FlowSelection& wanted_;
    bool drops_ = false;
};

}  // namespace

FlowFilter::FlowFilter(FlowSelection selection, std::shared_ptr<const AddressSpaces> spaces, bool drops)
    : selection_(std::move(selection)), spaces_(std::move(spaces)), drops_(drops) {
    const auto& names = spaces_->names();
    for (std::uint32_t i = 0; i < names.size(); ++i)
        if (std::any_of(selection_.images.begin(), selection_.images.end(),
                        [&](const std::string& wanted) { return means_image(wanted, names[i]); }))
            images_.insert(i);
}

std::string FlowFilter::text() const {
    std::vector<std::string> out;
    const auto add = [&](std::string_view what, const std::vector<std::string>& names) {
        if (!names.empty()) out.push_back(fmt::format("{} {}", what, fmt::join(names, " or ")));
    };
    add("process", selection_.processes);
    add("not process", selection_.excluded);
    add("thread", selection_.threads);
    add("image", selection_.images);
    if (!selection_.cpus.empty()) out.push_back(fmt::format("CPU {}", fmt::join(selection_.cpus, " or ")));
    if (selection_.kernel) out.push_back(*selection_.kernel ? "kernel code" : "user code");
    if (selection_.time) {
        const bool open = selection_.time->second == ~std::uint64_t{0};
        out.push_back(
            fmt::format("time {}..{}", seconds(selection_.time->first), open ? "" : seconds(selection_.time->second)));
    }
    return fmt::format("{}", fmt::join(out, ", "));
}

bool FlowFilter::wants_thread(std::optional<std::uint32_t> thread, std::uint64_t time) const {
    if (!by_thread()) return true;
    if (!thread) return selection_.processes.empty() && selection_.threads.empty();
    const Task task = spaces_->task(*thread, time);
    const auto any = [&](const std::vector<std::string>& names, auto&& test) {
        return names.empty() ||
               std::any_of(names.begin(), names.end(), [&](const std::string& name) { return test(name, task); });
    };
    if (std::any_of(selection_.excluded.begin(), selection_.excluded.end(),
                    [&](const std::string& name) { return means_process(name, task); }))
        return false;
    return any(selection_.processes, means_process) && any(selection_.threads, means_thread);
}

bool FlowFilter::wants_image(std::optional<std::uint32_t> name) const {
    return !by_image() || (name && images_.contains(*name));
}

Status select_flow(Session& session, FlowSelection selection) {
    if (selection.empty()) return Nothing{};
    if (session.capture.spaces == nullptr)
        return Error{
            Errc::usage,
            fmt::format(
                "{}: --process, --exclude-process, --thread, --only-image, --cpu, --kernel, --user and --time are for "
                "perf.data files with CoreSight trace or branch stacks, which contain who ran where and when",
                session.capture.path.string())};
    if (selection.without_recorder) {
        selection.excluded.insert(selection.excluded.end(), {"perf", "simpleperf"});
        if (!session.capture.recorder.empty()) selection.excluded.push_back(session.capture.recorder);
    }
    Selector selector(session, selection);
    WM_RETURN_IF_ERROR(selector.run());
    const auto filter =
        std::make_shared<const FlowFilter>(std::move(selection), session.capture.spaces, selector.drops());
    for (Source& source : session.sources) source.filter = filter;
    return Nothing{};
}

std::optional<FilterNote> filter_note(const Session& session, const Report& report) {
    const auto filtered_source = std::find_if(session.sources.begin(), session.sources.end(),
                                              [](const Source& source) { return source.filter != nullptr; });
    if (filtered_source == session.sources.end()) return std::nullopt;
    const FlowFilter& filter = *filtered_source->filter;
    Filtered all;
    std::uint64_t left_out = 0;
    for (const StreamReport& stream : report.streams) {
        const auto* consumer = dynamic_cast<const FlowConsumer*>(stream.consumer.get());
        if (consumer == nullptr || consumer->filtered() == nullptr) continue;
        const Filtered& one = *consumer->filtered();
        all.passed += one.passed;
        all.uncertain += one.uncertain;
        for (const auto& [kind, count] : one.left_out) {
            all.left_out[kind] += count;
            left_out += count;
        }
        all.last = std::max(all.last, one.last);
    }
    const std::uint64_t sum = all.passed + left_out;
    FilterNote out;
    out.of = filter.text();
    out.leaves_out = left_out != 0 || filter.drops();
    if (!filter.drops()) out.ranges = left_out;
    out.nothing_passed = all.passed == 0 && left_out != 0;
    if (!out.nothing_passed) {
        out.text = fmt::format("only code that ran of {} is shown: {} of {}", filter.text(), grouped(all.passed),
                               counted(sum, "range"));
        if (all.uncertain != 0)
            out.text += fmt::format(
                ". Of {} it is uncertain whether they belong to it: the thread changed its name within their AUX range",
                counted(all.uncertain, "range"));
        out.uncertain = all.uncertain != 0;
        return out;
    }
    std::vector<std::pair<std::uint64_t, Filtered::Kind>> kinds;
    for (const auto& [kind, count] : all.left_out) kinds.emplace_back(count, kind);
    std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::string> there;
    for (const auto& [count, kind] : kinds)
        there.push_back(fmt::format(
            "{} of {}, {}, {}", grouped(count),
            kind.thread ? filter.spaces().thread_name(*kind.thread, all.last)
                        : std::string("a thread that is not known"),
            kind.image ? filter.spaces().names()[*kind.image].file : std::string("an image that is not known"),
            kind.kernel ? "kernel code" : "user code"));
    out.text = fmt::format("none of the {} that ran is of {}. They are: {}", counted(sum, "range"), filter.text(),
                           list(there));
    return out;
}

// ---- FilterSink

void FilterSink::begin(const capture::BufferPart& part) {
    from_ = part.from;
    to_ = part.to;
    part_thread_ = part.thread;
    if (!part.follows) now_.reset();
    wants_.reset();
    number_.reset();
    kind_.reset();
}

std::optional<std::uint32_t> FilterSink::thread() const {
    const auto thread = filter_->spaces().thread_of(context_.context_id, context_.vmid);
    return thread ? thread : part_thread_;
}

bool FilterSink::wants_now() {
    if (!wants_) {
        // Code that ran before the first timestamp of a part gets the time at which the previous part ended.
        const std::uint64_t first = now_.value_or(from_), last = now_ ? *now_ : has_clock_ ? from_ : to_;
        const auto ran = thread();
        // The end time of a range is exact; the range began when the thread came, at some time after the previous
        // range.
        const bool wanted = filter_->wants_thread(ran, now_.value_or(to_));
        uncertain_ = !now_ && ran && !filter_->spaces().task(*ran, from_).name.empty() &&
                     filter_->wants_thread(ran, from_) != wanted;
        wants_ = wanted && filter_->wants_time(first, last);
    }
    return *wants_;
}

bool FilterSink::is_kernel(std::uint64_t address) const {
    // Without exception levels, decide by the kernel's half of the address space.
    return context_.el ? *context_.el != 0 : address >> 63 != 0;
}

std::optional<std::uint32_t> FilterSink::image_at(std::uint64_t address) {
    if (!number_) number_ = reader_.view(context_.space()).number;
    const capture::MappedExtent* found = reader_.code().extent(*number_, address);
    return found == nullptr ? std::nullopt : std::optional(found->name);
}

std::optional<std::uint32_t> FilterSink::image_of(std::uint32_t block, std::uint64_t start) {
    // Other code at the same address is another block.
    if (block >= images_.size()) images_.resize(std::max<std::size_t>(block + 1, 2 * images_.size()));
    Known& known = images_[block];
    if (!known.known) known = {true, image_at(start)};
    return known.image;
}

bool FilterSink::decide(Offset offset, std::uint64_t address, std::optional<std::uint32_t> image) {
    const bool wants_time = wants_now(),
               wants_place = filter_->wants_image(image) && filter_->wants_level(is_kernel(address));
    last_ = wants_time && wants_place;
    if (uncertain_ && wants_place) ++filtered_.uncertain;
    if (!last_) {
        left_out_ = true;
        const Filtered::Kind kind{thread(), image, is_kernel(address)};
        if (kind_ != kind) {
            kind_ = kind;
            count_ = &filtered_.left_out[kind];
        }
        ++*count_;
        filtered_.last = to_;
        return false;
    }
    ++filtered_.passed;
    turn_on(offset);
    ran_ = true;
    return true;
}

void FilterSink::turn_on(Offset offset) {
    if (left_out_ || on_) {
        pass_on(offset, flow::TraceOn{flow::TraceOnReason::enabled});
        // Code was left out since code passed: the unit need not have paused.
        if (count_ != nullptr && ran_) ++(after_exception_ ? filtered_.handlers : filtered_.pauses);
    }
    left_out_ = on_ = after_exception_ = false;
    kind_.reset();
    count_ = nullptr;
}

void FilterSink::pass_on(Offset offset, flow::What what) {
    events_.push_back({static_cast<std::uint32_t>(ranges_.size()), offset, std::move(what)});
}

void FilterSink::range(const flow::Block& block, const flow::Range& range, Offset base) {
    if (decide(base + range.offset, block.start, image_of(range.block(), block.start))) ranges_.push_back(range);
}

void FilterSink::event(const flow::Event& event) {
    std::visit(
        [&](const auto& e) {
            using T = std::decay_t<decltype(e)>;
            if constexpr (std::is_same_v<T, flow::Context>) {
                if (context_ != e) {
                    context_ = e;
                    wants_.reset();
                    number_.reset();
                    kind_.reset();
                }
                pass_on(event.offset, event.what);
            } else if constexpr (std::is_same_v<T, flow::Timestamp>) {
                if ((filter_->by_time() || filter_->by_thread()) && e.known) {
                    now_ = filter_->spaces().time_of(e.value);
                    wants_.reset();
                }
                pass_on(event.offset, event.what);
            } else if constexpr (std::is_same_v<T, Gap> || std::is_same_v<T, flow::TraceOn>) {
                number_.reset();
                if constexpr (std::is_same_v<T, flow::TraceOn>)
                    // It may be code that is left out which is traced from here on.
                    if (e.reason == flow::TraceOnReason::enabled) {
                        on_ = true;
                        return;
                    }
                left_out_ = on_ = after_exception_ = false;
                pass_on(event.offset, event.what);
            } else if constexpr (std::is_same_v<T, flow::NoMemory> || std::is_same_v<T, flow::Reached>) {
                if (decide(event.offset, e.address.value, image_at(e.address.value))) pass_on(event.offset, event.what);
            } else if constexpr (std::is_same_v<T, flow::Untraced>) {
                if (decide(event.offset, e.from.value, image_at(e.from.value))) pass_on(event.offset, event.what);
            } else if constexpr (std::is_same_v<T, flow::Exception> || std::is_same_v<T, flow::ExceptionReturn> ||
                                 std::is_same_v<T, flow::Atoms> || std::is_same_v<T, flow::Inconsistency> ||
                                 std::is_same_v<T, flow::Cycles>) {
                if (!last_) return;
                if (on_) turn_on(event.offset);
                after_exception_ |= std::is_same_v<T, flow::Exception>;
                pass_on(event.offset, event.what);
            } else {
                pass_on(event.offset, event.what);
            }
        },
        event.what);
}

void FilterSink::consume(const flow::Batch& batch) {
    ranges_.clear();
    events_.clear();
    std::size_t next = 0;
    for (std::size_t i = 0; i < batch.ranges.size(); ++i) {
        while (next < batch.events.size() && batch.events[next].before <= i) event(batch.events[next++]);
        range(batch.blocks[batch.ranges[i].block()], batch.ranges[i], batch.base);
    }
    while (next < batch.events.size()) event(batch.events[next++]);
    sink_.consume({batch.blocks, batch.base, ranges_, events_});
}

}  // namespace waymark::pipeline
