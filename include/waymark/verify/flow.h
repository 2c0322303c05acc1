/// A recording of program flow or messages against its truth: decodes it, and finds where what is decoded differs from
/// what executed.
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
    bool here = false;  ///< the packet that gave the first range that differs
};

/// A source, held against its truth.
struct VerifiedSource {
    const pipeline::Source* source{};  ///< borrowed
    Verdict verdict = Verdict::not_compared;
    bool named = true;               ///< in the truth; else nothing below is known
    record::SourceTruth executed;    ///< as the truth has it; `wrapped`: only the end is to be found in the trace
    record::SourceTruth decoded;     ///< sums of the decoded flow
    bool of_messages = false;        ///< it sends messages: these are what its sums call ranges
    bool decodes = false;            ///< it was decoded at all
    bool has_ranges = false;         ///< its truth has every range, so a difference has a place
    std::uint64_t overflows{};       ///< that the trace declares
    std::uint64_t unsynchronised{};  ///< bytes before the first synchronisation
    std::optional<record::Difference> difference;
    std::vector<PacketNear> around;  ///< the difference; empty: there is none
};

struct VerifiedFlow {
    std::vector<VerifiedSource> sources;  ///< in the order in which they were selected
    pipeline::Report report;
    std::vector<std::string> warnings;  ///< files of the truth that cannot be read
    std::uint64_t instructions{};       ///< decoded, of all
    std::uint64_t messages{};           ///< the same of messages
    bool wrapped = false;               ///< of one of the sources only the end is in its buffer
    [[nodiscard]] Verdict verdict() const;
};

/// `folder`: that of the truth. `progress` may be null.
[[nodiscard]] VerifiedFlow verify_flow(const pipeline::Session& session,
                                       const std::vector<const pipeline::Source*>& selected, const record::Truth& truth,
                                       const std::filesystem::path& folder, const pipeline::Progress& progress);

}  // namespace waymark::verify
