/// Lists packets, line by line: their contents on the wire, and their meaning.
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

/// Counts of what was listed.
struct PacketsListed {
    std::uint64_t packets = 0;  ///< of all types
    PacketTypes found{};        ///< of the requested types
    bool cut = false;           ///< the file is shorter than it should be
    /// Gaps of all sources by reason, listed or not; offsets refer to the file.
    std::array<flow::Trouble, gap_reasons> gaps{};
};

class PacketLines;

/// Lists the packets of all sources of a session. `out` is borrowed here and below; `types`: names of the types to
/// list; empty: all, and gaps.
class PacketListing {
public:
    PacketListing(TextSink& out, LineFormat format, const PacketTypes& types);
    ~PacketListing();
    /// Receives the bytes of one source in one buffer. It must be destroyed before this object, and before the objects
    /// in `stream`.
    [[nodiscard]] std::unique_ptr<pipeline::Consumer> of(const pipeline::StreamInfo& stream);
    [[nodiscard]] PacketsListed listed() const;
    /// The losses of each listed stream (pipeline::damage_in), in the order of the report.
    [[nodiscard]] static std::vector<pipeline::Damage> damage_in(const pipeline::Report& report);

private:
    std::unique_ptr<PacketLines> lines_;
};

/// Lists the packets of a statistical profile, CPU by CPU, and counts them in `listed`. `unreadable`: the file could
/// not be read to its end; earlier packets were written.
Status list_spe_packets(const analysis::SampleCapture& capture, TextSink& out, LineFormat format,
                        const PacketTypes& types, PacketsListed& listed);

/// Lists the entries of a DPU's buffer, then `nexus`, the messages of its Nexus interface. Errors: `bad_format`:
/// impossible registers (dpu/vtb.h).
[[nodiscard]] Result<PacketsListed> list_dpu_packets(const doctor::DpuInput& input, Bytes nexus, TextSink& out,
                                                     LineFormat format, const PacketTypes& types);

}  // namespace waymark::listing
