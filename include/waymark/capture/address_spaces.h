/// The memory of the processes that ran while trace was recorded, over time.
///
/// Different processes can have different files at one address, and one file at different addresses. So each file gets
/// one place, a module of the capture's ModuleMap: the addresses at which it was first mapped, or others if those are
/// taken. Code is read, named and counted at this place, wherever the file was mapped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "waymark/core/types.h"

namespace waymark::capture {

/// Addresses of a process that a module holds.
struct MappedExtent {
    std::uint64_t first{}, last{};  ///< inclusive
    std::uint64_t shift{};          ///< address less place, modulo 2^64
    std::uint32_t module{};         ///< in ModuleMap::modules, or `no_module`: nothing is known of the code
    std::uint32_t name{};           ///< of what is mapped: an index into AddressSpaces::names
    std::uint32_t code{};           ///< 0: the module's; else 1 + the index of its replacement, as that producer counts
    /// Something else was mapped here at another moment of that time, so which of both ran is uncertain: its name;
    /// `no_name`: nothing was.
    std::uint32_t other = ~std::uint32_t{0};
    friend auto operator<=>(const MappedExtent&, const MappedExtent&) = default;
};
inline constexpr std::uint32_t no_module = ~std::uint32_t{0}, no_name = ~std::uint32_t{0};

/// Bytes that were at an address from a time on, and that no file has there: code that a program or the kernel made
/// while it ran, or changed.
struct CodeChange {
    static constexpr std::uint32_t kernel = 0xffffffff;
    std::uint32_t process{};  ///< or `kernel`
    std::uint64_t time{};     ///< 0: before everything
    Address address{};
    std::uint64_t bytes{};             ///< addresses that are concerned
    std::vector<std::uint8_t> code{};  ///< what is there; empty: nothing any more
    std::string name{};                ///< of the code; empty: a part of the mapping there
    friend bool operator==(const CodeChange&, const CodeChange&) = default;
};

/// A file in which a process itself wrote down the code that it generated (jitdump).
struct WrittenCode {
    std::uint32_t process{};
    std::string file{};  ///< as recorded
    friend bool operator==(const WrittenCode&, const WrittenCode&) = default;
};

/// Calls are safe from several threads.
class AddressSpaces {
public:
    virtual ~AddressSpaces() = default;

    /// The thread that a context ID or VMID of the trace means; nothing where the capture has neither.
    [[nodiscard]] virtual std::optional<std::uint32_t> thread_of(std::optional<std::uint32_t> context_id,
                                                                 std::optional<std::uint32_t> vmid) const = 0;
    /// Two threads with one key have the same memory in that time.
    struct Key {
        std::uint32_t process{};
        std::size_t first{}, last{};  ///< changes of its memory before and in that time
        std::size_t kernel{};         ///< changes of the kernel's
        friend auto operator<=>(const Key&, const Key&) = default;
    };
    /// Nothing: the thread is not known.
    [[nodiscard]] virtual std::optional<Key> key(std::optional<std::uint32_t> thread, std::uint64_t from,
                                                 std::uint64_t to) const = 0;
    /// What was mapped at the end of that time and, where nothing was, earlier in it: by address, without overlaps.
    [[nodiscard]] virtual std::vector<MappedExtent> extents(const Key& key) const = 0;

    /// `main[1234]`, or the number alone.
    [[nodiscard]] virtual std::string thread_name(std::uint32_t thread, std::uint64_t time) const = 0;
    struct Task {
        std::optional<std::uint32_t> process{};  ///< nothing: not known
        std::uint32_t thread{};
        std::string process_name{}, name{};  ///< empty: not known
        friend bool operator==(const Task&, const Task&) = default;
    };
    [[nodiscard]] virtual Task task(std::uint32_t thread, std::uint64_t time) const = 0;
    /// All threads that the capture reports, by number, with each name that they had, in order of time.
    [[nodiscard]] virtual std::vector<Task> tasks() const = 0;
    /// The time that a timestamp of the trace means, in ns; nothing: there are none, or they count another
    /// clock.
    [[nodiscard]] virtual std::optional<std::uint64_t> time_of(std::uint64_t timestamp) const = 0;
    struct Name {
        std::string file{};                    ///< as recorded
        std::vector<std::uint8_t> build_id{};  ///< empty: not known
    };
    [[nodiscard]] virtual const std::vector<Name>& names() const = 0;

    /// What the capture itself has of changed code, by time.
    [[nodiscard]] virtual const std::vector<CodeChange>& code_changes() const = 0;
    /// Files with further changed code; the caller has to find them.
    [[nodiscard]] virtual const std::vector<WrittenCode>& written_code() const = 0;
    /// Times in those files are by the clock of this capture.
    [[nodiscard]] virtual bool has_clock_of_written_code() const = 0;
};

}  // namespace waymark::capture
