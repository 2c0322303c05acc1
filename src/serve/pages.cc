#include "waymark/serve/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <utility>

#include "seekable.h"
#include "waymark/core/byte_sink.h"
#include "waymark/core/numbers.h"
#include "waymark/core/quote.h"

namespace waymark::serve {

namespace fs = std::filesystem;
using analysis::FlowWindow;
using answers::Answers;
using answers::Finding;

/// A file's state when it was read.
struct Pages::Seen {
    fs::path file;
    std::uint64_t bytes{};
    fs::file_time_type time{};
};

namespace {

Reply refusal(unsigned status, std::string why) {
    return {status, "text/plain; charset=utf-8", std::make_shared<const std::string>(std::move(why) + "\n")};
}

Reply page_reply(std::shared_ptr<const std::string> page) { return {200, "text/html; charset=utf-8", std::move(page)}; }

constexpr std::string_view loads_nothing = "default-src 'none';";

/// A page that is sent may ask its server about the progress of reading.
std::string served_page(std::string_view page) {
    std::string out(page);
    const std::size_t at = out.find(loads_nothing);
    if (at != out.npos) out.insert(at + loads_nothing.size(), " connect-src 'self';");
    return out;
}

}  // namespace

Pages::Pages(const pipeline::Session* session, std::vector<const pipeline::Source*> selected, PagesOptions options)
    : session_(session),
      selected_(std::move(selected)),
      options_(std::move(options)),
      page_(served_page(options_.report.page)) {
    options_.report.page = page_;
    options_.window.stop = [this] { return stop_.load(); };
    if (session_ == nullptr) return;
    std::set<fs::path> files;
    for (const capture::Buffer& buffer : session_->capture.buffers)
        files.insert(buffer.files.begin(), buffer.files.end());
    for (const capture::MemoryDump& dump : session_->capture.dumps) files.insert(dump.file);
    for (const fs::path& file : files) {
        std::error_code no_size, no_time;
        const Seen seen{file, fs::file_size(file, no_size), fs::last_write_time(file, no_time)};
        // A file that was missing from the beginning on is a problem of the capture, not a change.
        if (!no_size && !no_time) seen_.push_back(seen);
    }
    const bool flow = std::any_of(selected_.begin(), selected_.end(), [](const auto* s) { return s->has_flow(); });
    no_windows_ = flow ? why_not_indexed(*session_, selected_) : "it has no program flow";
    if (no_windows_.empty()) index_ = new_index(*session_, selected_);
}

Pages::~Pages() { stop(); }

void Pages::start(std::function<void(const std::string&)> say) {
    say_ = std::move(say);
    if (session_ != nullptr && !no_windows_.empty())
        say_("windows of single calls cannot be requested: " + no_windows_);
    if (index_ != nullptr) indexing_ = std::thread([this] { make_index(); });
    reporting_ = std::thread([this] { make_reports(); });
}

void Pages::stop() {
    {
        // A thread that has found that reading continues is waiting by now.
        const std::scoped_lock lock(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    if (indexing_.joinable()) indexing_.join();
    if (reporting_.joinable()) reporting_.join();
}

std::shared_ptr<const Index> Pages::index() const {
    const std::scoped_lock lock(mutex_);
    return index_;
}

/// The reason why the capture that was read is no longer the capture on disk.
std::optional<std::string> Pages::changed() const {
    for (const Seen& seen : seen_) {
        std::error_code none;
        const std::uint64_t bytes = fs::file_size(seen.file, none);
        if (none) return fmt::format("{} does not exist any more: {}", seen.file.string(), none.message());
        const auto time = fs::last_write_time(seen.file, none);
        if (bytes != seen.bytes || time != seen.time)
            return fmt::format("{} has changed since waymark serve began; start it again", seen.file.string());
    }
    return {};
}

void Pages::make_index() {
    const Result<std::string> identity = identity_of(*session_, selected_, options_.version, options_.index);
    fs::path file = options_.index_file;
    if (file.empty() && identity) file = usual_index_file(*identity);
    Status taken = identity ? take_index(*identity, file) : Status(identity.error());
    while (taken && wait_for_rebuild()) {
        std::error_code none;
        fs::remove(file, none);
        {
            const std::scoped_lock lock(mutex_);
            index_ = new_index(*session_, selected_);
            rebuild_ = from_file_ = false;
        }
        say_("the index does not fit the trace, and is made anew");
        taken = take_index(*identity, file);
    }
    if (taken) return;
    say_("the index is not complete: " + taken.error().message);
    const std::scoped_lock lock(mutex_);
    index_failed_ = taken.error().message;
}

/// Call it when the index is complete. Returns false if no other index is needed until the end.
bool Pages::wait_for_rebuild() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stop_ || rebuild_; });
    return !stop_;
}

Status Pages::take_index(const std::string& identity, const fs::path& file) {
    if (!file.empty()) {
        if (auto read = read_index(file, identity)) {
            const std::scoped_lock lock(mutex_);
            index_ = *read;
            from_file_ = true;
            return Nothing{};
        } else if (read.error().code != Errc::not_found) {
            say_(read.error().message);
        }
    }
    const std::shared_ptr<Index> index = [&] {
        const std::scoped_lock lock(mutex_);
        return index_;
    }();
    WM_RETURN_IF_ERROR(fill_index(*index, *session_, selected_, options_.index, [this] { return stop_.load(); }));
    if (!index->complete() || file.empty()) return Nothing{};
    // For a small capture, making an index is faster than reading it.
    constexpr std::uint64_t least_bytes = std::uint64_t{1} << 20;
    std::uint64_t bytes = 0;
    for (const StreamPoints& s : index->streams()) bytes += s.bytes;
    if (bytes < least_bytes && options_.index_file.empty()) return Nothing{};
    if (changed()) return Nothing{};
    if (const Status written = write_index(file, identity, *index); !written) say_(written.error().message);
    return Nothing{};
}

void Pages::make_reports() {
    std::uint64_t of = 0;
    bool in_parts = session_ == nullptr;
    if (session_ != nullptr)
        for (const capture::Buffer& buffer : session_->capture.buffers) {
            in_parts |= buffer.container != nullptr;
            std::uint64_t bytes = 0;
            for (const Seen& seen : seen_)
                if (std::find(buffer.files.begin(), buffer.files.end(), seen.file) != buffer.files.end())
                    bytes += seen.bytes;
            of = std::max(of, bytes);
        }
    for (std::uint64_t bytes = options_.first_bytes; !stop_; bytes *= 8) {
        // A last part that is nearly the whole capture would only delay the report of the whole.
        const bool whole = in_parts || bytes >= of / 2;
        // After a request to end, nothing more is read.
        const std::uint64_t most = whole ? std::numeric_limits<std::uint64_t>::max() : bytes;
        const pipeline::OpenBuffer open =
            [&](const capture::Buffer& buffer) -> Result<std::unique_ptr<capture::ByteStream>> {
            return open_first(buffer, most, stop_);
        };
        answers::Steps steps;
        Result<Answers> read = options_.answers(
            in_parts ? pipeline::OpenBuffer{} : open, whole, [this] { return stop_.load(); }, steps);
        if (stop_) return;
        if (!read && !whole) continue;  // such as one that begins without a program
        Result<std::shared_ptr<const std::string>> made = read ? Error{Errc::not_found, ""} : read.error();
        std::vector<Finding> health;
        if (read) {
            // A window's page has separate findings from `complete`.
            health = read->health;
            options_.complete(*read);
            if (!whole)
                read->health.insert(
                    read->health.begin(),
                    {Finding::Severity::note,
                     fmt::format("This is the beginning of the run: the first {} bytes of each buffer, of up to {}.",
                                 grouped(bytes), grouped(of)),
                     "Load the page again to see more: reading continues.",
                     {}});
            made = page(*read, steps, std::nullopt, !whole);
        }
        {
            const std::scoped_lock lock(mutex_);
            if (made) {
                report_ = *made;
                health_ = std::move(health);
                for (Finding& finding : health_)
                    finding.what = (whole ? "Of the whole run: " : "Of the beginning of the run: ") + finding.what;
                whole_ = whole;
            } else if (whole) {
                failed_ = made.error();
            }
            read_ = whole;
        }
        changed_.notify_all();
        if (!made) say_(made.error().message);
        if (whole) return;
    }
}

Result<std::shared_ptr<const std::string>> Pages::page(Answers& answers, const answers::Steps& steps,
                                                       std::optional<FlowWindow> window, bool part) const {
    const std::shared_ptr<const Index> index = this->index();
    answers.capture = options_.capture;
    answers.version = options_.version;
    report::ReportOptions how = options_.report;
    report::Served served;
    served.part = part;
    // A page with the beginning continues to ask the server, which then reports whether reading came to the end.
    served.complete = !part && (index == nullptr || index->complete());
    if (index != nullptr) {
        served.instructions = index->instructions();
        served.most = options_.most_instructions;
    }
    if (window) {
        served.begin = window->begin;
        served.end = window->end;
    }
    how.served = &served;
    how.is_window = window.has_value();
    how.steps = steps.streams.empty() ? nullptr : &steps;
    ByteCollector page;
    const auto size = report::write_report(answers, how, page);
    if (!size) return size.error();
    return std::make_shared<const std::string>(page.bytes().begin(), page.bytes().end());
}

Reply Pages::report() {
    if (auto why = changed()) return refusal(409, std::move(*why));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stop_ || report_ != nullptr || failed_; });
    if (report_ != nullptr) return page_reply(report_);
    if (failed_) return refusal(500, failed_->message);
    return refusal(503, "waymark serve ends");
}

/// Whether a new index is needed, after a window that did not begin at the place in the index. An index that this run
/// made would be the same the next time.
bool Pages::wants_rebuild() {
    {
        const std::scoped_lock lock(mutex_);
        if (!from_file_) return false;
        rebuild_ = true;
    }
    changed_.notify_all();
    return true;
}

/// The reply for a window whose trace is not read yet. `when`: a clause.
Reply Pages::not_read(std::uint64_t known, const std::string& when) const {
    const std::scoped_lock lock(mutex_);
    if (!index_failed_.empty())
        return refusal(409, fmt::format("Reading ended after {} instructions: {}", grouped(known), index_failed_));
    return refusal(503, fmt::format("only {} instructions are read so far: ask again when {}", grouped(known), when));
}

Reply Pages::window(FlowWindow window) {
    const std::shared_ptr<const Index> index = this->index();
    if (index == nullptr)
        return refusal(404, "There are no windows of this capture: " +
                                (no_windows_.empty() ? std::string("it has no program flow") : no_windows_));
    if (window.begin >= window.end)
        return refusal(400, fmt::format("The window of instructions {}..{} ends where it begins, or before",
                                        window.begin, window.end));
    if (window.end - window.begin > options_.most_instructions)
        return refusal(413, fmt::format("A window has at most {} instructions, but {} were requested",
                                        grouped(options_.most_instructions), grouped(window.end - window.begin)));
    if (auto why = changed()) return refusal(409, std::move(*why));
    // Decoding trace that is not read yet would take as long as reading it.
    if (const std::uint64_t known = index->instructions(); !index->complete() && window.end > known)
        return not_read(known, fmt::format("those up to {} are", grouped(window.end)));
    auto read = window_answers(*session_, selected_, *index, window, options_.window);
    if (stop_) return refusal(503, "waymark serve ends");
    if (!read && read.error().code == Errc::bad_format && wants_rebuild())
        return refusal(503, read.error().message + "; it is made anew: ask again");
    if (!read) return refusal(read.error().code == Errc::not_found ? 404 : 409, read.error().message);
    Answers& answers = read->answers;
    options_.complete(answers);
    answers.health.insert(answers.health.begin(),
                          {Finding::Severity::note,
                           fmt::format("This page is of a window of the run: each source from its instruction {} on, "
                                       "up to {}. All its figures are about the blocks of code that began there.",
                                       grouped(window.begin), grouped(window.end)),
                           "What did not run in the window may have run elsewhere.",
                           {}});
    {
        const std::scoped_lock lock(mutex_);
        answers.health.insert(answers.health.end(), health_.begin(), health_.end());
    }
    auto made = page(answers, read->steps, window, false);
    if (!made) return refusal(500, made.error().message);
    return page_reply(std::move(*made));
}

Reply Pages::window(std::string_view unit, std::uint64_t begin, std::uint64_t end) {
    if (unit != "instructions" && unit != "cycles" && unit != "ticks" && unit != "ns")
        return refusal(400, "The unit of a window is instructions, cycles, ticks or ns");
    const std::shared_ptr<const Index> index = this->index();
    if (index == nullptr || begin >= end || unit == "instructions") return window({begin, end});
    const auto of_axis = [&](std::string_view of, std::uint64_t first, std::uint64_t behind) {
        const std::optional<FlowWindow> found = index->window_of(of, first, behind);
        return found ? window(*found) : not_read(index->instructions(), "reading is past the window's end");
    };
    if (unit == "cycles") {
        const bool counted = std::any_of(selected_.begin(), selected_.end(), [](const pipeline::Source* s) {
            return s->has_flow() && s->configuration->cycle_counts();
        });
        if (!counted) return refusal(400, "This capture has no cycle counts: a window cannot be given in cycles");
        return of_axis("cycles", begin, end);
    }
    if (index->complete() && !index->has_timestamps())
        return refusal(400, "No place of the index follows a timestamp: a window can be given in instructions alone");
    if (unit == "ticks") return of_axis("ticks", begin, end);
    const std::uint64_t given = options_.window.timestamp_hz;
    const std::uint64_t hz = given != 0 ? given : session_->capture.timestamp_frequency_hz.value_or(0);
    if (hz == 0) return refusal(400, "It is not known how many timestamps make a second: give --timestamp-hz");
    constexpr double nanoseconds = 1e9;
    const auto ticks = [&](std::uint64_t time) {
        constexpr double most = 1e19;
        return static_cast<std::uint64_t>(
            std::min(most, static_cast<double>(time) * static_cast<double>(hz) / nanoseconds));
    };
    return of_axis("ticks", ticks(begin), ticks(end) + 1);
}

Reply Pages::status() {
    const std::shared_ptr<const Index> index = this->index();
    std::size_t places = 0;
    if (index)
        for (const StreamPoints& s : index->streams()) places += s.points.size();
    const std::scoped_lock lock(mutex_);
    const std::string failed = !index_failed_.empty() ? index_failed_ : failed_ ? failed_->message : "";
    const bool indexed = index && index->complete();
    const std::string text = fmt::format(
        R"({{"instructions":{},"complete":{},"failed":{},"indexed":{},"whole":{},"places":{},"indexBytes":{}}})",
        index ? index->instructions() : 0, read_ && (!index || indexed || !index_failed_.empty()), json_text(failed),
        indexed, whole_, places, index ? index->bytes() : 0);
    return {200, "application/json", std::make_shared<const std::string>(text)};
}

}  // namespace waymark::serve
