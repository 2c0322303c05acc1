#include "waymark/pft/parallel_decoder.h"

#include <algorithm>
#include <optional>

#include "decoder_machine.h"
#include "waymark/follow/parallel.h"

namespace waymark::pft {

namespace {

/// A place where a stream can be cut.
struct Cut {
    using State = CoreState;
    std::size_t at{};  ///< behind the I-sync
    CoreState state;   ///< that it gives, but for the VMID
};

/// From an A-sync on, whether packets follow up to an I-sync. `from`: behind the A-sync.
std::optional<Cut> isync_behind(Bytes bytes, std::size_t from, const Config& config) {
    // As far as an I-sync may stay behind its A-sync.
    constexpr std::size_t most_bytes = 4096;
    const std::size_t end = std::min(bytes.size(), from + most_bytes);
    std::optional<Cut> cut;
    while (from < end && bytes[from] != 0 && !cut) {
        const Parsed parsed =
            parse_one(bytes.subspan(from, end - from), config, [&]<class P>(const P& packet, std::size_t size) {
                if constexpr (std::is_same_v<P, ISync>) cut = Cut{from + size, isync_state(packet, {}, config)};
            });
        if (parsed.step != Step::ok) return {};
        from += parsed.bytes;
    }
    return cut;
}

/// For follow::Parallel.
struct Protocol {
    using Config = pft::Config;
    using Cut = pft::Cut;
    template <class Out>
    using Decoder = Machine<Out>;
    static std::optional<Cut> find_cut(Bytes bytes, std::size_t from, std::size_t end, const Config& config) {
        return follow::first_cut<5>(bytes, from, end, [&](std::size_t at) { return isync_behind(bytes, at, config); });
    }
};

}  // namespace

ParallelDecoder::ParallelDecoder(const Config& config, const isa::CodeReader& code, flow::BlockTable& table,
                                 flow::Sink& sink, const Options& options)
    : HeldParallel(follow::make_parallel<Protocol>(config, code, table, sink, options)) {}

}  // namespace waymark::pft
