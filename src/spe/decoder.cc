#include "waymark/spe/decoder.h"

#include <array>
#include <bit>
#include <cstring>

#include "record_builder.h"

namespace waymark::spe {

namespace {

std::uint64_t load(const std::uint8_t* at) {
    std::uint64_t value = 0;
    std::memcpy(&value, at, sizeof value);
    if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
    return value;
}

constexpr std::uint8_t no_column = 0xff;

/// The column for the packet of each one-byte header, if there is one.
constexpr std::array<std::uint8_t, 256> header_columns = [] {
    std::array<std::uint8_t, 256> out{};
    out.fill(no_column);
    const auto put = [&](unsigned header, RecordColumn column) { out[header] = static_cast<std::uint8_t>(column); };
    put(0xb0, RecordColumn::pc);
    put(0xb1, RecordColumn::branch_target);
    put(0xb2, RecordColumn::data_virtual);
    put(0xb3, RecordColumn::data_physical);
    put(0xb4, RecordColumn::previous_target);
    put(0x98, RecordColumn::total_latency);
    put(0x99, RecordColumn::issue_latency);
    put(0x9a, RecordColumn::translation_latency);
    put(0x9c, RecordColumn::alternate_issue_latency);
    for (const unsigned header : {0x42U, 0x52U, 0x62U, 0x72U}) put(header, RecordColumn::events);
    for (const unsigned header : {0x48U, 0x49U, 0x4aU}) put(header, RecordColumn::operation);
    for (const unsigned header : {0x43U, 0x53U}) put(header, RecordColumn::data_source);
    put(0x64, RecordColumn::context_el1);
    put(0x65, RecordColumn::context_el2);
    put(0x71, RecordColumn::timestamp);
    return out;
}();

constexpr unsigned bit(RecordColumn column) { return 1U << static_cast<unsigned>(column); }

/// Positions of headers, padding and payloads in a record. A record with the same bytes at `mask` is parsed by copying
/// its payloads: only those bytes decide where packets begin.
struct Shape {
    static constexpr unsigned max_bytes = 128;
    /// Bytes of input that `matches` and `put` may touch.
    static constexpr unsigned reach = max_bytes + 8;

    unsigned bytes = 0, words = 0;
    std::uint16_t present = 0;
    OperationClass operation_class{};
    std::array<std::uint64_t, max_bytes / 8> mask{}, want{};
    // For each column, the offset and size of its payload; absent payloads have no bits.
    std::array<std::uint8_t, column_count> offset{};
    std::array<std::uint64_t, column_count> bits{};

    [[nodiscard]] WM_INLINE bool matches(const std::uint8_t* at) const {
        if (words == 0) [[unlikely]]
            return false;  // nothing learnt yet
        // A fixed number of words, which is usually enough, without a branch between them. Bytes after the record are
        // masked.
        constexpr unsigned usual = 8;
        std::uint64_t wrong = 0;
        for (unsigned i = 0; i < usual; ++i) wrong |= (load(at + 8 * i) ^ want[i]) & mask[i];
        for (unsigned i = usual; i < words; ++i) wrong |= (load(at + 8 * i) ^ want[i]) & mask[i];
        return wrong == 0;
    }
    [[nodiscard]] WM_INLINE std::uint64_t get(RecordColumn column, const std::uint8_t* at) const {
        const auto c = static_cast<std::size_t>(column);
        return load(at + offset[c]) & bits[c];
    }

    /// Learns the shape of the record at the start of `input`. Returns false unless the record is complete, short,
    /// without defects, and contains only packets with one-byte headers that fill columns.
    bool learn(Bytes input) {
        unsigned at = 0;
        std::uint8_t header = 0;
        while (header != End::info.value && header != Timestamp::info.value) {
            if (at >= max_bytes || at >= input.size()) return false;
            header = input[at];
            expect(at++, header);
            if (header == Padding::info.value || header == End::info.value) continue;
            const std::uint8_t column = header_columns[header];
            const unsigned size = payload_bytes(header);
            if (column == no_column || (present >> column & 1U) != 0 || at + size > max_bytes ||
                at + size > input.size())
                return false;
            present = static_cast<std::uint16_t>(present | 1U << column);
            if (column == static_cast<unsigned>(RecordColumn::operation))
                operation_class = static_cast<OperationClass>(header & 3U);
            offset[column] = static_cast<std::uint8_t>(at);
            bits[column] = ~std::uint64_t{0} >> (64 - 8 * size);
            at += size;
        }
        bytes = at;
        words = (at + 7) / 8;
        const unsigned data =
            bit(RecordColumn::data_virtual) | bit(RecordColumn::data_physical) | bit(RecordColumn::data_source);
        const bool odd =
            (present & bit(RecordColumn::operation)) != 0 &&
            (((present & data) != 0 && operation_class != OperationClass::load_store) ||
             ((present & bit(RecordColumn::branch_target)) != 0 && operation_class != OperationClass::branch));
        return (present & bit(RecordColumn::pc)) != 0 && !odd;
    }

    /// The byte that every record of this shape has at `at`, or -1.
    [[nodiscard]] int fixed(unsigned at) const {
        if ((mask[at / 8] >> at % 8 * 8 & 0xffU) == 0) return -1;
        return static_cast<int>(want[at / 8] >> at % 8 * 8 & 0xffU);
    }

private:
    void expect(unsigned at, std::uint8_t byte) {
        mask[at / 8] |= std::uint64_t{0xff} << at % 8 * 8;
        want[at / 8] |= std::uint64_t{byte} << at % 8 * 8;
    }
};

/// Copies payloads to row `i`.
WM_INLINE void put(RecordColumns& out, std::size_t i, const Shape& shape, const std::uint8_t* at, Offset first) {
    const auto u16 = [&](RecordColumn column) { return static_cast<std::uint16_t>(shape.get(column, at)); };
    const auto u32 = [&](RecordColumn column) { return static_cast<std::uint32_t>(shape.get(column, at)); };
    out.first[i] = first.value;
    out.pc[i] = shape.get(RecordColumn::pc, at);
    out.branch_target[i] = shape.get(RecordColumn::branch_target, at);
    out.data_virtual[i] = shape.get(RecordColumn::data_virtual, at);
    out.data_physical[i] = shape.get(RecordColumn::data_physical, at);
    out.previous_target[i] = shape.get(RecordColumn::previous_target, at);
    out.events[i] = shape.get(RecordColumn::events, at);
    out.timestamp[i] = shape.get(RecordColumn::timestamp, at);
    out.bytes[i] = shape.bytes;
    out.context_el1[i] = u32(RecordColumn::context_el1);
    out.context_el2[i] = u32(RecordColumn::context_el2);
    out.present[i] = shape.present;
    out.total_latency[i] = u16(RecordColumn::total_latency);
    out.issue_latency[i] = u16(RecordColumn::issue_latency);
    out.translation_latency[i] = u16(RecordColumn::translation_latency);
    out.alternate_issue_latency[i] = u16(RecordColumn::alternate_issue_latency);
    out.data_source[i] = u16(RecordColumn::data_source);
    out.defects[i] = 0;
    out.operation_class[i] = static_cast<std::uint8_t>(shape.operation_class);
    out.operation_type[i] = static_cast<std::uint8_t>(shape.get(RecordColumn::operation, at));
}

/// The shapes found so far.
class Shapes {
public:
    /// The shape of the record that begins at `at`, or null if it must be parsed packet by packet.
    WM_INLINE const Shape* find(const std::uint8_t* at, std::size_t size) {
        if (size < Shape::reach) [[unlikely]]
            return nullptr;
        std::uint8_t& guess = guess_[static_cast<std::uint8_t>(at[probe_[0]] + 29U * at[probe_[1]])];
        if (shape_[guess].matches(at)) [[likely]]
            return &shape_[guess];
        for (unsigned i = 0; i < count_; ++i)
            if (shape_[i].matches(at)) {
                guess = static_cast<std::uint8_t>(i);
                return &shape_[i];
            }
        return learn({at, size});
    }

private:
    static constexpr unsigned most = 32;

    const Shape* learn(Bytes input) {
        Shape shape;
        if (!shape.learn(input)) return nullptr;
        const bool room = count_ < most;
        const unsigned index = room ? count_++ : oldest_++ % most;
        shape_[index] = shape;
        if (room && std::has_single_bit(count_))
            choose_probes();  // rarely, since it takes as long as thousands of records
        return &shape_[index];
    }

    /// Chooses the two bytes of a record that distinguish most shapes.
    void choose_probes() {
        std::array<std::uint8_t, 2> best{};
        unsigned most_apart = 0;
        for (unsigned p = 0; p < Shape::max_bytes; ++p)
            if (const unsigned apart = pairs_apart(p, best[0], false); apart > most_apart) {
                most_apart = apart;
                best[0] = static_cast<std::uint8_t>(p);
            }
        most_apart = 0;
        for (unsigned p = 0; p < Shape::max_bytes; ++p)
            if (const unsigned apart = pairs_apart(p, best[0], true); apart > most_apart) {
                most_apart = apart;
                best[1] = static_cast<std::uint8_t>(p);
            }
        probe_ = best;
    }
    [[nodiscard]] unsigned pairs_apart(unsigned p, unsigned other, bool with_other) const {
        unsigned apart = 0;
        const auto differ = [&](unsigned at, unsigned i, unsigned j) {
            const int a = shape_[i].fixed(at), b = shape_[j].fixed(at);
            return a >= 0 && b >= 0 && a != b;
        };
        for (unsigned i = 0; i < count_; ++i)
            for (unsigned j = 0; j < i; ++j) apart += differ(p, i, j) || (with_other && differ(other, i, j));
        return apart;
    }

    std::array<Shape, most> shape_{};
    unsigned count_ = 0, oldest_ = 0;
    std::array<std::uint8_t, 2> probe_{};
    std::array<std::uint8_t, 256> guess_{};  // by the bytes at probe_: the shape that matched last
};

}  // namespace

class Decoder::Machine {
public:
    Machine(RecordSink& out, Start start) : builder_(out, start), parser_(builder_) {}

    void feed(Bytes bytes) {
        while (!bytes.empty()) {
            if (builder_.between_records() && parser_.pending() == parser_.offset()) {
                bytes = take_known(bytes);
                if (bytes.empty()) return;
            }
            builder_.resume();
            bytes = parser_.feed(bytes);
        }
    }
    void leave(bool jump, Start next) {
        if (jump)
            parser_.reset();
        else
            parser_.finish();
        builder_.leave(parser_.offset(), jump, next);
    }
    void flush() { builder_.flush(); }
    const Totals& totals() {
        builder_.totals().bytes = parser_.offset().value;
        return builder_.totals();
    }

private:
    /// Handles records of known shapes, and padding between them, beginning between records; returns the rest, which
    /// also begins between records.
    Bytes take_known(Bytes bytes) {
        const std::uint8_t* at = bytes.data();
        const std::uint8_t* const end = at + bytes.size();
        const Offset base = parser_.offset();
        const auto here = [&] { return base + static_cast<std::uint64_t>(at - bytes.data()); };
        while (at != end) {
            if (*at == 0) {
                const std::uint8_t* const from = at;
                while (at != end && *at == 0) ++at;
                builder_.totals().padding_bytes += static_cast<std::uint64_t>(at - from);
                continue;
            }
            const Shape* const shape = shapes_.find(at, static_cast<std::size_t>(end - at));
            if (shape == nullptr) break;
            RecordColumns& columns = builder_.columns();
            put(columns, columns.size++, *shape, at, here());
            at += shape->bytes;
            builder_.pushed(shape->bytes);
        }
        parser_.advance(static_cast<std::uint64_t>(at - bytes.data()));
        return bytes.subspan(static_cast<std::size_t>(at - bytes.data()));
    }

    RecordBuilder builder_;
    Parser<RecordBuilder> parser_;
    Shapes shapes_;
};

Decoder::Decoder(RecordSink& out, Start start) : machine_(std::make_unique<Machine>(out, start)) {}
Decoder::~Decoder() = default;
void Decoder::feed(Bytes bytes) { machine_->feed(bytes); }
void Decoder::reset(Start start) { machine_->leave(true, start); }
void Decoder::finish() {
    machine_->leave(false, Start::record);
    machine_->flush();
}
const Totals& Decoder::totals() const { return machine_->totals(); }

}  // namespace waymark::spe
