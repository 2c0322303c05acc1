/// Compares a recording of program flow or messages with its truth: decodes it, and finds where the decoded flow
/// differs from the executed code.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"
#include "waymark/record/comparison.h"
#include "waymark/record/truth.h"
#include "waymark/verify/verdict.h"

namespace waymark::verify {

/// A packet, or a gap, around a difference.
struct PacketNear {
    Offset at;  ///< in the buffer
    std::string text;
    bool here = false;  ///< the packet that gave the first differing range
};

/// A source, compared with its truth.
struct VerifiedSource {
    const pipeline::Source* source{};  ///< borrowed
    Verdict verdict = Verdict::not_compared;
    bool named = true;               ///< the truth has it; else nothing below is known
    record::SourceTruth executed;    ///< sums of the truth; `wrapped`: only the end is to be found in the trace
    record::SourceTruth decoded;     ///< sums of the decoded flow
    bool of_messages = false;        ///< its ranges are messages
    bool decodes = false;            ///< it was decoded at all
    bool has_ranges = false;         ///< its truth has every range, so a difference has a place
    std::uint64_t overflows{};       ///< overflows in the trace
    std::uint64_t unsynchronised{};  ///< bytes before the first synchronisation
    std::optional<record::Difference> difference;
    std::vector<PacketNear> around;  ///< the difference; empty: there is none
};

struct VerifiedFlow {
    std::vector<VerifiedSource> sources;  ///< in the order of selection
    pipeline::Report report;
    std::vector<std::string> warnings;  ///< unreadable files of the truth
    std::uint64_t instructions{};       ///< decoded, of all
    std::uint64_t messages{};           ///< the same for messages
    bool wrapped = false;               ///< the buffer of one of the sources has only its end
    [[nodiscard]] Verdict verdict() const;
};

/// `folder`: the folder of the truth. `progress` may be null.
[[nodiscard]] VerifiedFlow verify_flow(const pipeline::Session& session,
                                       const std::vector<const pipeline::Source*>& selected, const record::Truth& truth,
                                       const std::filesystem::path& folder, const pipeline::Progress& progress);

}  // namespace waymark::verify
