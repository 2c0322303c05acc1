/// Turns the blocks a thread executed into what its trace unit is told: which waypoints it met, how each came out,
/// where each went, and where execution left what is recorded.
#pragma once

#include <cstdint>
#include <optional>

#include "waymark/record/code.h"
#include "waymark/record/truth.h"
#include "waymark/record/unit.h"

namespace waymark::record {

/// One cycle an instruction, for all threads together: QEMU knows no others.
struct Clock {
    std::uint64_t cycle = 0;
};

class Tracker {
public:
    /// `system`: exception handlers run in what is recorded, not in a kernel that nobody sees.
    explicit Tracker(Clock& clock, bool system = false) : clock_(clock), system_(system) {}

    /// From here on this unit is told; both are borrowed until `detach`. `ranges` may be null.
    void attach(Unit& unit, SourceTruth& truth, RangeWriter* ranges);
    /// The unit is finished. What ran behind the last waypoint stays untraced.
    void detach();
    [[nodiscard]] bool attached() const { return unit_ != nullptr; }

    /// The instruction set at `address` as execution came there tells it, where it does.
    [[nodiscard]] std::optional<isa::Isa> arriving(Address address) const;

    /// Execution reaches `place`: settles how the last waypoint came out.
    void arrive(Place place);
    /// Instructions [first, end) of `code` completed, after `arrive` at the first of them. `stopped`: the next one
    /// began and did not complete.
    void run(const Code& code, std::uint32_t first, std::uint32_t end, bool stopped);
    /// The instruction that completed last made a system call.
    void system_call();
    /// An exception was taken behind what ran last, and its handler is what runs next. `number`: docs/spec/pft.md, 2.5.
    /// `back`: the instruction that would have come instead, where that is known; it tells how the last waypoint came
    /// out.
    void exception(std::uint32_t number, std::optional<Place> back, Place handler);
    /// The processor's state from here on.
    void state(const State& state);
    /// Where execution stands, or the waypoint instruction it stands behind.
    [[nodiscard]] isa::Isa isa() const { return start_.isa; }
    /// The vector by which execution reached a handler without `exception` having told it, if that ever happened.
    [[nodiscard]] std::optional<Address> unknown_vector() const { return unknown_vector_; }
    /// What is executed at the place just reached cannot be recorded, such as the kernel's helpers.
    void leave() { away_ = !pending_; }

private:
    static constexpr std::uint32_t hyp_entry = 3, undefined_instruction = 9, svc = 10, prefetch_abort = 11,
                                   data_abort = 12, irq = 14, fiq = 15;

    void waypoint(bool passed, Place next);
    void resolve(Place place);
    void wait();
    void unseen_exception(Place place);
    void interrupt(std::uint32_t number, std::optional<Place> handler);
    void close(std::uint64_t end, std::uint32_t instructions, std::uint64_t lost_before);
    void begin(Place place);
    [[nodiscard]] Place here() const { return {start_.address + straight_.bytes, start_.isa}; }

    Clock& clock_;
    const bool system_;
    Unit* unit_ = nullptr;
    State state_;
    SourceTruth* truth_ = nullptr;
    RangeWriter* ranges_ = nullptr;

    bool started_ = false;  ///< the unit knows where execution stands
    bool away_ = true;      ///< execution left what is recorded
    Place start_{};         ///< behind the last waypoint
    Straight straight_{};   ///< what ran since
    std::uint32_t straight_count_ = 0;
    bool pending_ = false;  ///< a waypoint instruction behind it, whose outcome is not known yet
    Address pending_address_{};
    isa::Instruction pending_instruction_{};
    Special last_special_ = Special::none;
    bool stopped_ = false;          ///< the next instruction began and did not complete
    std::uint8_t stopped_bytes_{};  ///< its size
    std::optional<Address> unknown_vector_;
};

}  // namespace waymark::record
