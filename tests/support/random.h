/// Random numbers for generated programs and executions: small, fast, and the same everywhere for the same seed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace waymark::synthetic {

/// SplitMix64.
class Random {
public:
    explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

    constexpr std::uint64_t operator()() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
        z = (z ^ z >> 27) * 0x94d049bb133111ebU;
        return z ^ z >> 31;
    }
    /// 0 to n - 1; n is not 0.
    constexpr std::uint32_t below(std::uint32_t n) {
        return static_cast<std::uint32_t>(((*this)() >> 32) * std::uint64_t{n} >> 32);
    }
    /// True in `n` of 10,000 cases.
    constexpr bool chance(std::uint32_t n) { return n != 0 && below(10000) < n; }
    constexpr bool half() { return ((*this)() >> 63) != 0; }

private:
    std::uint64_t state_;
};

/// One element of a list.
template <class T, std::size_t N>
const T& pick(Random& random, const T (&list)[N]) {
    return list[random.below(N)];
}

}  // namespace waymark::synthetic
