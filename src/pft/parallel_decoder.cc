#include "waymark/pft/parallel_decoder.h"

#include <algorithm>
#include <functional>
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

/// The first place to cut whose A-sync lies in [from, end).
std::optional<Cut> find_cut(Bytes bytes, std::size_t from, std::size_t end, const Config& config) {
    static constexpr std::array<std::uint8_t, 6> async{0, 0, 0, 0, 0, 0x80};
    static const std::boyer_moore_horspool_searcher searcher(async.begin(), async.end());
    const auto place = [&](std::size_t i) {
        return bytes.begin() + static_cast<std::ptrdiff_t>(std::min(i, bytes.size()));
    };
    auto at = place(from);
    while ((at = std::search(at, place(end), searcher)) != place(end)) {
        at += async.size();
        if (auto cut = isync_behind(bytes, static_cast<std::size_t>(at - bytes.begin()), config)) return cut;
    }
    return {};
}

/// For follow::Parallel.
struct Protocol {
    using Config = pft::Config;
    using Cut = pft::Cut;
    template <class Out>
    using Decoder = Machine<Out>;
    static std::optional<Cut> find_cut(Bytes bytes, std::size_t from, std::size_t end, const Config& config) {
        return pft::find_cut(bytes, from, end, config);
    }
};

}  // namespace

ParallelDecoder::ParallelDecoder(const Config& config, const isa::CodeReader& code, flow::BlockTable& table,
                                 flow::Sink& sink, const Options& options)
    : HeldParallel(follow::make_parallel<Protocol>(config, code, table, sink, options)) {}

}  // namespace waymark::pft
