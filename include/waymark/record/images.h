/// The code that executed, dated: memory as it was in one epoch of the recording. An epoch ends when code that executed
/// in it has changed; each has buffers of its own, so every byte of trace is read with the code that ran.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/record/ring.h"

namespace waymark::record {

class Images {
public:
    /// The file in the folder with the memory of all epochs that are over.
    static constexpr const char* archive_file = "code.bin";
    /// Files with pages are written into `folder`.
    explicit Images(std::filesystem::path folder) : folder_(std::move(folder)) {}

    /// The bytes of a whole page; for the bytes around code that are never executed, from the next `add` there on.
    void saw_page(Address address, Bytes bytes);

    /// No byte of this code contradicts one that executed in this epoch.
    [[nodiscard]] bool fits(Address address, Bytes code) const;
    /// This code executes in this epoch. Precondition: it fits.
    void add(Address address, Bytes code);
    /// Code that executed in this epoch; empty if a part of it did not execute.
    [[nodiscard]] std::vector<std::uint8_t> executed(Address address, std::size_t bytes) const;
    /// The next epoch begins, in which nothing has executed. What `archive` did not take is forgotten.
    void new_epoch();
    /// This epoch is over: appends its pages to the pages of earlier epochs, without stretches that are there already;
    /// `dumps` then names that file, and `remove_outdated` removes the one before. Errors: `unreadable`.
    [[nodiscard]] Status archive();

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
    [[nodiscard]] std::uint64_t bytes() const { return archived_bytes_ + held_.size() * page_bytes; }

private:
    using Page = std::array<std::uint8_t, page_bytes>;
    struct Held {
        Page bytes{};
        std::bitset<page_bytes> executed;
    };
    struct Seen {
        Page bytes{};
        bool fresh = false;  ///< `add` has not met it yet
    };
    struct Stretch {
        std::uint64_t address, offset, bytes;
    };

    /// Neighbouring pages of this epoch, without an offset.
    [[nodiscard]] std::vector<Stretch> stretches() const;
    [[nodiscard]] std::vector<std::uint8_t> pages(const Stretch& stretch) const;
    [[nodiscard]] Result<std::uint64_t> archive(const std::vector<std::uint8_t>& pages);

    std::filesystem::path folder_, file_;
    std::vector<std::filesystem::path> outdated_;
    std::map<std::uint64_t, Held> held_;  ///< of this epoch, by address / page size
    std::map<std::uint64_t, Seen> seen_;
    std::vector<Stretch> stretches_;  ///< of `file_`
    unsigned epoch_ = 1, version_ = 0;
    std::uint64_t archived_bytes_ = 0;                                ///< without the page that the file begins with
    std::unordered_multimap<std::uint64_t, std::uint64_t> archived_;  ///< by hash of a stretch: where it is
    bool changed_ = false;
};

}  // namespace waymark::record
