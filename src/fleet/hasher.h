/// Hashes files and the contents of a plan. Not for cryptographic use: XXH3 with 128 bits.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "waymark/core/types.h"

namespace waymark::fleet {

class Hasher {
public:
    Hasher();
    ~Hasher();
    Hasher(const Hasher&) = delete;
    Hasher& operator=(const Hasher&) = delete;

    void add(Bytes bytes);
    /// Adds a text with its length, so that texts in a sequence cannot run into each other.
    void add(std::string_view text);
    void add(std::uint64_t number);
    /// 32 hexadecimal digits.
    [[nodiscard]] std::string text() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace waymark::fleet
