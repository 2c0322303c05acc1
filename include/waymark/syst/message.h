/// One message of MIPI SyS-T: the parts of its bytes (docs/spec/sys-t.md, 2 to 4).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "waymark/core/types.h"

namespace waymark::syst {

/// A GUID, in the order in which its bytes are written.
struct Guid {
    std::array<std::uint8_t, 16> bytes{};
    friend bool operator==(const Guid&, const Guid&) = default;
    friend auto operator<=>(const Guid&, const Guid&) = default;
};
/// Text such as `{494e5443-8a9c-4014-a65a-2f36a36d96e4}`.
[[nodiscard]] std::string to_text(const Guid& guid);
/// Parses a GUID with or without braces, in any case.
[[nodiscard]] std::optional<Guid> guid_from_text(std::string_view text);

enum class MessageType : std::uint8_t {
    build = 0,
    short32 = 1,
    string = 2,
    catalog = 3,
    raw = 6,
    short64 = 7,
    clock = 8,
    structured = 9,
};

struct Location {
    bool is_address{};
    std::uint64_t file_or_address{};
    std::uint32_t line{};
    friend bool operator==(const Location&, const Location&) = default;
};

/// The three short forms have only the type and the value.
struct SystMessage {
    MessageType type{};
    unsigned subtype{}, severity{}, unit{};
    std::optional<unsigned> origin{};  ///< only without GUID
    std::optional<Guid> guid{};
    std::optional<Location> location{};
    std::optional<std::uint64_t> time{};
    std::uint64_t value{};  ///< value of the short forms, and the number of a long build
    bool is_short{};
    bool complete{};  ///< all parts are there, though the payload may be shorter than its length field
    Bytes payload{};  ///< payload of the other forms; borrowed
    std::optional<bool> checksum{};
    std::string problem{};  ///< the contradiction, if there is one; else empty
};

[[nodiscard]] SystMessage parse(Bytes bytes);
/// CRC-32C of Castagnoli.
[[nodiscard]] std::uint32_t crc32c(Bytes bytes);
/// A number, the lowest byte first. Precondition: `bytes` is long enough.
[[nodiscard]] std::uint64_t number_in(Bytes bytes, std::size_t at, unsigned size);

}  // namespace waymark::syst
