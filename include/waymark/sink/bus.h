/// The components between trace sources and trace buffers as models, with their registers: the funnel that joins the
/// sources, and the replicator that gives their trace to two sinks (docs/spec/trace-bus.md, 2 and 3).
///
///     Tmc buffer({});
///     BusFunnel funnel(8, buffer);
///     funnel.write_register(BusFunnel::functl, 3 << 8 | 1U << 2);  // input 2 alone
///     funnel.write(2, TraceId{0x10}, bytes);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/register_value.h"
#include "waymark/core/types.h"
#include "waymark/coresight/sinks.h"
#include "waymark/coresight/trace_id.h"

namespace waymark::sink {

/// A funnel. Trace that comes to a closed input is lost, and counted in `refused_bytes`.
class BusFunnel {
public:
    static constexpr std::uint32_t functl = 0x000, prictl = 0x004;
    static constexpr unsigned most_inputs = 8;
    static constexpr unsigned transfer_bytes = 4;  ///< width of the trace bus
    /// The name of the register at an offset; empty if there is none.
    [[nodiscard]] static std::string_view register_name(std::uint32_t offset);

    /// `inputs` is from 1 to most_inputs. `out` is borrowed. All inputs are closed.
    BusFunnel(unsigned inputs, coresight::BusSink& out);
    BusFunnel(const BusFunnel&) = delete;
    BusFunnel& operator=(const BusFunnel&) = delete;

    /// Writes that the specification calls an error change nothing. Returns the mistake; empty if there is none.
    std::string write_register(std::uint32_t offset, std::uint32_t value);
    [[nodiscard]] std::uint32_t read_register(std::uint32_t offset) const;
    [[nodiscard]] std::vector<RegisterValue> registers() const;

    [[nodiscard]] unsigned inputs() const { return static_cast<unsigned>(waiting_.size()); }
    [[nodiscard]] bool is_open(unsigned input) const { return (functl_ >> input & 1U) != 0; }
    /// Bytes come to an input, and wait for their turn. Precondition: there is such an input.
    void offer(unsigned input, coresight::TraceId id, Bytes bytes);
    /// Makes up to `transfers` transfers of waiting bytes to the output. Returns the number made.
    std::uint64_t pass(std::uint64_t transfers);
    /// `offer`, and everything that waits is passed.
    void write(unsigned input, coresight::TraceId id, Bytes bytes);
    /// Passes everything that waits, and flushes what comes after the funnel.
    void flush();

    [[nodiscard]] std::uint64_t waiting_bytes() const;
    [[nodiscard]] std::uint64_t refused_bytes() const { return refused_; }

private:
    struct Piece {
        coresight::TraceId id;
        std::vector<std::uint8_t> bytes;
    };
    struct Queue {
        std::vector<Piece> pieces;
        std::size_t piece = 0, at = 0;  ///< the next byte
    };
    [[nodiscard]] static bool is_empty(const Queue& queue) { return queue.piece == queue.pieces.size(); }
    [[nodiscard]] unsigned priority(unsigned input) const { return prictl_ >> 3 * input & 7U; }
    /// The input with the next turn; inputs() if nothing waits.
    [[nodiscard]] unsigned next_input() const;
    void transfer(Queue& queue);

    coresight::BusSink& out_;
    std::vector<Queue> waiting_;
    std::uint32_t functl_ = 0x300, prictl_ = 0xfac688;
    unsigned holder_ = most_inputs;  ///< the input of the last transfer
    unsigned held_ = 0;              ///< number of transfers that it may still make before others
    std::uint64_t refused_ = 0;
};

/// A replicator: two outputs, each without the IDs that its filter leaves out.
class BusReplicator final : public coresight::BusSink {
public:
    static constexpr std::uint32_t idfilter0 = 0x000, idfilter1 = 0x004;
    static constexpr unsigned outputs = 2;
    static constexpr unsigned ids_of_a_bit = 16;
    [[nodiscard]] static std::string_view register_name(std::uint32_t offset);

    /// Both are borrowed.
    BusReplicator(coresight::BusSink& first, coresight::BusSink& second) : out_{&first, &second} {}

    /// Returns the mistake; empty if there is none.
    std::string write_register(std::uint32_t offset, std::uint32_t value);
    [[nodiscard]] std::uint32_t read_register(std::uint32_t offset) const;
    [[nodiscard]] std::vector<RegisterValue> registers() const;

    [[nodiscard]] bool passes(unsigned output, coresight::TraceId id) const {
        return (filter_[output] >> id.value / ids_of_a_bit & 1U) == 0;
    }
    void write(coresight::TraceId id, Bytes bytes) override;
    void flush() override;

private:
    std::array<coresight::BusSink*, outputs> out_;
    std::array<std::uint32_t, outputs> filter_{};
};

/// The end of a bus at which nothing is connected.
class NoSink final : public coresight::BusSink {
public:
    void write(coresight::TraceId, Bytes) override {}
    void flush() override {}
};

}  // namespace waymark::sink
