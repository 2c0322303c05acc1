/// Finds the thread of a sample, and the mapped file that contains its PC (docs/spec/spe.md, section 5.5).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "waymark/capture/perf_data.h"
#include "waymark/capture/perf_spe.h"
#include "waymark/spe/record.h"

namespace waymark::analysis {

/// Answers are cached between two changes of mappings or of the running thread. Use one object for each calling thread.
class Attribution {
public:
    /// `data` is borrowed and must outlive this.
    explicit Attribution(const capture::perf::PerfData& data);

    /// The samples that follow belong to this stream, which is borrowed.
    void start(const capture::perf::Stream& stream);

    struct Answer {
        std::uint32_t pid = capture::perf::nobody, tid = capture::perf::nobody;
        std::uint32_t mapping{};  ///< index in PerfData::mappings plus 1; 0: no known mapping
        bool by_context{};        ///< the record named its thread itself
        /// The thread's name at that time; empty if not known. Valid as long as the data.
        std::string_view name{};
    };
    /// The answer for row `i`. Valid until the next call.
    [[nodiscard]] const Answer& of(const spe::RecordColumns& c, std::size_t i);

private:
    static constexpr std::uint64_t forever = std::numeric_limits<std::uint64_t>::max();
    static constexpr unsigned page_bits = 12;
    static constexpr std::uint64_t no_context = forever;
    /// The answer for a page of PC payloads, in which the bits above the address distinguish exception levels.
    struct Remembered {
        std::uint64_t page = forever, context{};
        std::uint32_t epoch{};
        Answer answer{};
    };
    struct Known {
        std::uint32_t tid{}, epoch{}, pid{};
        std::string_view name;
    };

    void enter(std::uint64_t time);
    [[nodiscard]] const Known& known(std::uint32_t tid);
    /// The answer at `time_`. It has a mapping only if there is a PC.
    [[nodiscard]] Answer ask(std::uint64_t context, std::optional<spe::ProgramAddress> pc);

    const capture::perf::PerfData& data_;
    capture::perf::Tasks tasks_;
    capture::perf::TimeConversion conversion_;
    bool clock_;
    std::vector<std::uint64_t> changes_;
    std::unordered_set<std::uint64_t> split_pages_;  // pages inside which a mapping begins or ends
    const capture::perf::Stream* stream_ = nullptr;
    std::uint64_t from_ = 1, until_ = 0, time_ = forever;
    std::uint32_t epoch_ = 0;
    bool running_known_ = false;
    capture::perf::Tasks::Thread running_;
    std::array<Remembered, 4096> remembered_{};
    Answer passing_;  // an answer that is not cached
    std::array<Known, 256> threads_{};
};

}  // namespace waymark::analysis
