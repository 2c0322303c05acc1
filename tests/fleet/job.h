/// Jobs whose captures are small files and whose decoder makes answers from their names: for tests of everything except
/// decoding.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/any_answers.h"
#include "support/temporary_folder.h"
#include "waymark/answers/file.h"
#include "waymark/fleet/manifest.h"
#include "waymark/fleet/plan.h"
#include "waymark/fleet/shard_run.h"
#include "waymark/fleet/survey.h"

namespace waymark::fleet {

/// Files of jobs are synced, which takes longer than everything else on a shared disk: so they are in memory.
inline const bool in_memory = std::filesystem::is_directory("/dev/shm") && ::setenv("TMPDIR", "/dev/shm", 0) == 0;

inline constexpr const char* tested_version = "1.2.3";

/// The contents of a file.
inline std::string contents_of(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// A capture of a job, as its file is now.
inline PlannedCapture planned(const std::filesystem::path& file) {
    PlannedCapture out;
    out.path = file.string();
    const auto state = file_state(out.path);
    WM_CHECK(state);
    out.bytes = out.trace_bytes = state->bytes;
    out.sample = state->sample;
    return out;
}

/// Writes a job whose shards have the given numbers of captures.
class MadeJob {
public:
    explicit MadeJob(const std::vector<std::size_t>& sizes, const std::string& name = "job")
        : folder_(temporary_.path() / name) {
        std::filesystem::create_directories(folder_.path() / "shards");
        std::filesystem::create_directories(folder_.path() / "merged");
        std::filesystem::create_directories(folder_.path() / "logs");
        manifest_.version = tested_version;
        manifest_.options = {"--contents=code"};
        std::vector<Shard> shards;
        for (const std::size_t size : sizes) {
            Shard& shard = shards.emplace_back();
            shard.number = static_cast<std::uint32_t>(shards.size() - 1);
            for (std::size_t i = 0; i < size; ++i) {
                const std::string capture = "capture" + std::to_string(manifest_.captures++);
                shard.captures.push_back(planned(temporary_.write(capture, "bytes of " + capture)));
            }
            shard.identity = identity_of(shard, manifest_);
        }
        manifest_.shards = shards.size();
        WM_CHECK(write_plan(folder_, manifest_, 0, shards));
    }

    [[nodiscard]] const JobFolder& folder() const { return folder_; }
    [[nodiscard]] const Manifest& manifest() const { return manifest_; }
    [[nodiscard]] Shard shard(std::uint32_t number) const {
        auto found = read_shard(folder_, manifest_, number);
        WM_CHECK(found);
        return std::move(*found);
    }
    [[nodiscard]] const TemporaryFolder& temporary() const { return temporary_; }

private:
    TemporaryFolder temporary_;
    JobFolder folder_;
    Manifest manifest_;
};

/// Random answers, which are the same for the same name.
inline answers::Answers made_answers(const std::string& path) {
    const std::size_t at = path.find_last_not_of("0123456789");
    answers::Answers out = support::any_answers(std::stoull("1" + path.substr(at + 1)));
    // Files that are no program of the test are not searched.
    for (answers::Image& image : out.images) image.path.clear();
    return out;
}
inline Result<answers::Answers> made(const PlannedCapture& capture) { return made_answers(capture.path); }

inline ShardOptions tested_options() { return {tested_version, 0}; }

}  // namespace waymark::fleet
