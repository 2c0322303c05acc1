/// Random executions of random programs as ETMv3, and their truth: a small writer that shares no code with the model.
/// Its trace is legal, and sometimes less usual than a macrocell's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "support/random.h"
#include "support/synthetic.h"
#include "waymark/etm3/encoder.h"
#include "waymark/etm3/exceptions.h"
#include "waymark/etm3/state.h"
#include "waymark/follow/walk.h"

namespace waymark::etm3::test {

/// Any configuration of instruction trace.
inline Config random_config(synthetic::Random& random) {
    constexpr std::uint8_t sizes[] = {0, 1, 2, 4};
    Config c;
    c.cycle_accurate = random.half();
    c.alternative_branches = random.half();
    c.m_profile = random.chance(3000);
    c.gray_timestamps = random.half();
    c.timestamps = true;
    c.context_id_bytes = sizes[random.below(4)];
    c.timestamp_bytes = random.half() ? 9 : 7;
    return c;
}

/// An instruction that ran, with its outcome.
struct RanInstruction {
    std::uint64_t address{};
    bool passed{};
    friend bool operator==(const RanInstruction&, const RanInstruction&) = default;
};

class RandomTrace {
public:
    RandomTrace(const Config& config, const synthetic::Program& program, std::uint64_t seed)
        : config_(config), program_(program), random_(seed) {}

    std::vector<std::uint8_t> bytes;
    std::vector<RanInstruction> ran;
    std::vector<std::size_t> syncs;  ///< offsets of A-syncs that an I-sync follows at once

    void run(unsigned steps, unsigned sync_bytes) {
        place_ = anywhere();
        sync(ISyncReason::trace_enabled);
        for (unsigned i = 0; i < steps; ++i) {
            if (bytes.size() - syncs.back() > sync_bytes) {
                flush();
                sync(ISyncReason::periodic);
            }
            if (random_.chance(100)) between();
            if (random_.chance(60)) {
                interrupt();
                continue;
            }
            step();
        }
        flush();
    }

private:
    struct Atom {
        bool passed{};
        unsigned cycles{};
    };

    template <class P>
    void send(const P& packet) {
        encode(bytes, packet, config_);
    }
    [[nodiscard]] Place anywhere() {
        const auto& f = program_.functions[random_.below(static_cast<std::uint32_t>(program_.functions.size()))];
        return {{program_.blocks[f.first_block].block.start}, f.isa};
    }

    void step() {
        const follow::Walk w = follow::walk(program_.memory, {}, place_, {{}, 1U << 16, true});
        if (w.end != follow::WalkEnd::waypoint) return interrupt();  // nothing can run there
        const isa::Instruction& i = w.instruction;
        const bool passed = follow::always_taken(w, program_.memory, {}) || !random_.chance(3000);
        atoms_.push_back({passed, random_.half() ? 1U : random_.below(12)});
        ran.push_back({w.last.value, passed});
        before_ = place_;
        const Place behind{w.after, place_.isa};
        if (!passed || i.waypoint == isa::Waypoint::none || i.waypoint == isa::Waypoint::barrier) {
            place_ = behind;
        } else if (i.waypoint == isa::Waypoint::direct) {
            place_ = {i.target, i.target_isa};
        } else {
            flush();
            if (i.exception_return || random_.chance(500)) send(ExceptionReturn{});
            place_ = anywhere();
            branch(0, false);
        }
        if (atoms_.size() > random_.below(20)) flush();
        if ((config_.data_address || config_.data_value) && random_.chance(2000)) data();
    }

    /// The transfers of the instruction before.
    void data() {
        flush();
        NormalData p;
        p.size = static_cast<std::uint8_t>(random_.below(4));
        p.value = p.size == 0 ? 0 : random_.below(1U << (8 * std::min(value_bytes(p.size), 3U)));
        // Below the first transfer with an address, later ones follow it.
        p.addressed = config_.data_address && random_.half();
        if (p.addressed) {
            p.address.bytes = static_cast<std::uint8_t>(1 + random_.below(5));
            p.address.bits = random_.below(1U << (7 * std::min<unsigned>(p.address.bytes, 4)));
        }
        if (!config_.data_value) p.value = 0;
        send(p);
    }

    /// An exception, which perhaps withdraws the instruction before it.
    void interrupt() {
        const bool had_atom = !atoms_.empty();
        flush();
        const bool cancels = had_atom && before_ && random_.half();
        if (cancels) ran.pop_back();
        std::uint32_t number = 0;
        do number = random_.below(config_.m_profile ? exception_numbers : 16U);
        while (exception_type(number, config_.m_profile).kind == flow::ExceptionClass::debug_halt || number == 0);
        place_ = anywhere();
        branch(number, cancels);
    }

    /// Packets that may come between instructions.
    void between() {
        flush();
        switch (random_.below(5)) {
            case 0: send(Trigger{}); break;
            case 1: send(Ignore{}); break;
            case 2:
                if (config_.context_id_bytes == 0) break;
                context_id_ = random_.below(256);
                send(ContextId{context_id_});
                break;
            case 3: {
                time_ += random_.below(100000);
                const std::uint64_t code = config_.gray_timestamps ? time_ ^ time_ >> 1 : time_;
                send(Timestamp{
                    pft::compress_timestamp(code, sent_time_, random_.chance(3000), timestamp_config(config_)),
                    random_.chance(1000)});
                sent_time_ = code;
                break;
            }
            default:
                if (config_.cycle_accurate) send(CycleCount{random_.below(100000)});
                break;
        }
        before_.reset();
    }

    void sync(ISyncReason reason) {
        syncs.push_back(bytes.size());
        send(ASync{});
        ISync p;
        p.reason = reason;
        p.address = static_cast<std::uint32_t>(place_.address.value) | (place_.isa == Isa::a32 ? 0U : 1U);
        p.ns = ns_;
        p.context_id = context_id_;
        send(p);
        base_ = place_;
        before_.reset();
    }

    void branch(std::uint32_t exception, bool cancels) {
        BranchAddress p;
        const bool ns = exception != 0 ? random_.half() : ns_;
        const bool information = exception != 0 || cancels;
        const bool short_form = config_.alternative_branches;
        for (unsigned n = information ? (short_form ? 2U : 5U) : 1U;; ++n) {
            p.target.bytes = static_cast<std::uint8_t>(n);
            p.target.isa = n == 5 ? place_.isa : Isa::a32;
            const unsigned width = n == 5 ? 32U : target_bits(n, short_form);
            const auto bits = static_cast<std::uint32_t>(place_.address.value >> address_shift(place_.isa));
            p.target.bits = width == 32 ? bits : bits & ((1U << width) - 1U);
            if (n == 5 || (place_.isa == base_.isa && complete(p.target, base_, config_) == place_)) break;
        }
        p.target.information = information;
        p.cancelled = cancels;
        p.exception_3_0 = static_cast<std::uint8_t>(exception & 15U);
        p.ns = ns;
        if (information) {
            ns_ = ns;
            p.more = exception > 15;
            p.second = static_cast<std::uint8_t>(exception >> 4);
        }
        send(p);
        base_ = place_;
        before_.reset();
    }

    /// The outcomes that wait, in P-headers of any format that fits.
    void flush() {
        for (std::size_t at = 0; at < atoms_.size();) {
            if (config_.cycle_accurate)
                at += cycle_header(at);
            else
                at += header(at);
        }
        atoms_.clear();
    }
    std::size_t header(std::size_t at) {
        const std::size_t left = atoms_.size() - at;
        if (left >= 2 && random_.chance(3000)) {
            send(PHeader{
                static_cast<std::uint8_t>(0x82U | (atoms_[at].passed ? 0U : 8U) | (atoms_[at + 1].passed ? 0U : 4U))});
            return 2;
        }
        unsigned e = 0;
        while (e < 15 && e < left && atoms_[at + e].passed) ++e;
        const bool n = e < left && !atoms_[at + e].passed;
        send(PHeader{static_cast<std::uint8_t>(0x80U | e << 2 | (n ? 0x40U : 0U))});
        return e + (n ? 1U : 0U);
    }
    std::size_t cycle_header(std::size_t at) {
        const Atom& atom = atoms_[at];
        if (atom.cycles == 0) {
            send(PHeader{static_cast<std::uint8_t>(atom.passed ? 0x92U : 0x96U)});
            return 1;
        }
        if (atom.cycles > 1 && (atom.cycles > 8 || !atom.passed)) {
            const unsigned w = std::min(atom.cycles - 1U, 8U);
            send(PHeader{static_cast<std::uint8_t>(0xa0U | (w - 1U) << 2)});
            atoms_[at].cycles -= w;
            return 0;
        }
        if (atom.cycles > 1) {
            send(PHeader{static_cast<std::uint8_t>(0xe0U | (atom.cycles - 1U) << 2)});
            return 1;
        }
        if (at + 1 < atoms_.size() && atoms_[at + 1].cycles == 0) {
            send(PHeader{
                static_cast<std::uint8_t>(0x82U | (atom.passed ? 0U : 8U) | (atoms_[at + 1].passed ? 0U : 4U))});
            return 2;
        }
        unsigned e = 0;
        while (e < 7 && at + e < atoms_.size() && atoms_[at + e].passed && atoms_[at + e].cycles == 1) ++e;
        const bool n = at + e < atoms_.size() && !atoms_[at + e].passed && atoms_[at + e].cycles == 1;
        send(PHeader{static_cast<std::uint8_t>(0x80U | e << 2 | (n ? 0x40U : 0U))});
        return e + (n ? 1U : 0U);
    }

    const Config config_;
    const synthetic::Program& program_;
    synthetic::Random random_;
    Place place_, base_;
    std::optional<Place> before_;  // the instruction with the last outcome, while no packet follows it
    bool ns_ = false;
    std::uint32_t context_id_ = 0;
    std::uint64_t time_ = 1, sent_time_ = 0;
    std::vector<Atom> atoms_;
};

}  // namespace waymark::etm3::test
