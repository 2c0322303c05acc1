// A unit that takes waypoints one at a time.
#include "waymark/flow/unit.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace waymark::flow {
namespace {

class Notes final : public Unit {
public:
    std::vector<std::string> lines;
    std::size_t full_from = ~std::size_t{0};  ///< waypoints from this one on are lost

    void context(const Context&) override {}
    void start(Place, std::uint64_t) override {}
    void waypoint(const Straight& before, const RetiredWaypoint& w, std::uint64_t cycle) override {
        if (lines.size() >= full_from) ++lost_;
        lines.push_back(std::to_string(before.bytes) + "/" + std::to_string(before.last_bytes) + " " +
                        std::to_string(w.address.value) + (w.passed ? " E " : " N ") +
                        std::to_string(w.next.address.value) + " " + std::string(isa::name(w.next.isa)) + " @" +
                        std::to_string(cycle));
    }
    void exception(const Straight&, ExceptionClass, std::optional<Place>, std::uint64_t) override {}
    void wait(std::uint64_t) override {}
    void resume(Place, std::uint64_t) override {}
    void finish() override {}
    void program(const UnitOptions&, std::uint64_t) override {}
    [[nodiscard]] std::uint64_t untraced() const override { return 0; }
    [[nodiscard]] std::uint64_t lost() const override { return lost_; }
    [[nodiscard]] bool overflowing() const override { return lost_ != 0; }
    [[nodiscard]] bool may_lose() const override { return true; }

private:
    std::uint64_t lost_ = 0;
};

TEST(Unit, TakesManyWaypointsOneByOne) {
    isa::Instruction branch;
    branch.waypoint = isa::Waypoint::indirect;
    branch.bytes = 4;
    constexpr std::uint64_t high = 0xffff'0000'0000'0000;  // addresses have 64 bits
    const std::array<RetiredBlock, 3> retired{
        RetiredBlock{&branch, 3, {high + 108}, {high + 200}, Isa::a64, Isa::a64, 4, true},
        RetiredBlock{&branch, 5, {high + 200}, {40}, Isa::a64, Isa::t32, 0, true},
        RetiredBlock{&branch, 7, {44}, {48}, Isa::t32, Isa::t32, 2, false}};
    const std::vector<std::string> all{"8/4 18446462598732841068 E 18446462598732841160 A64 @3",
                                       "0/0 18446462598732841160 E 40 T32 @5", "4/2 44 N 48 T32 @7"};
    Notes unit;
    EXPECT_EQ(unit.waypoints({{high + 100}, Isa::a64}, retired), 3U);
    EXPECT_EQ(unit.lines, all);
    // It stops after the first waypoint with a loss.
    Notes full;
    full.full_from = 1;
    EXPECT_EQ(full.waypoints({{high + 100}, Isa::a64}, retired), 2U);
    EXPECT_EQ(full.lines, (std::vector<std::string>{all[0], all[1]}));
}

}  // namespace
}  // namespace waymark::flow
