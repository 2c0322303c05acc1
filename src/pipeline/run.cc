#include "waymark/pipeline/run.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "waymark/capture/byte_stream.h"
#include "waymark/pipeline/piece_reader.h"

namespace waymark::pipeline {

namespace {

/// Counts bytes of all buffers; calls come from several threads.
class ProgressSum {
public:
    ProgressSum(const Progress& progress, std::optional<std::uint64_t> of) : progress_(progress), of_(of) {}
    void add(std::uint64_t bytes) {
        if (!progress_) return;
        const std::scoped_lock lock(mutex_);
        done_ += bytes;
        progress_(done_, of_);
    }

private:
    const Progress& progress_;
    const std::optional<std::uint64_t> of_;
    std::mutex mutex_;
    std::uint64_t done_ = 0;
};

/// Reads one buffer to its end.
Report read_buffer(const Session& session, std::span<const Source* const> selected, const MakeConsumer& make,
                   const OpenBuffer& open, const capture::Buffer& buffer, ProgressSum& sum) {
    PieceReader reader(session, {selected.begin(), selected.end()}, make, open, &buffer);
    for (std::uint64_t before = 0; reader.step(); before = reader.bytes()) sum.add(reader.bytes() - before);
    return reader.report();
}

}  // namespace

Report run(const Session& session, std::span<const Source* const> selected, const MakeConsumer& make,
           const Progress& progress, const OpenBuffer& open, unsigned at_once) {
    const std::vector<capture::Buffer>& buffers = session.capture.buffers;
    ProgressSum sum(progress, progress ? PieceReader(session, {}, make, open).size() : std::nullopt);
    std::vector<Report> reports(buffers.size());
    if (at_once <= 1) {
        for (std::size_t i = 0; i < buffers.size(); ++i)
            reports[i] = read_buffer(session, selected, make, open, buffers[i], sum);
    } else {
        // The largest come first, so that no thread is left with a large one at the end.
        std::vector<std::size_t> order(buffers.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return capture::bytes_in(buffers[a].parts) > capture::bytes_in(buffers[b].parts);
        });
        std::mutex making;
        const MakeConsumer make_one = [&](const StreamInfo& stream) {
            const std::scoped_lock lock(making);
            return make(stream);
        };
        std::atomic<std::size_t> next{0};
        std::exception_ptr failed;  // guarded by `making`
        const auto work = [&] {
            try {
                for (std::size_t i = 0; (i = next++) < order.size();)
                    reports[order[i]] = read_buffer(session, selected, make_one, open, buffers[order[i]], sum);
            } catch (...) {
                const std::scoped_lock lock(making);
                failed = std::current_exception();
            }
        };
        {
            std::vector<std::jthread> threads;
            for (unsigned i = 1; i < std::min<std::size_t>(at_once, buffers.size()); ++i) threads.emplace_back(work);
            work();
        }
        if (failed) std::rethrow_exception(failed);
    }
    Report out;
    for (Report& report : reports) {
        std::move(report.buffers.begin(), report.buffers.end(), std::back_inserter(out.buffers));
        std::move(report.streams.begin(), report.streams.end(), std::back_inserter(out.streams));
    }
    return out;
}

unsigned buffers_at_once(const Session& session, unsigned workers) {
    // Otherwise a source may continue in another buffer.
    if (session.capture.spaces == nullptr) return 1;
    std::uint64_t bytes = 0, in_short_parts = 0;
    std::size_t buffers = 0;
    for (const capture::Buffer& buffer : session.capture.buffers) {
        buffers += buffer.parts.empty() ? 0 : 1;
        for (const capture::BufferPart& part : buffer.parts) {
            bytes += part.bytes;
            if (part.bytes < least_bytes_for_threads) in_short_parts += part.bytes;
        }
    }
    return in_short_parts > bytes / 4 ? static_cast<unsigned>(std::min<std::size_t>(workers, buffers)) : 1;
}

}  // namespace waymark::pipeline
