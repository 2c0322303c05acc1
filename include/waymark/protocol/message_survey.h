/// Counts the messages of a stream without making them: for summaries.
#pragma once

#include <cstdint>
#include <memory>

#include "waymark/core/gap.h"
#include "waymark/core/offset_map.h"
#include "waymark/flow/troubles.h"
#include "waymark/protocol/adapters.h"

namespace waymark::protocol {

/// The messages that MessageSource::messages delivers, counted. Messages of damage are counted as troubles only.
struct MessageCounts {
    std::uint64_t messages{};
    bool samples{};  ///< one of them is a sample of the program counter
    flow::Troubles troubles{};

    void see(const Gap& gap, const OffsetMap& offsets) {
        if (!is_loss(gap.reason) || gap.bytes() == 0) return;
        flow::Trouble& trouble = troubles.gaps[static_cast<unsigned>(gap.reason)];
        if (trouble.times++ == 0) trouble.offset = offsets.capture(gap.first).value;
        trouble.bytes += gap.bytes();
    }
    /// A packet that the unit never sends: its bytes were damaged, or are no trace.
    void reserved(Extent at, const OffsetMap& offsets) {
        flow::Trouble& trouble = troubles.gaps[static_cast<unsigned>(GapReason::reserved_header)];
        if (trouble.times++ == 0) trouble.offset = offsets.capture(at.first).value;
        trouble.bytes += at.bytes;
    }
    void overflow(Extent at, const OffsetMap& offsets) {
        ++messages;
        if (troubles.overflows.times++ == 0) troubles.overflows.offset = offsets.capture(at.first).value;
    }
};

/// Also implemented by the Surveyor of a protocol with messages.
class MessageCounter {
public:
    virtual ~MessageCounter() = default;
    [[nodiscard]] virtual MessageCounts messages() const = 0;
};

/// `More::messages()` gives the counts.
template <class Config, template <class> class Parser, class More>
class MessageSurveyorOf final : public SurveyorOf<Config, Parser, More>, public MessageCounter {
public:
    using SurveyorOf<Config, Parser, More>::SurveyorOf;
    [[nodiscard]] MessageCounts messages() const override { return this->more().messages(); }
};

}  // namespace waymark::protocol
