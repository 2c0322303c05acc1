/// The executed code over time: memory during one epoch of the recording. An epoch ends when code that was executed in
/// it has changed. Each epoch has separate buffers, so every byte of trace is read with the code that ran.
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

    /// The bytes of a whole page. They fill the gaps between executed code, from the next `add` there on.
    void saw_page(Address address, Bytes bytes);

    /// Whether no byte of this code contradicts code that was executed in this epoch.
    [[nodiscard]] bool fits(Address address, Bytes code) const;
    /// This code executes in this epoch. Precondition: it fits.
    void add(Address address, Bytes code);
    /// Code that was executed in this epoch; empty if a part of this code was not.
    [[nodiscard]] std::vector<std::uint8_t> executed(Address address, std::size_t bytes) const;
    /// Begins the next epoch, in which nothing was executed yet. Pages that `archive` did not take are lost.
    void new_epoch();
    /// Ends this epoch: appends its pages to the pages of earlier epochs, except stretches that are already there.
    /// `dumps` then names that file, and `remove_outdated` removes the previous one. Errors: `unreadable`.
    [[nodiscard]] Status archive();

    /// Whether `add` added code since the last `write`.
    [[nodiscard]] bool changed() const { return changed_; }
    /// Writes the pages of this epoch into a new file, if there are new pages. The old file stays until
    /// `remove_outdated`, so that a reader of the folder finds the files in its description. Errors: `unreadable`.
    [[nodiscard]] Status write();
    void remove_outdated();
    /// The last written pages of this epoch, for one core.
    [[nodiscard]] std::vector<capture::MemoryDump> dumps(const std::string& core) const;
    /// Number of bytes of code in all files.
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

    /// Adjacent pages of this epoch, without an offset.
    [[nodiscard]] std::vector<Stretch> stretches() const;
    [[nodiscard]] std::vector<std::uint8_t> pages(const Stretch& stretch) const;
    [[nodiscard]] Result<std::uint64_t> archive(const std::vector<std::uint8_t>& pages);

    std::filesystem::path folder_, file_;
    std::vector<std::filesystem::path> outdated_;
    std::map<std::uint64_t, Held> held_;  ///< pages of this epoch, by address / page size
    std::map<std::uint64_t, Seen> seen_;
    std::vector<Stretch> stretches_;  ///< of `file_`
    unsigned epoch_ = 1, version_ = 0;
    std::uint64_t archived_bytes_ = 0;                                ///< without the page with which the file begins
    std::unordered_multimap<std::uint64_t, std::uint64_t> archived_;  ///< by hash of a stretch: its place in the file
    bool changed_ = false;
};

}  // namespace waymark::record
