#include "waymark/pft/parallel_decoder.h"

#include <optional>
#include <type_traits>

#include "decoder_machine.h"
#include "waymark/follow/cuts.h"
#include "waymark/follow/parallel.h"

namespace waymark::pft {

namespace {

/// A place where a stream can be cut.
struct Cut {
    using State = CoreState;
    std::size_t at{};  ///< after the I-sync
    CoreState state;   ///< state that the I-sync gives, except the VMID
};

/// Finds the I-sync after an A-sync that ends at `from`.
std::optional<Cut> isync_behind(Bytes bytes, std::size_t from, const Config& config) {
    return follow::cut_behind<Cut>(bytes, from, [&](Bytes rest, std::size_t at, std::optional<Cut>& cut) {
        return parse_one(rest, config, [&]<class P>(const P& packet, std::size_t size) {
            if constexpr (std::is_same_v<P, ISync>) cut = Cut{at + size, isync_state(packet, {}, config)};
        });
    });
}

/// The rules of Program Flow Trace for follow::Parallel.
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

std::unique_ptr<follow::Cutting> make_cutting(const Config& config, const isa::CodeReader& code,
                                              flow::BatchWriter& out) {
    return std::make_unique<follow::CuttingDecoder<Protocol>>(config, code, out);
}

}  // namespace waymark::pft
