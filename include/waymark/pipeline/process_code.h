/// Code of a capture in which several processes ran (capture::AddressSpaces). Decoders request bytes by process, time
/// and address; analyses get the decoded flow with the addresses of the files' places.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "waymark/capture/address_spaces.h"
#include "waymark/flow/flow.h"
#include "waymark/image/memory_map.h"
#include "waymark/isa/isa.h"
#include "waymark/pipeline/changed_code.h"

namespace waymark::pipeline {

/// The code of all processes at all times. Thread-safe.
class ProcessCode {
public:
    /// `places`: the files at their places, and places of code that belongs to no file. `changed` may be null.
    /// `by_hand`: sections of `places` that the user put at their addresses, in order; they are visible where no
    /// mapping is known.
    ProcessCode(std::shared_ptr<const capture::AddressSpaces> spaces, std::shared_ptr<const image::MemoryMap> places,
                std::shared_ptr<const ChangedCode> changed, std::vector<std::uint32_t> by_hand)
        : spaces_(std::move(spaces)),
          places_(std::move(places)),
          changed_(std::move(changed)),
          by_hand_(std::move(by_hand)) {}

    [[nodiscard]] const capture::AddressSpaces& spaces() const { return *spaces_; }

    /// The number of a thread's memory in a period; at least 1. Memories with the same contents share a number.
    [[nodiscard]] std::uint32_t number(std::optional<std::uint32_t> thread, std::uint64_t from, std::uint64_t to) const;
    /// The extent that is mapped at an address; null if none is known. Valid as long as this object.
    [[nodiscard]] const capture::MappedExtent* extent(std::uint32_t number, std::uint64_t address) const;
    /// The bytes at an address. Their section is one of this class, for `placed`: a stretch of addresses with one file,
    /// which memories with different numbers have as a whole or not at all.
    [[nodiscard]] isa::Code at(std::uint32_t number, Address address) const;

    struct Placed {
        std::uint64_t shift{};                   ///< address less place
        std::uint32_t section{};                 ///< of the map of places
        std::uint32_t number{};                  ///< number of a memory that has it; 0: no such section
        std::uint32_t name{};                    ///< name of the extent mapped there
        std::uint32_t other = capture::no_name;  ///< as MappedExtent has it
    };
    /// The place of a section that `at` returned.
    [[nodiscard]] Placed placed(std::uint32_t section) const;
    /// Whether `at` returned a section with `Placed::other`.
    [[nodiscard]] bool any_uncertain() const { return any_uncertain_; }

private:
    struct Space {
        std::vector<capture::MappedExtent> extents;
    };
    [[nodiscard]] const Space& space(std::uint32_t number) const;
    /// The stretch around an address in which nothing is mapped.
    [[nodiscard]] capture::MappedExtent gap(std::uint32_t number, std::uint64_t address) const;

    const std::shared_ptr<const capture::AddressSpaces> spaces_;
    const std::shared_ptr<const image::MemoryMap> places_;
    const std::shared_ptr<const ChangedCode> changed_;
    const std::vector<std::uint32_t> by_hand_;
    struct State {
        std::optional<capture::AddressSpaces::Key> key;
        ChangedCode::State process{}, kernel{};
        friend auto operator<=>(const State&, const State&) = default;
    };
    mutable std::mutex mutex_;
    mutable std::map<State, std::uint32_t> numbers_;
    mutable std::unordered_multimap<std::uint64_t, std::uint32_t> by_contents_;  // hash → number
    mutable std::vector<std::unique_ptr<const Space>> all_;                      // by number, less 1
    mutable std::map<std::pair<std::uint32_t, capture::MappedExtent>, std::uint32_t> sections_;
    mutable std::vector<Placed> placed_;
    mutable std::atomic<bool> any_uncertain_{false};
};

/// The code for one decoder: the code of the thread that its context names.
class ProcessReader final : public isa::CodeReader {
public:
    explicit ProcessReader(std::shared_ptr<const ProcessCode> code) : code_(std::move(code)) {}

    /// Sets the period for the following reads, and the thread to use if the context names none. Not while a decoder
    /// reads.
    void begin(std::uint64_t from, std::uint64_t to, std::optional<std::uint32_t> thread);

    [[nodiscard]] isa::Code at(Address address, const isa::Space& space) const override;
    [[nodiscard]] isa::Space view(const isa::Space& space) const override;
    [[nodiscard]] bool whole_sections() const override { return true; }
    [[nodiscard]] const ProcessCode& code() const { return *code_; }
    /// The thread that runs in the space, by its context or as the thread of the period; nullopt if unknown.
    [[nodiscard]] std::optional<std::uint32_t> thread(const isa::Space& space) const;

private:
    [[nodiscard]] std::uint32_t number(const isa::Space& space) const;

    const std::shared_ptr<const ProcessCode> code_;
    std::uint64_t from_ = 0, to_ = ~std::uint64_t{0};
    std::optional<std::uint32_t> thread_;
    mutable std::mutex mutex_;
    mutable std::map<std::optional<std::uint32_t>, std::uint32_t> numbers_;  // of this time, by thread
};

/// Executed code without a known image.
struct MissingCode {
    std::optional<std::uint32_t> name{};  ///< of AddressSpaces::names; none: no mapping there is known
    std::uint64_t times{};                ///< execution went there
    std::uint64_t outcomes{};             ///< branch outcomes that have no address because of this
    Address first{};
    std::vector<std::uint32_t> threads{};  ///< some of the threads that went there, where there is no name
};

/// Code at an address at which two files were mapped, one after the other, within the time of an AUX range.
struct UncertainCode {
    std::uint32_t name{}, other{};  ///< of AddressSpaces::names: the file assumed to own it, and the other possible one
    std::uint64_t ranges{}, instructions{};
    Address first{};  ///< the lowest address
};

/// Blocks at their places, for all consumers of one decoder. Thread-safe.
class PlacedBlocks {
public:
    explicit PlacedBlocks(const ProcessCode& code) : code_(code) {}
    /// The same blocks at their places. Valid as long as this object.
    [[nodiscard]] std::span<const flow::Block> of(std::span<const flow::Block> blocks);

private:
    const ProcessCode& code_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<flow::Block[]>> arrays_;  // the last is in use
    std::size_t room_ = 0, size_ = 0;
};

/// Passes the decoder's output to a sink, with addresses at the places of files and the number of the thread as Context
/// ID, and counts code without images.
class ProcessSink final : public flow::Sink {
public:
    /// Everything is borrowed. If `moves` is false, the sink receives addresses and contexts unchanged.
    ProcessSink(const ProcessReader& reader, flow::Sink& sink, bool moves);

    void consume(const flow::Batch& batch) override;
    [[nodiscard]] bool counts_suffice() const override { return sink_->counts_suffice(); }
    [[nodiscard]] bool wants_ways() const override { return sink_->wants_ways(); }
    void take_counts(const flow::EdgeCounts& counts) override;
    [[nodiscard]] bool wants_cycles_in_ranges() const override { return sink_->wants_cycles_in_ranges(); }
    [[nodiscard]] flow::Split split() const override { return sink_->split(); }
    [[nodiscard]] std::unique_ptr<flow::Sink> fork() const override;
    void begin_at(const flow::Context& context) override;
    void join(flow::Sink& fork) override;

    /// Missing code, the most frequent first.
    [[nodiscard]] std::vector<MissingCode> missing() const;
    [[nodiscard]] std::vector<UncertainCode> uncertain() const;

private:
    ProcessSink(const ProcessReader& reader, std::unique_ptr<flow::Sink> sink, bool moves,
                std::shared_ptr<PlacedBlocks> blocks);
    [[nodiscard]] std::uint32_t number();
    [[nodiscard]] Address place(Address address);
    void see(const flow::Event& event);
    void see(const flow::Block& block, std::uint64_t times);
    void move(flow::What& what);
    [[nodiscard]] flow::Context of_thread(flow::Context context) const;

    const ProcessReader& reader_;
    flow::Sink* sink_;
    std::unique_ptr<flow::Sink> own_;  // of a fork
    const bool moves_;
    std::shared_ptr<PlacedBlocks> blocks_;
    flow::Context context_{};
    std::optional<std::uint32_t> number_;  // of the context; none: not yet requested
    std::map<std::optional<std::uint32_t>, MissingCode> missing_;
    MissingCode* now_ = nullptr;  // the missing code that executes now
    std::map<std::pair<std::uint32_t, std::uint32_t>, UncertainCode> uncertain_;
    std::vector<std::optional<ProcessCode::Placed>> placed_;  // by section, as far as requested
    std::vector<flow::Event> moved_;
};

}  // namespace waymark::pipeline
