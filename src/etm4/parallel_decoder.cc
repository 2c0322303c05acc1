#include "waymark/etm4/parallel_decoder.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "decoder_machine.h"
#include "waymark/follow/parallel.h"

namespace waymark::etm4 {

namespace {

/// A place where a stream can be cut.
struct Cut {
    using State = CutState;
    std::size_t at{};  ///< after the address
    CutState state;
};

/// Takes the packets after an A-sync until they give a Trace Info, a context and an address.
class CutFinder {
public:
    explicit CutFinder(const Config& config) : packets_(config), config_(config) {}

    template <class P>
    void operator()(const P& p) {
        if constexpr (std::is_same_v<P, TraceInfo>) {
            if (info_) wrong_ = true;
            info_ = true;
        }
        if (!info_) wrong_ = true;
        const Meaning meaning = packets_(p);
        if constexpr (std::is_base_of_v<ContextFields, P>) {
            if constexpr (std::is_same_v<P, Context>) {
                if (p.has_payload) fields_ = p;
            } else {
                fields_ = p;
            }
        }
        if constexpr (std::is_same_v<P, ShortAddress> || std::is_same_v<P, LongAddress> ||
                      std::is_same_v<P, ExactMatchAddress> || std::is_same_v<P, AddressWithContext>) {
            if (fields_) place_ = meaning.address;
        }
        // Flow and exceptions are not allowed before the address.
        constexpr bool may_come =
            std::is_base_of_v<ContextFields, P> || std::is_same_v<P, TraceInfo> || std::is_same_v<P, ShortAddress> ||
            std::is_same_v<P, LongAddress> || std::is_same_v<P, ExactMatchAddress> || std::is_same_v<P, Timestamp> ||
            std::is_same_v<P, CycleCountF1> || std::is_same_v<P, CycleCountF2> || std::is_same_v<P, CycleCountF3> ||
            std::is_same_v<P, Event> || std::is_same_v<P, TraceOn> || std::is_same_v<P, Ignore>;
        if (!may_come) wrong_ = true;
    }
    [[nodiscard]] bool wrong() const { return wrong_; }
    [[nodiscard]] bool done() const { return place_.has_value(); }
    [[nodiscard]] CutState state() const {
        return {.packets = packets_, .place = *place_, .fields = *fields_, .config = config_};
    }

private:
    PacketState packets_;
    const Config& config_;
    bool info_ = false, wrong_ = false;
    std::optional<ContextFields> fields_;
    std::optional<KnownAddress> place_;
};

/// Searches for packets up to such an address, from the end of an A-sync on.
std::optional<Cut> cut_after(Bytes bytes, std::size_t from, const Config& config) {
    // Maximum distance of the address from its A-sync.
    constexpr std::size_t most_bytes = 256;
    const std::size_t end = std::min(bytes.size(), from + most_bytes);
    CutFinder finder(config);
    while (from < end && bytes[from] != 0) {
        const Parsed parsed = parse_one(bytes.subspan(from, end - from), config,
                                        [&](const auto& packet, std::size_t) { finder(packet); });
        if (parsed.step != Step::ok || finder.wrong()) return {};
        from += parsed.bytes;
        if (finder.done()) return Cut{from, finder.state()};
    }
    return {};
}

/// The rules of ETMv4 for follow::Parallel.
struct ParallelEtm4 {
    using Config = etm4::Config;
    using Cut = etm4::Cut;
    template <class Out>
    using Decoder = Machine<Out>;
    static std::optional<Cut> find_cut(Bytes bytes, std::size_t from, std::size_t end, const Config& config) {
        return follow::first_cut<11>(bytes, from, end, [&](std::size_t at) { return cut_after(bytes, at, config); });
    }
};

/// Speculative elements may wait across any cut, so such a stream is not cut.
ParallelDecoder::Options possible(const Config& config, ParallelDecoder::Options options) {
    if (config.max_speculation != 0) options.workers = 1;
    return options;
}

}  // namespace

ParallelDecoder::ParallelDecoder(const Config& config, const isa::CodeReader& code, flow::BlockTable& table,
                                 flow::Sink& sink, const Options& options)
    : HeldParallel(follow::make_parallel<ParallelEtm4>(config, code, table, sink, possible(config, options))) {}

std::unique_ptr<follow::Cutting> make_cutting(const Config& config, const isa::CodeReader& code,
                                              flow::BatchWriter& out) {
    if (config.max_speculation != 0) return nullptr;
    return std::make_unique<follow::CuttingDecoder<ParallelEtm4>>(config, code, out);
}

}  // namespace waymark::etm4
