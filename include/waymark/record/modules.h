/// The file from which each piece of executed code was mapped, over time. Blocks know their module from the time of
/// their translation, so the time at which the recorder receives a mapping has no effect.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/capture/module_map.h"
#include "waymark/core/types.h"
#include "waymark/record/ring.h"

namespace waymark::record {

class Modules {
public:
    static constexpr std::uint32_t none = 0xffffffff;

    /// The file from which code was mapped; `name` empty: no file. A repeated report changes nothing. All times in this
    /// class are on the recording's clock.
    void mapped(const MapPart& part, std::string_view name, std::uint64_t time);
    void unmapped(const UnmapPart& part, std::uint64_t time);
    /// The reported unmapping did not happen.
    void still_mapped(const StillMappedPart& part);
    /// The module that contains an address, by the latest report; `none`: not known.
    [[nodiscard]] std::uint32_t at(Address address) const;

    /// Code of another module ran at addresses of this one in this epoch, so a new epoch is needed.
    [[nodiscard]] bool conflicts(std::uint32_t module) const;
    /// Code of this module is about to run. Precondition: no conflict.
    void run(std::uint32_t module, std::uint64_t time);
    void new_epoch();

    /// Code of this module ran without being recorded.
    void ran_unrecorded(std::uint32_t module);
    /// A file with unrecorded code that ran is mapped elsewhere too, or was unmapped: its code is not known by address.
    [[nodiscard]] bool unrecorded_moved() const;

    /// A source began or stopped to trace a thread.
    void source_began(const std::string& source, std::uint32_t thread, std::uint64_t time);
    void source_ended(const std::string& source, std::uint64_t time);

    /// Modules with code that ran, in the order in which they were mapped.
    [[nodiscard]] capture::ModuleMap map() const;

private:
    struct Time {
        std::uint64_t from{};
        std::optional<std::uint64_t> to{};
    };
    struct Held {
        capture::Module module;
        std::vector<Time> times;  ///< with a module of another file in between
        bool ran = false, ran_in_epoch = false, there = true, ran_unrecorded = false;
        std::uint64_t unmapped_by = 0;  ///< the number of the UnmapPart that ended it; 0: none did
        bool ended_by_it = false;       ///< and its time
    };

    struct Files;  ///< contents of files, so that each is opened once

    std::vector<Held> held_;
    std::shared_ptr<Files> files_;
    std::vector<capture::TracedTime> sources_;
    std::vector<capture::TracedThread> threads_;
};

}  // namespace waymark::record
