/// The code that executed, dated: memory as it was in one epoch of the recording. An epoch ends when code that executed
/// in it has changed; each has buffers of its own, so every byte of trace is read with the code that ran.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/record/ring.h"

namespace waymark::record {

class Images {
public:
    /// Pages are written to `file`, which is created by the first `flush`.
    explicit Images(std::filesystem::path file) : file_(std::move(file)) {}
    ~Images();
    Images(const Images&) = delete;
    Images& operator=(const Images&) = delete;

    /// What stood in a whole page; for the bytes around code that are never executed.
    void saw_page(Address address, Bytes bytes);

    /// No byte of this code contradicts one that executed in this epoch.
    [[nodiscard]] bool fits(Address address, Bytes code) const;
    /// This code executes in this epoch. Precondition: it fits.
    void add(Address address, Bytes code);
    void new_epoch();

    /// True when `dumps` changed since the last `flush`, or bytes of them.
    [[nodiscard]] bool changed() const { return changed_; }
    /// Writes changed pages. Errors: `unreadable`.
    [[nodiscard]] Status flush();
    /// The pages of this epoch, for one core.
    [[nodiscard]] std::vector<capture::MemoryDump> dumps(const std::string& core) const;
    [[nodiscard]] std::uint64_t bytes() const { return pages_written_ * page_bytes; }

private:
    using Page = std::array<std::uint8_t, page_bytes>;
    struct Held {
        Page bytes{};
        std::bitset<page_bytes> executed;
        std::uint64_t slot{};  ///< page number in the file
        bool shared{};         ///< an earlier epoch uses the slot too
        bool dirty{};
    };
    Held& hold(std::uint64_t number);

    std::filesystem::path file_;
    int descriptor_ = -1;
    std::map<std::uint64_t, Held> held_;  ///< of this epoch, by address / page size
    std::map<std::uint64_t, Page> seen_;
    /// What the file has of a page, from earlier epochs.
    struct Stored {
        std::uint64_t slot;
        Page bytes;
    };
    std::map<std::uint64_t, Stored> stored_;
    std::uint64_t slots_ = 0, pages_written_ = 0;
    bool changed_ = false;
};

}  // namespace waymark::record
