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

/// Which column the packet of each one-byte header fills, if any.
constexpr std::array<std::uint8_t, 256> header_columns = [] {
    std::array<std::uint8_t, 256> out{};
    out.fill(no_column);
    const auto put = [&](unsigned header, Column column) { out[header] = static_cast<std::uint8_t>(column); };
    put(0xb0, Column::pc);
    put(0xb1, Column::branch_target);
    put(0xb2, Column::data_virtual);
    put(0xb3, Column::data_physical);
    put(0xb4, Column::previous_target);
    put(0x98, Column::total_latency);
    put(0x99, Column::issue_latency);
    put(0x9a, Column::translation_latency);
    put(0x9c, Column::alternate_issue_latency);
    for (const unsigned header : {0x42U, 0x52U, 0x62U, 0x72U}) put(header, Column::events);
    for (const unsigned header : {0x48U, 0x49U, 0x4aU}) put(header, Column::operation);
    for (const unsigned header : {0x43U, 0x53U}) put(header, Column::data_source);
    put(0x64, Column::context_el1);
    put(0x65, Column::context_el2);
    put(0x71, Column::timestamp);
    return out;
}();

constexpr unsigned bit(Column column) { return 1U << static_cast<unsigned>(column); }

/// Where headers, padding and payloads stand in a record. A record with the same bytes at `mask` is parsed by copying
/// its payloads: nothing else decides where packets begin.
struct Shape {
    static constexpr unsigned max_bytes = 128, block_bytes = 32;

    struct Field {
        std::uint8_t offset, column;
        std::uint64_t mask;
    };
    unsigned bytes = 0, blocks = 0, fields = 0;
    std::uint16_t present = 0;
    OperationClass operation_class{};
    std::array<std::uint64_t, max_bytes / 8> mask{}, want{};
    std::array<Field, column_count> field{};

    [[nodiscard]] WM_INLINE bool matches(const std::uint8_t* at) const {
        for (unsigned block = 0; block < blocks; ++block) {
            std::uint64_t differs = 0;
            for (unsigned i = 4 * block; i < 4 * block + 4; ++i) differs |= (load(at + 8 * i) ^ want[i]) & mask[i];
            if (differs != 0) return false;
        }
        return true;
    }

    /// Learns the shape of the record at the start of `input`. False unless it is there as a whole, short, has no
    /// defect, and holds only packets with one-byte headers that fill columns.
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
            if (column == static_cast<unsigned>(Column::operation))
                operation_class = static_cast<OperationClass>(header & 3U);
            field[fields++] = {static_cast<std::uint8_t>(at), column, ~std::uint64_t{0} >> (64 - 8 * size)};
            at += size;
        }
        bytes = at;
        blocks = (at + block_bytes - 1) / block_bytes;
        const unsigned data = bit(Column::data_virtual) | bit(Column::data_physical) | bit(Column::data_source);
        const bool odd = (present & bit(Column::operation)) != 0 &&
                         (((present & data) != 0 && operation_class != OperationClass::load_store) ||
                          ((present & bit(Column::branch_target)) != 0 && operation_class != OperationClass::branch));
        return (present & bit(Column::pc)) != 0 && !odd;
    }

private:
    void expect(unsigned at, std::uint8_t byte) {
        mask[at / 8] |= std::uint64_t{0xff} << at % 8 * 8;
        want[at / 8] |= std::uint64_t{byte} << at % 8 * 8;
    }
};

/// Payloads → row `i`.
WM_INLINE void put(Columns& out, std::size_t i, const Shape& shape, const std::uint8_t* at, Offset first) {
    std::array<std::uint64_t, column_count> value{};
    for (unsigned f = 0; f < shape.fields; ++f)
        value[shape.field[f].column] = load(at + shape.field[f].offset) & shape.field[f].mask;
    const auto of = [&](Column column) { return value[static_cast<std::size_t>(column)]; };
    out.first[i] = first.value;
    out.pc[i] = of(Column::pc);
    out.branch_target[i] = of(Column::branch_target);
    out.data_virtual[i] = of(Column::data_virtual);
    out.data_physical[i] = of(Column::data_physical);
    out.previous_target[i] = of(Column::previous_target);
    out.events[i] = of(Column::events);
    out.timestamp[i] = of(Column::timestamp);
    out.bytes[i] = shape.bytes;
    out.context_el1[i] = static_cast<std::uint32_t>(of(Column::context_el1));
    out.context_el2[i] = static_cast<std::uint32_t>(of(Column::context_el2));
    out.present[i] = shape.present;
    out.total_latency[i] = static_cast<std::uint16_t>(of(Column::total_latency));
    out.issue_latency[i] = static_cast<std::uint16_t>(of(Column::issue_latency));
    out.translation_latency[i] = static_cast<std::uint16_t>(of(Column::translation_latency));
    out.alternate_issue_latency[i] = static_cast<std::uint16_t>(of(Column::alternate_issue_latency));
    out.data_source[i] = static_cast<std::uint16_t>(of(Column::data_source));
    out.defects[i] = 0;
    out.operation_class[i] = static_cast<std::uint8_t>(shape.operation_class);
    out.operation_type[i] = static_cast<std::uint8_t>(of(Column::operation));
}

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
    static constexpr unsigned max_shapes = 16;

    /// Records of known shapes, and padding between them, from a place between records; gives back the rest, which
    /// begins between records too.
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
            const Shape* const shape = find(at, static_cast<std::size_t>(end - at));
            if (shape == nullptr) break;
            Columns& columns = builder_.columns();
            put(columns, columns.size++, *shape, at, here());
            at += shape->bytes;
            builder_.pushed(shape->bytes);
        }
        parser_.advance(static_cast<std::uint64_t>(at - bytes.data()));
        return bytes.subspan(static_cast<std::size_t>(at - bytes.data()));
    }

    WM_INLINE const Shape* find(const std::uint8_t* at, std::size_t size) {
        if (size < Shape::max_bytes + 8) [[unlikely]]
            return nullptr;
        unsigned index = last_;
        for (unsigned tried = 0; tried < shapes_; ++tried) {
            if (shape_[index].matches(at)) [[likely]] {
                last_ = index;
                return &shape_[index];
            }
            index = index + 1 == shapes_ ? 0 : index + 1;
        }
        return learn({at, size});
    }
    const Shape* learn(Bytes input) {
        Shape shape;
        if (!shape.learn(input)) return nullptr;
        if (shapes_ < max_shapes)
            last_ = shapes_++;
        else
            last_ = (last_ + 1) % max_shapes;
        shape_[last_] = shape;
        return &shape_[last_];
    }

    RecordBuilder builder_;
    Parser<RecordBuilder> parser_;
    std::array<Shape, max_shapes> shape_{};
    unsigned shapes_ = 0, last_ = 0;  // how many; the one found last
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
