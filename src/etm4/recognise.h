/// Infers from its bytes how an undescribed trace unit was built and programmed. Every configuration that changes the
/// parsing is tried. Among the configurations that lose fewest bytes, the chosen one has commits, cancels and Trace
/// Infos that agree on the number of waiting elements (docs/spec/etm4.md, section 8).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "waymark/etm4/config.h"
#include "waymark/etm4/packet.h"
#include "waymark/protocol/adapters.h"
#include "waymark/protocol/overflow_finding.h"
#include "waymark/protocol/protocol.h"

namespace waymark::etm4 {

/// The result of parsing bytes with one configuration.
struct Likeness : protocol::Likeness {
    std::uint64_t asyncs{}, trace_infos{}, atoms{};
    std::uint64_t cancelled{};  ///< number of P0 elements, most of them atoms
    std::uint64_t cycle_counts{}, counts_with_commit{}, timestamps{}, markers{}, qs{}, ignored{}, speculates{};
    std::uint64_t exception_returns{}, m_only{}, ete_only{}, ete_1_3_only{}, context_ids{}, vmids{}, realms{};
    std::uint64_t a64{}, a32{};  ///< contexts, by width
    std::uint64_t t32_addresses{}, other_addresses{}, wide_addresses{};
    std::uint64_t exceptions{};
    std::uint64_t no_returns{};  ///< return addresses 0xfffffffe, which only tail-chained exceptions have
    std::uint64_t many_taken{};  ///< packets with several taken branches, and no address between them
    std::uint64_t alone_taken{}, alone_named{};  ///< packets of one taken branch, and those that an address follows
    std::uint64_t data_markers{};
    std::uint64_t events{};
    unsigned most_timestamp_bytes{};
    std::uint32_t most_timestamp_cycles{};
    std::optional<TraceInfo> info{};  ///< the first
    std::optional<Offset> first_async{};
    bool taken_last{};  ///< the last packet was one taken branch
    protocol::Overflows overflows{};

    template <class P>
    void see(const P& p, wire::Extent at, const protocol::Stretch& stretch) {
        const bool after_taken = std::exchange(taken_last, false);
        if constexpr (std::is_same_v<P, ASync>) {
            ++asyncs;
            if (!first_async) first_async = stretch.offsets.capture(at.first);
        } else if constexpr (std::is_same_v<P, TraceInfo>) {
            ++trace_infos;
            if (!info) info = p;
        } else if constexpr (std::is_same_v<P, Atom>) {
            atoms += p.atoms.count;
            if (p.atoms.count == 1 && p.atoms.e == 1)
                ++alone_taken, taken_last = true;
            else if ((p.atoms.e & (p.atoms.e >> 1U)) != 0)
                ++many_taken;
        } else if constexpr (std::is_same_v<P, CancelF1>) {
            cancelled += p.count;
        } else if constexpr (std::is_same_v<P, CancelF2>) {
            ++cancelled;
            atoms += p.atoms == 2 ? 2 : p.atoms != 0;
        } else if constexpr (std::is_same_v<P, CancelF3>) {
            cancelled += p.count + 2U;
            atoms += p.atom;
        } else if constexpr (std::is_same_v<P, Mispredict>) {
            atoms += p.atoms == 2 ? 2 : p.atoms != 0;
        } else if constexpr (std::is_same_v<P, CycleCountF1>) {
            ++cycle_counts, ++counts_with_commit;
        } else if constexpr (std::is_same_v<P, CycleCountF2> || std::is_same_v<P, CycleCountF3>) {
            ++cycle_counts;
        } else if constexpr (std::is_same_v<P, Timestamp>) {
            ++timestamps;
            most_timestamp_bytes = std::max<unsigned>(most_timestamp_bytes, p.value.bytes);
            if (p.has_cycles) most_timestamp_cycles = std::max(most_timestamp_cycles, p.cycles);
        } else if constexpr (std::is_same_v<P, TimestampMarker>) {
            ++markers;
        } else if constexpr (std::is_same_v<P, Q>) {
            ++qs;
        } else if constexpr (std::is_same_v<P, Overflow>) {
            overflows.add(stretch.offsets.capture(at.first));
        } else if constexpr (std::is_same_v<P, Ignore>) {
            ++ignored;
        } else if constexpr (std::is_same_v<P, ExceptionReturn>) {
            ++exception_returns;
        } else if constexpr (std::is_same_v<P, Exception>) {
            ++exceptions;
        } else if constexpr (std::is_same_v<P, FunctionReturn> || std::is_same_v<P, BranchFutureFlush>) {
            ++m_only;
        } else if constexpr (std::is_same_v<P, ShortSourceAddress> || std::is_same_v<P, LongSourceAddress> ||
                             std::is_same_v<P, ExactMatchSourceAddress> || std::is_same_v<P, TransactionStart> ||
                             std::is_same_v<P, TransactionCommit>) {
            ++ete_only;
        } else if constexpr (std::is_same_v<P, Instrumentation>) {
            ++ete_1_3_only;
        } else if constexpr (std::is_same_v<P, Event>) {
            ++events;
        } else if constexpr (std::is_same_v<P, NumberedDataSyncMarker> || std::is_same_v<P, UnnumberedDataSyncMarker>) {
            ++data_markers;
        }
        if constexpr (std::is_same_v<P, Commit> || std::is_same_v<P, CancelF1> || std::is_same_v<P, CancelF2> ||
                      std::is_same_v<P, CancelF3> || std::is_same_v<P, Mispredict>)
            ++speculates;
        if constexpr (std::is_same_v<P, ShortAddress> || std::is_same_v<P, LongAddress> ||
                      std::is_same_v<P, AddressWithContext>) {
            alone_named += after_taken;
            ++(p.address.is1 ? t32_addresses : other_addresses);
            wide_addresses += p.address.bytes > 4;
            if (p.address.bytes == 4 && p.address.value == 0xffff'fffeU) ++no_returns;
        } else if constexpr (std::is_same_v<P, ExactMatchAddress>) {
            alone_named += after_taken;
        }
        if constexpr (std::is_same_v<P, Context>) {
            if (p.has_payload) see_context(p);
        } else if constexpr (std::is_base_of_v<ContextFields, P>) {
            see_context(p);
        }
    }
    [[nodiscard]] std::uint64_t waypoints() const { return atoms - std::min(atoms, cancelled); }
    /// Whether A-syncs are followed by Trace Infos; some damage is no reason to doubt. One place costs all bytes up to
    /// the next A-sync.
    [[nodiscard]] bool enough() const {
        return asyncs != 0 && trace_infos != 0 && errors * 4 <= asyncs + trace_infos &&
               lost_bytes * 2 <= parsed_bytes();
    }
    /// Whether these are all packets of an ETE that was enabled and traced no instruction: A-syncs, the first one at
    /// the first byte, and Event packets, which need no Trace Info there (section 5).
    [[nodiscard]] bool only_events() const {
        constexpr std::uint64_t async_bytes = 12;
        return asyncs != 0 && events != 0 && bytes == async_bytes * asyncs + events + padding_bytes;
    }

private:
    void see_context(const ContextFields& p) {
        ++(p.sf ? a64 : a32);
        context_ids += p.has_context_id;
        vmids += p.has_vmid;
        realms += p.nse;
    }
};
[[nodiscard]] Likeness likeness(const std::vector<protocol::Stretch>& stretches, const Config& config);

/// Number of places where packets contradict each other about the number of waiting P0 elements, for a given MAXSPEC: a
/// Commit or Cancel of more elements than exist, or a Trace Info with another number. Only the first million packets
/// are examined.
[[nodiscard]] std::uint64_t depth_conflicts(const std::vector<protocol::Stretch>& stretches, const Config& config);

/// The result of recognition. Stored as protocol::Evidence in an Identity of this protocol.
struct Recognised final : protocol::Evidence {
    Config config;
    Likeness likeness;          ///< under that configuration
    std::uint64_t conflicts{};  ///< depth_conflicts()
    bool commit_mode_open{};    ///< the bytes do not exclude the other commit mode
    std::vector<protocol::InferredField> facts{};
};

/// protocol::Protocol::identify, without `out.protocol` and `out.configuration`. `sync_bytes`: the bytes of an A-sync.
[[nodiscard]] std::shared_ptr<const Recognised> recognise(const std::vector<protocol::Stretch>& stretches,
                                                          std::string_view sync_bytes, protocol::Identity& out);

/// A version as text: `ETMv4.2`, `ETE 1.1`.
[[nodiscard]] std::string version_text(const Config& config);

}  // namespace waymark::etm4
