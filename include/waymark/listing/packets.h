/// Packets, line by line: what was on the wire, and what it means.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "waymark/analysis/samples.h"
#include "waymark/core/gap.h"
#include "waymark/core/result.h"
#include "waymark/doctor/dpu_input.h"
#include "waymark/flow/troubles.h"
#include "waymark/listing/text.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/run.h"

namespace waymark::listing {

using PacketTypes = std::set<std::string, std::less<>>;

/// What was listed.
struct PacketsListed {
    std::uint64_t packets = 0;  ///< of all types
    PacketTypes found{};        ///< of the types asked for
    bool cut = false;           ///< the file holds less than it should
    /// Gaps of all sources by reason, whether or not they were listed; offsets refer to the file.
    std::array<flow::Trouble, gap_reasons> gaps{};
};

class PacketLines;

/// The packets of all sources of a session. `out` is borrowed here and below; `types`: names of those that are listed;
/// empty: all, and gaps.
class PacketListing {
public:
    PacketListing(TextSink& out, LineFormat format, const PacketTypes& types);
    ~PacketListing();
    /// Takes the bytes of one source in one buffer. It ends before this object, and before what `stream` refers to.
    [[nodiscard]] std::unique_ptr<pipeline::Consumer> of(const pipeline::StreamInfo& stream);
    [[nodiscard]] PacketsListed listed() const;
    /// What was lost of each stream that was listed (pipeline::damage_in), in the report's order.
    [[nodiscard]] static std::vector<pipeline::Damage> damage_in(const pipeline::Report& report);

private:
    std::unique_ptr<PacketLines> lines_;
};

/// The packets of a statistical profile, CPU by CPU, and in `listed` what they were. `unreadable`: the file could not
/// be read to its end; what came before was written.
Status list_spe_packets(const analysis::SampleCapture& capture, TextSink& out, LineFormat format,
                        const PacketTypes& types, PacketsListed& listed);

/// The entries of a DPU's buffer, then `nexus`, the messages of its Nexus interface. Errors: `bad_format`: registers
/// that cannot be (dpu/vtb.h).
[[nodiscard]] Result<PacketsListed> list_dpu_packets(const doctor::DpuInput& input, Bytes nexus, TextSink& out,
                                                     LineFormat format, const PacketTypes& types);

}  // namespace waymark::listing
