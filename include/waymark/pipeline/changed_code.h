/// Code of a capture with several processes that is in no file in the form in which it ran: just-in-time compiled code,
/// and code that the kernel changed. Returns which bytes were at which address from which time on
/// (capture::CodeChange).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "waymark/capture/address_spaces.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/symbols.h"

namespace waymark::pipeline {

/// Add all code, then call `finish`; after it, calls are thread-safe.
class ChangedCode {
public:
    void add(capture::CodeChange change) { changes_.push_back(std::move(change)); }
    /// Gives code with a name a separate place, at which `map` gets its bytes.
    void finish(image::MemoryMap& map);
    [[nodiscard]] bool empty() const { return changes_.empty(); }
    void add_symbols(image::Symbols& symbols) const;

    /// The state of the memory of a process, or of `CodeChange::kernel`, before a time and during it. Code that was
    /// removed during that time may have run in it.
    struct State {
        std::size_t before{}, in{};
        friend auto operator<=>(const State&, const State&) = default;
    };
    [[nodiscard]] State state(std::uint32_t process, std::uint64_t from, std::uint64_t to) const;
    /// Replaces the mapped code with the changed code.
    void apply(std::uint32_t process, const State& state, std::vector<capture::MappedExtent>& extents) const;
    /// The bytes of an extent with code of its own, from its first address on. Precondition: extent.code != 0.
    [[nodiscard]] Bytes code(const capture::MappedExtent& extent) const;

private:
    std::vector<capture::CodeChange> changes_;                      // by time
    std::vector<std::uint64_t> places_;                             // of each code change; 0: it has no separate place
    std::map<std::uint32_t, std::vector<std::size_t>> of_process_;  // by time
};

}  // namespace waymark::pipeline
