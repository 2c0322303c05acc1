/// Memory of any size that takes only as much room as was written to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace waymark::sink {

/// Bytes by their offset; a byte that was never written is 0. Pages are made when they are first written.
class SparseMemory {
public:
    void put(std::uint64_t at, std::uint8_t byte) { page(at / page_bytes)[at % page_bytes] = byte; }
    [[nodiscard]] std::uint8_t get(std::uint64_t at) const {
        const std::uint64_t number = at / page_bytes;
        if (last_ != nullptr && number == last_number_) return (*last_)[at % page_bytes];
        const auto it = pages_.find(number);
        return it == pages_.end() ? std::uint8_t{0} : (*it->second)[at % page_bytes];
    }
    void clear() {
        pages_.clear();
        last_ = nullptr;
    }

private:
    static constexpr std::size_t page_bytes = 4096;
    using Page = std::array<std::uint8_t, page_bytes>;

    Page& page(std::uint64_t number) {
        if (last_ == nullptr || number != last_number_) {
            auto& one = pages_[number];
            if (!one) one = std::make_unique<Page>();
            last_ = one.get();
            last_number_ = number;
        }
        return *last_;
    }

    std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
    Page* last_ = nullptr;  ///< the page written last
    std::uint64_t last_number_ = 0;
};

}  // namespace waymark::sink
