/// A part of the program flow of a capture of several processes: selected processes, threads, images, CPUs, the kernel
/// or user code, in a time. Readers of the flow see the rest as if the unit had not traced it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "waymark/capture/address_spaces.h"
#include "waymark/capture/capture.h"
#include "waymark/core/result.h"
#include "waymark/flow/flow.h"
#include "waymark/pipeline/process_code.h"

namespace waymark::pipeline {

struct Session;
struct Report;

/// The selection; an empty member selects all. A name that begins with ~ is a regular expression (ECMAScript) that may
/// match anywhere in the name.
struct FlowSelection {
    std::vector<std::string> processes{};  ///< by ID or name, with * and ? for anything
    bool without_recorder = false;         ///< leave out code that the recorder itself ran
    std::vector<std::string> threads{};    ///< the same
    std::vector<std::string> excluded{};   ///< processes to leave out, by ID or name
    std::vector<std::string> images{};     ///< by path, file name or build ID
    std::vector<std::uint32_t> cpus{};
    std::optional<bool> kernel{};                                   ///< the kernel alone, or all but the kernel
    std::optional<std::pair<std::uint64_t, std::uint64_t>> time{};  ///< first and last, ns of the capture's clock

    [[nodiscard]] bool empty() const {
        return !without_recorder && excluded.empty() && processes.empty() && threads.empty() && images.empty() &&
               cpus.empty() && !kernel && !time;
    }
};

/// A selection, resolved against its capture. Safe for several threads.
class FlowFilter {
public:
    /// `drops`: trace was removed too, of other CPUs or of another time.
    FlowFilter(FlowSelection selection, std::shared_ptr<const capture::AddressSpaces> spaces, bool drops = false);

    [[nodiscard]] const capture::AddressSpaces& spaces() const { return *spaces_; }
    /// The selection, for messages: `process main, user code`.
    [[nodiscard]] std::string text() const;
    /// Whether the thread is selected, by its names at that time.
    [[nodiscard]] bool wants_thread(std::optional<std::uint32_t> thread, std::uint64_t time) const;
    [[nodiscard]] bool by_thread() const {
        return !selection_.processes.empty() || !selection_.threads.empty() || !selection_.excluded.empty();
    }
    /// Whether the image is selected. `name`: a number of AddressSpaces::names.
    [[nodiscard]] bool wants_image(std::optional<std::uint32_t> name) const;
    [[nodiscard]] bool by_image() const { return !selection_.images.empty(); }
    [[nodiscard]] bool wants_level(bool kernel) const { return selection_.kernel.value_or(kernel) == kernel; }
    [[nodiscard]] bool wants_time(std::uint64_t from, std::uint64_t to) const {
        return !selection_.time || (to >= selection_.time->first && from <= selection_.time->second);
    }
    [[nodiscard]] bool by_time() const { return selection_.time.has_value(); }
    [[nodiscard]] bool drops() const { return drops_; }

private:
    const FlowSelection selection_;
    const std::shared_ptr<const capture::AddressSpaces> spaces_;
    const bool drops_;
    std::set<std::uint32_t> images_;
};

/// Removes the rest of a session: its sources get a filter, sources of other CPUs are no longer selected
/// (Session::select), and parts of buffers of another time are removed. Errors: `usage`: the capture has only one
/// memory, or nothing has such a name; the message lists the names.
[[nodiscard]] Status select_flow(Session& session, FlowSelection selection);

/// The amount of flow that passed a filter.
struct Filtered {
    struct Kind {
        std::optional<std::uint32_t> thread{}, image{};
        bool kernel{};
        friend auto operator<=>(const Kind&, const Kind&) = default;
    };
    std::uint64_t passed{};     ///< ranges, and places without code
    std::uint64_t uncertain{};  ///< the part of all ranges that may have run when the thread had another name
    std::map<Kind, std::uint64_t> left_out{};  ///< the same
    std::uint64_t last{};                      ///< time of the last range that did not pass
    /// Number of stretches that were left out amid the flow that passed: from an exception on, and elsewhere. Readers
    /// see each as the unit's own pause (flow::Troubles).
    std::uint64_t handlers{}, pauses{};
};

/// The sum over all streams of a report, for messages. Empty: there is no filter.
struct FilterNote {
    bool nothing_passed{};
    bool uncertain{};                       ///< it is unknown whether a part belongs to the selection
    std::string text{};                     ///< a sentence without a full stop
    std::string of{};                       ///< the selection (FlowFilter::text)
    bool leaves_out{};                      ///< something ran that does not belong to the selection
    std::optional<std::uint64_t> ranges{};  ///< that part, if all trace was decoded
};
[[nodiscard]] std::optional<FilterNote> filter_note(const Session& session, const Report& report);

/// Passes on the flow that a filter selects. It lies between a decoder and a ProcessSink.
class FilterSink final : public flow::Sink {
public:
    /// Everything is borrowed except the filter.
    FilterSink(std::shared_ptr<const FlowFilter> filter, const ProcessReader& reader, flow::Sink& sink)
        : filter_(std::move(filter)),
          reader_(reader),
          sink_(sink),
          has_clock_(filter_->spaces().time_of(0).has_value()) {}

    /// Like ProcessReader::begin.
    void begin(const capture::BufferPart& part);
    void consume(const flow::Batch& batch) override;
    [[nodiscard]] const Filtered& filtered() const { return filtered_; }

private:
    void event(const flow::Event& event);
    void range(const flow::Block& block, const flow::Range& range, Offset base);
    void pass_on(Offset offset, flow::What what);
    /// Trace goes on here: turned on by the unit, or as if it had been programmed to leave out what is left out.
    void turn_on(Offset offset);
    /// Whether the code at this place passes.
    [[nodiscard]] bool decide(Offset offset, std::uint64_t address, std::optional<std::uint32_t> image);
    [[nodiscard]] bool wants_now();
    [[nodiscard]] bool is_kernel(std::uint64_t address) const;
    [[nodiscard]] std::optional<std::uint32_t> image_at(std::uint64_t address);
    [[nodiscard]] std::optional<std::uint32_t> image_of(std::uint32_t block, std::uint64_t start);
    [[nodiscard]] std::optional<std::uint32_t> thread() const;

    const std::shared_ptr<const FlowFilter> filter_;
    const ProcessReader& reader_;
    flow::Sink& sink_;
    const bool has_clock_;  // timestamps of the trace are times
    Filtered filtered_;

    flow::Context context_{};
    std::uint64_t from_ = 0, to_ = ~std::uint64_t{0};
    std::optional<std::uint64_t> now_;  // the time of the last timestamp
    std::optional<std::uint32_t> part_thread_;
    std::optional<bool> wants_;            // thread and time; none: not decided yet
    bool uncertain_ = false;               // of `wants_`: the thread had another name in a part of the range
    std::optional<std::uint32_t> number_;  // of the memory
    bool last_ = false;                    // the last range passed
    bool left_out_ = false;                // a range was left out since
    bool ran_ = false;                     // code passed
    bool after_exception_ = false;         // an exception passed since, and no code
    bool on_ = false;                      // trace was turned on since, and nothing passed yet
    struct Known {
        bool known = false;
        std::optional<std::uint32_t> image{};
    };
    std::vector<Known> images_;  // by block
    std::optional<Filtered::Kind> kind_;
    std::uint64_t* count_ = nullptr;  // of `kind_`
    std::vector<flow::Range> ranges_;
    std::vector<flow::Event> events_;
};

}  // namespace waymark::pipeline
