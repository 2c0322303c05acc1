/// Cache lines that several threads use, at least one of which writes: whether they touch the same bytes (true sharing)
/// or only the same line (false sharing). There are two passes over the samples. The first finds candidate lines, in
/// constant memory; the second keeps the accesses to them.
///
/// A sample shows where an access begins, not how wide it is: accesses at different offsets may overlap.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "waymark/analysis/key_index.h"
#include "waymark/analysis/samples.h"

namespace waymark::analysis {

/// Who accesses a line: a thread, or a CPU if no thread is known.
struct Accessor {
    static constexpr std::uint32_t cpu_flag = 0x80000000, unknown = 0xfffffffe;
    std::uint32_t value = unknown;
    [[nodiscard]] bool is_cpu() const { return value != unknown && (value & cpu_flag) != 0; }
    [[nodiscard]] std::uint32_t number() const { return value & ~cpu_flag; }
    friend auto operator<=>(const Accessor&, const Accessor&) = default;
};

/// A cache line: physical if samples have physical addresses, otherwise in an address space.
struct LineKey {
    std::uint64_t line{};  ///< address of its first byte
    std::uint32_t pid{};   ///< for virtual lines the process; `nobody`: the kernel, or not known
    bool physical{};
    [[nodiscard]] std::uint64_t hash() const { return mix(line, std::uint64_t{pid} << 1 | (physical ? 1U : 0U)); }
    friend auto operator<=>(const LineKey&, const LineKey&) = default;
};

/// First pass: finds lines with more than one accessor and a store. Has false positives, but no false negatives.
class LineCandidates final : public SampleSink {
public:
    /// `line_bytes` is a power of two.
    explicit LineCandidates(std::uint32_t line_bytes);
    void consume(const SampleBatch& batch) override;
    [[nodiscard]] std::unique_ptr<SampleSink> fork() const override {
        return std::make_unique<LineCandidates>(line_bytes_);
    }
    void join(SampleSink& fork) override;

    [[nodiscard]] bool candidate(const LineKey& key) const {
        const std::size_t at = key.hash() % cells;
        return owner_[at] == many && stored_[at] != 0;
    }
    [[nodiscard]] std::uint32_t line_bytes() const { return line_bytes_; }
    [[nodiscard]] std::uint64_t accesses() const { return accesses_; }
    /// Number of memory operations without an address.
    [[nodiscard]] std::uint64_t without_address() const { return without_address_; }
    [[nodiscard]] std::uint64_t without_accessor() const { return without_accessor_; }

private:
    static constexpr std::size_t cells = 1 << 22;
    static constexpr std::uint32_t nobody = 0, many = 0xffffffff;
    std::uint32_t line_bytes_;
    std::vector<std::uint32_t> owner_ = std::vector<std::uint32_t>(cells, nobody);  // accessor plus 1
    std::vector<std::uint8_t> stored_ = std::vector<std::uint8_t>(cells, 0);
    std::uint64_t accesses_ = 0, without_address_ = 0, without_accessor_ = 0;
};

/// Accesses of one accessor to one place of a line from one program address.
struct LineAccess {
    Accessor accessor;
    std::uint32_t offset{}, mapping{};
    std::uint64_t pc{};
    bool store{};                      ///< a store or an atomic operation
    std::uint64_t samples{}, total{};  ///< latency in cycles
    std::uint64_t from_other{};        ///< samples whose data came from another core's cache, by event or data source
    friend auto operator<=>(const LineAccess&, const LineAccess&) = default;
};

struct SharedLine {
    enum class Kind : std::uint8_t {
        false_sharing,  ///< no other accessor touches an offset that one writes
        mixed,
        true_sharing,  ///< several accessors touch every offset that is written
    };
    LineKey key;
    Kind kind{};
    std::uint64_t loads{}, stores{}, total{}, from_other{};
    /// Samples at offsets that no other accessor writes, while another accessor writes elsewhere in the line.
    std::uint64_t apart{};
    std::uint32_t accessors{}, writers{};
    std::vector<LineAccess> accesses;  ///< sorted by offset, accessor, stores last, address
    [[nodiscard]] std::uint64_t samples() const { return loads + stores; }
};
[[nodiscard]] std::string_view name(SharedLine::Kind kind);

/// Second pass. `candidates` is borrowed.
class Sharing final : public SampleSink {
public:
    static constexpr std::size_t most_lines = 1 << 20, most_accesses = 1 << 22;
    explicit Sharing(const LineCandidates& candidates) : candidates_(candidates) {}
    void consume(const SampleBatch& batch) override;
    [[nodiscard]] std::unique_ptr<SampleSink> fork() const override { return std::make_unique<Sharing>(candidates_); }
    void join(SampleSink& fork) override;

    /// Lines that are really shared: false sharing first, then sorted by `apart`, samples and address.
    [[nodiscard]] std::vector<SharedLine> lines() const;
    /// Number of samples that did not fit.
    [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

private:
    struct AccessKey {
        std::uint32_t line{}, offset{}, mapping{};
        Accessor accessor;
        std::uint64_t pc{};
        bool store{};
        [[nodiscard]] std::uint64_t hash() const {
            return mix(mix(pc, std::uint64_t{line} << 32 | offset),
                       std::uint64_t{mapping} << 33 | std::uint64_t{accessor.value} << 1 | (store ? 1U : 0U));
        }
        friend bool operator==(const AccessKey&, const AccessKey&) = default;
    };
    struct Sum {
        std::uint64_t samples{}, total{}, from_other{};
    };
    void add(const LineKey& line, AccessKey key, const Sum& sum);

    const LineCandidates& candidates_;
    KeyIndex<LineKey> lines_{most_lines};
    KeyIndex<AccessKey> accesses_{most_accesses};
    std::vector<Sum> sums_;
    std::uint64_t left_out_ = 0;
};

}  // namespace waymark::analysis
