/// A stream of ETMv4 or ETE without the addresses that a mispredicted outcome makes void, for OpenCSD.
///
/// OpenCSD 1.3.3 removes such an address from a queue (a deque) while it walks through it, and its place in the queue
/// is not valid any more. If something newer than the address stays in the queue, which only what survives a cancel
/// does (an event, a timestamp, a cycle count), it then passes over the element before the address and inverts an older
/// outcome, or reads an element that is no longer there and crashes. The addresses mean nothing (docs/spec/etm4.md, 8:
/// they are deleted), so without them the stream says the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

#include "waymark/etm4/encoder.h"
#include "waymark/etm4/parser.h"
#include "waymark/etm4/state.h"

namespace waymark::etm4 {

/// Collects a parser's packets.
class WrongTargets {
public:
    explicit WrongTargets(const Config& config) : config_(config), state_(config) {}

    /// The stream `bytes` without the addresses of wrong paths that the walk would stumble over. Other addresses stay
    /// as they are, unless they were compressed against the wrong ones: then they are compressed again.
    [[nodiscard]] static std::vector<std::uint8_t> without(Bytes bytes, const Config& config, std::size_t& removed) {
        WrongTargets collected(config);
        Parser<WrongTargets> parser(config, collected);
        parser.feed(bytes);
        removed = collected.removed_;
        return collected.written();
    }

    template <class P>
    void operator()(const P& p, Extent) {
        packets_.push_back({p, state_(p).address});
        if constexpr (is_address<P>)
            add_address();
        else if constexpr (is_source_address<P>)
            entries_.push_back({Is::p0, 1, 0});
        else
            add(p);
    }
    void operator()(const Gap& gap) {
        state_(gap);
        entries_.clear();
    }

private:
    template <class P>
    static constexpr bool is_address = std::is_same_v<P, ShortAddress> || std::is_same_v<P, LongAddress> ||
                                       std::is_same_v<P, ExactMatchAddress> || std::is_same_v<P, AddressWithContext>;
    template <class P>
    static constexpr bool is_source_address =
        std::is_same_v<P, ShortSourceAddress> || std::is_same_v<P, LongSourceAddress> ||
        std::is_same_v<P, ExactMatchSourceAddress>;

    struct Collected {
        Packet packet;
        std::optional<KnownAddress> place;  ///< the whole address
        bool left_out = false;
    };
    enum class Is { outcomes, p0, address, kept, dropped };
    /// Waiting elements, as in follow::Uncommitted; committed ones stay.
    struct Entry {
        Is is;
        std::size_t weight;  ///< P0 elements
        std::size_t packet;  ///< of an address: in packets_
    };

    [[nodiscard]] std::vector<std::uint8_t> written() const {
        std::vector<std::uint8_t> out;
        PacketState state(config_);
        for (const Collected& c : packets_) std::visit([&](const auto& p) { write(out, p, c, state); }, c.packet);
        return out;
    }
    template <class P>
    void write(std::vector<std::uint8_t>& out, const P& p, const Collected& c, PacketState& state) const {
        const auto emit = [&](const auto& packet) {
            encode(out, packet, config_);
            state(packet);
        };
        if constexpr (is_address<P>) {
            constexpr bool with_context = std::is_same_v<P, AddressWithContext>;
            if (c.left_out) {
                if constexpr (with_context) {
                    Context context;
                    static_cast<ContextFields&>(context) = p;
                    context.has_payload = true;
                    emit(context);
                }
                return;
            }
            PacketState as_it_is = state;
            if (as_it_is(p).address == c.place) return emit(p);
            if constexpr (with_context) {
                P whole = p;
                whole.address = {c.place->address.value & address_mask(8, c.place->is1), 8, c.place->is1};
                return emit(whole);
            }
            const CompressedAddress compressed = compress(*c.place, state.addresses());
            if (compressed.entry)
                emit(ExactMatchAddress{*compressed.entry});
            else if (compressed.sent.bytes <= 2)
                emit(ShortAddress{compressed.sent});
            else
                emit(LongAddress{compressed.sent});
        } else {
            emit(p);
        }
    }

    void add_address() {
        if (exception_waits_)
            entries_.push_back({Is::p0, 1, 0});
        else
            entries_.push_back({Is::address, 0, packets_.size() - 1});
        exception_waits_ = false;
    }
    void add_outcomes(std::size_t count) {
        if (count != 0) entries_.push_back({Is::outcomes, count, 0});
    }
    void add(const Atom& p) { add_outcomes(p.atoms.count); }
    void add(const Exception& p) { exception_waits_ = !p.address_unknown(config_); }
    void add(const Q&) { entries_.push_back({Is::p0, 1, 0}); }
    void add(const TransactionStart&) { entries_.push_back({Is::p0, config_.transaction_start_p0 ? 1U : 0U, 0}); }
    void add(const Overflow&) { entries_.clear(); }
    void add(const Discard&) { entries_.clear(); }
    void add(const CancelF1& p) {
        cancel(p.count);
        if (p.mispredict) mispredict();
    }
    void add(const CancelF2& p) {
        add_outcomes(speculation_atoms(p.atoms).count);
        cancel(1);
        mispredict();
    }
    void add(const CancelF3& p) {
        add_outcomes(p.atom ? 1 : 0);
        cancel(p.count + std::size_t{2});
        mispredict();
    }
    void add(const Mispredict& p) {
        add_outcomes(speculation_atoms(p.atoms).count);
        mispredict();
    }
    template <class P>
    void add(const P&) {
        constexpr bool kept = std::is_same_v<P, Event> || std::is_same_v<P, Timestamp> ||
                              std::is_same_v<P, TimestampMarker> || std::is_same_v<P, CycleCountF1> ||
                              std::is_same_v<P, CycleCountF2> || std::is_same_v<P, CycleCountF3>;
        entries_.push_back({kept ? Is::kept : Is::dropped, 0, 0});
    }

    void cancel(std::size_t count) {
        std::vector<Entry> stay;  // newest first
        while (count != 0 && !entries_.empty()) {
            Entry& entry = entries_.back();
            if (entry.weight > count) {
                entry.weight -= count;
                break;
            }
            count -= entry.weight;
            if (entry.is == Is::kept) stay.push_back(entry);
            entries_.pop_back();
        }
        entries_.insert(entries_.end(), stay.rbegin(), stay.rend());
    }
    void mispredict() {
        bool behind = false;  // a remaining packet is newer than the address
        for (std::size_t i = entries_.size(); i != 0 && entries_[i - 1].is != Is::outcomes; --i) {
            Entry& entry = entries_[i - 1];
            if (entry.is != Is::address) {
                behind = true;
                continue;
            }
            entry.is = Is::dropped;
            if (!behind) continue;
            packets_[entry.packet].left_out = true;
            ++removed_;
        }
    }

    const Config& config_;
    PacketState state_;
    std::vector<Collected> packets_;
    std::vector<Entry> entries_;
    bool exception_waits_ = false;
    std::size_t removed_ = 0;
};

}  // namespace waymark::etm4
