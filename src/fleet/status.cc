#include "waymark/fleet/status.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace waymark::fleet {

Result<JobStatus> read_status(const JobFolder& job) {
    JobStatus out;
    WM_ASSIGN_OR_RETURN(out.manifest, read_manifest(job));
    out.not_decoded = out.manifest.unreadable;
    WM_RETURN_IF_ERROR(read_shards(job, out.manifest, [&](Shard&& shard) {
        auto receipt = finished_shard(job, shard, true);
        if (receipt) {
            ++out.done;
            out.captures_done += receipt->captures;
            out.trace_bytes_done += receipt->trace_bytes;
            out.seconds += receipt->seconds;
            out.planned_seconds += shard.seconds;
            out.answers_bytes += receipt->answers_bytes;
            answers::add(out.account, receipt->account);
            out.memory_bytes = std::max(out.memory_bytes, receipt->memory_bytes);
            for (NotDecoded& n : receipt->not_decoded) {
                if (n.changed && is_as_planned(shard, n))
                    n.why += "; it is as planned again: fleet local and fleet resume will decode it";
                out.not_decoded.push_back(std::move(n));
            }
            std::move(receipt->cut.begin(), receipt->cut.end(), std::back_inserter(out.cut));
            return;
        }
        out.planned_left += shard.seconds;
        // The shard was done, and its output is missing or was changed since.
        const bool damaged = receipt.error().code == Errc::bad_format;
        const bool failed = damaged || read_last_words(job, shard.number).has_value();
        auto progress = read_progress(job, shard.number);
        if (failed)
            out.failures.push_back(
                {shard.number, shard.captures.size(), damaged ? receipt.error().message : why_missing(job, shard)});
        if (progress) out.running.push_back({shard.number, std::move(*progress), failed});
        ++(failed ? out.failed : progress ? out.begun : out.waiting);
    }));
    std::error_code none;
    out.has_result = std::filesystem::exists(job.result(), none);
    return out;
}

Result<std::vector<std::uint32_t>> shards_to_run(const JobFolder& job, bool retry) {
    WM_ASSIGN_OR_RETURN(const Manifest manifest, read_manifest(job));
    std::vector<std::uint32_t> out;
    WM_RETURN_IF_ERROR(read_shards(job, manifest, [&](Shard&& shard) {
        // Answers that were damaged on the disk are computed again.
        const auto receipt = finished_shard(job, shard, true);
        if (!receipt || (retry && is_worth_running_again(shard, *receipt))) out.push_back(shard.number);
    }));
    return out;
}

}  // namespace waymark::fleet
