/// Decoded elements as plain values: batches flattened into a list that can be compared, printed and predicted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/flow/flow.h"

namespace waymark::synthetic {

enum class Kind : std::uint8_t {
    range,
    gap,
    trace_on,
    context,
    timestamp,
    exception,
    exception_return,
    no_memory,
    trigger,
    cycles,
    inconsistency,
    atoms,
    reached,
    untraced,
    mark,
};

/// One element of the flow. The meaningful fields depend on the kind; all others are 0.
struct Element {
    static constexpr std::uint64_t absent = ~std::uint64_t{0};

    Kind kind{};
    bool taken{};                           ///< range
    std::uint32_t cycles{flow::no_cycles};  ///< range, trace_on, exception, timestamp, cycles
    std::uint64_t offset{};                 ///< of its packet
    flow::Block block{};                    ///< range
    /// gap: first, end, reason. trace_on: reason. context: NS, HYP, Context ID, VMID. timestamp: value, known,
    /// frequency changed. exception: number, preferred return, vector. no_memory: address. inconsistency: conflict,
    /// found, expected. atoms: taken, not taken. reached: address. What is not known is `absent`.
    std::uint64_t a{}, b{}, c{}, d{};

    friend bool operator==(const Element&, const Element&) = default;
};

[[nodiscard]] Element range_element(std::uint64_t offset, const flow::Block& block, bool taken,
                                    std::uint32_t cycles = flow::no_cycles);
[[nodiscard]] Element event_element(std::uint64_t offset, const flow::What& what);

[[nodiscard]] std::string_view name(Kind kind);
/// One line, without a line end.
[[nodiscard]] std::string to_text(const Element& element);

/// The elements that are no ranges. If ranges are counted, a range with a count of 0 stands for all ranges between two
/// events.
[[nodiscard]] std::vector<Element> events_of(std::vector<Element> elements);

/// The first difference between two lists, with a few lines of each around it; empty if they are equal.
[[nodiscard]] std::string difference(const std::vector<Element>& found, const std::vector<Element>& expected,
                                     std::string_view found_name = "found",
                                     std::string_view expected_name = "expected");

/// Keeps all delivered elements.
class ElementSink final : public flow::Sink {
public:
    void consume(const flow::Batch& batch) override;
    [[nodiscard]] const std::vector<Element>& elements() const { return elements_; }
    [[nodiscard]] std::vector<Element> take() { return std::move(elements_); }

private:
    std::vector<Element> elements_;
};

}  // namespace waymark::synthetic
