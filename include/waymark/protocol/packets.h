/// Packets of any protocol, for code that lists or counts them: names, fields, meaning, places. This is not the fast
/// path: a decoder reads packets through its protocol's own parser.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/core/gap.h"
#include "waymark/core/packet_parser.h"
#include "waymark/core/stream_reader.h"
#include "waymark/core/types.h"

namespace waymark::protocol {

using wire::Extent;

using Reader = StreamReader;

/// Takes the fields of a packet or register, in the order of its description.
class FieldVisitor {
public:
    virtual ~FieldVisitor() = default;
    virtual void number(std::string_view name, std::uint64_t value) = 0;
    virtual void text(std::string_view name, std::string_view value) = 0;
};

/// Prints fields as text, like wire::Printer: `target=0x17/1 cycles=12`.
class FieldsText final : public FieldVisitor {
public:
    void number(std::string_view name, std::uint64_t value) override;
    void text(std::string_view name, std::string_view value) override;
    [[nodiscard]] std::string take() { return std::move(out_); }

private:
    std::string out_;
};

/// One packet. Valid during the call that passes it.
class PacketView {
public:
    virtual ~PacketView() = default;
    /// The name as in the specification, in capitals: `I-SYNC`.
    [[nodiscard]] virtual std::string_view name() const = 0;
    /// The fields as text: `target=0x17/1 cycles=12`.
    [[nodiscard]] virtual std::string fields_text() const = 0;
    virtual void visit(FieldVisitor& visitor) const = 0;
    /// Its meaning after the packets before it: `to 0xc0010ef4 T32, IRQ`. Empty if the fields are enough.
    [[nodiscard]] virtual const std::string& meaning() const = 0;
};

/// Takes every packet and gap of a stream, in order.
class PacketListener {
public:
    virtual ~PacketListener() = default;
    virtual void packet(const PacketView& packet, Extent at) = 0;
    virtual void gap(const Gap& gap) = 0;
};

/// The contents of a stream, without a program.
struct Survey {
    struct Gaps {
        std::uint64_t times{}, bytes{};
        Offset first{};  ///< in the buffer
    };
    std::map<std::string, std::uint64_t> packets{};  ///< by name
    std::uint64_t bytes_in_packets{};
    std::array<Gaps, gap_reasons> gaps{};
    std::optional<Offset> first_sync{};  ///< Of the first packet at which a decoder can begin; position in the buffer.
    std::optional<std::uint64_t> first_timestamp{}, last_timestamp{};
    /// Packets that give the address again (Words::syncs), by the reason for which they were sent. Empty if a protocol
    /// does not distinguish reasons.
    std::vector<std::pair<std::string, std::uint64_t>> syncs{};
    /// Packets that give the exception level or security state, by that state: `EL1 Non-secure AArch64`.
    std::map<std::string, std::uint64_t> levels{};
    /// Problems of the stream, except gaps: sentences without the name of the source.
    std::vector<std::string> troubles{};

    /// Counts a packet.
    void add(std::string_view name, std::uint64_t bytes);
};

/// Counts the packets of a stream.
class Surveyor : public Reader {
public:
    /// The counts so far.
    [[nodiscard]] virtual Survey survey() const = 0;
};

}  // namespace waymark::protocol
