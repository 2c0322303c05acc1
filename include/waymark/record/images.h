/// The code that executed, dated: memory as it was in one epoch of the recording. An epoch ends when code that executed
/// in it has changed; each has buffers of its own, so every byte of trace is read with the code that ran.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/record/ring.h"

namespace waymark::record {

class Images {
public:
    /// Files with pages are written into `folder`.
    explicit Images(std::filesystem::path folder) : folder_(std::move(folder)) {}

    /// What stood in a whole page; for the bytes around code that are never executed.
    void saw_page(Address address, Bytes bytes);

    /// No byte of this code contradicts one that executed in this epoch.
    [[nodiscard]] bool fits(Address address, Bytes code) const;
    /// This code executes in this epoch. Precondition: it fits.
    void add(Address address, Bytes code);
    /// Code that executed in this epoch; empty where not all of it did.
    [[nodiscard]] std::vector<std::uint8_t> executed(Address address, std::size_t bytes) const;
    void new_epoch();

    /// Something was added since the last `write`.
    [[nodiscard]] bool changed() const { return changed_; }
    /// Writes the pages of this epoch into a new file, if there is anything new; the one before stays until
    /// `remove_outdated`, so that whoever reads the folder meanwhile finds what its description names. Errors:
    /// `unreadable`.
    [[nodiscard]] Status write();
    void remove_outdated();
    /// The pages of this epoch as last written, for one core.
    [[nodiscard]] std::vector<capture::MemoryDump> dumps(const std::string& core) const;
    /// Of code in all files.
    [[nodiscard]] std::uint64_t bytes() const { return earlier_bytes_ + held_.size() * page_bytes; }

private:
    using Page = std::array<std::uint8_t, page_bytes>;
    struct Held {
        Page bytes{};
        std::bitset<page_bytes> executed;
    };
    struct Stretch {
        std::uint64_t address, offset, bytes;
    };

    std::filesystem::path folder_, file_;
    std::vector<std::filesystem::path> outdated_;
    std::map<std::uint64_t, Held> held_;  ///< of this epoch, by address / page size
    std::map<std::uint64_t, Page> seen_;
    std::vector<Stretch> stretches_;  ///< of `file_`
    unsigned epoch_ = 1, version_ = 0;
    std::uint64_t earlier_bytes_ = 0;
    bool changed_ = false;
};

}  // namespace waymark::record
