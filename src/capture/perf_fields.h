/// Reads the fields of perf.data: numbers and texts, and the header of a record.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "waymark/capture/perf_data.h"
#include "waymark/core/types.h"

namespace waymark::capture::perf {

inline constexpr std::uint64_t record_header_bytes = 8;
inline constexpr std::uint32_t simpleperf_types = 32768;  // and above
inline constexpr std::uint64_t max_record_bytes = std::uint64_t{16}
                                                  << 20;  // for simpleperf, except for split records, which are longer

/// Reads little-endian numbers; bytes beyond the end are 0.
class RecordFields {
public:
    explicit RecordFields(Bytes bytes) : bytes_(bytes) {}
    [[nodiscard]] std::uint64_t number(std::uint64_t offset, unsigned size) const {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < size && offset + i < bytes_.size(); ++i)
            value |= std::uint64_t{bytes_[static_cast<std::size_t>(offset + i)]} << (8 * i);
        return value;
    }
    [[nodiscard]] std::uint64_t u64(std::uint64_t offset) const { return number(offset, 8); }
    [[nodiscard]] std::uint32_t u32(std::uint64_t offset) const {
        return static_cast<std::uint32_t>(number(offset, 4));
    }
    [[nodiscard]] std::uint16_t u16(std::uint64_t offset) const {
        return static_cast<std::uint16_t>(number(offset, 2));
    }
    [[nodiscard]] std::uint8_t u8(std::uint64_t offset) const { return static_cast<std::uint8_t>(number(offset, 1)); }
    /// The text up to a zero byte.
    [[nodiscard]] std::string text(std::uint64_t offset) const {
        const Bytes rest = from(offset);
        const auto end = std::find(rest.begin(), rest.end(), std::uint8_t{0});
        return {rest.begin(), end};
    }
    [[nodiscard]] Bytes from(std::uint64_t offset) const {
        return bytes_.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(offset, bytes_.size())));
    }
    [[nodiscard]] std::vector<std::uint8_t> copy(std::uint64_t offset, std::uint64_t size) const {
        const Bytes rest = from(offset);
        const Bytes part = rest.first(static_cast<std::size_t>(std::min<std::uint64_t>(size, rest.size())));
        return {part.begin(), part.end()};
    }
    [[nodiscard]] std::uint64_t size() const { return bytes_.size(); }

private:
    Bytes bytes_;
};

/// Type and size of a record.
struct RecordHeader {
    std::uint32_t type{};
    std::uint16_t misc{};
    std::uint32_t size{};
    [[nodiscard]] bool misc_bit(unsigned bit) const { return (misc >> bit & 1U) != 0; }
    [[nodiscard]] Type kind() const { return static_cast<Type>(type); }
    /// Whether the type belongs to the kernel, perf or simpleperf (known here or not) and the size fits a header.
    [[nodiscard]] bool possible() const {
        return size >= record_header_bytes && size <= max_record_bytes &&
               ((type >= 1 && type < 32) || (type >= 64 && type < 128) ||
                (type >= simpleperf_types && type < simpleperf_types + 32));
    }
};
/// The header at the beginning of the bytes.
inline RecordHeader header_of(Bytes bytes) {
    const RecordFields f(bytes);
    // Records of simpleperf have a size of 32 bits; its high half comes first.
    if (f.u32(0) >= simpleperf_types) return {f.u32(0), 0, std::uint32_t{f.u16(4)} << 16 | f.u16(6)};
    return {f.u32(0), f.u16(4), f.u16(6)};
}

}  // namespace waymark::capture::perf
