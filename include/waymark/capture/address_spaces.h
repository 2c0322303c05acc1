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

/// Addresses of a process at which a module is mapped.
struct MappedExtent {
    std::uint64_t first{}, last{};  ///< inclusive
    std::uint64_t shift{};          ///< address minus place, modulo 2^64
    std::uint32_t module{};         ///< index in ModuleMap::modules, or `no_module`: nothing is known of the code
    std::uint32_t name{};           ///< name of the mapping: an index into AddressSpaces::names
    /// 0: the module's own code; otherwise 1 + the index of its replacement, as numbered by its producer.
    std::uint32_t code{};
    /// Another file was mapped here at a different moment of that time, so it is uncertain which of the two ran.
    /// `other`: the name of that file; `no_name` if there was none.
    std::uint32_t other = ~std::uint32_t{0};
    friend auto operator<=>(const MappedExtent&, const MappedExtent&) = default;
};
inline constexpr std::uint32_t no_module = ~std::uint32_t{0}, no_name = ~std::uint32_t{0};

/// Bytes that were at an address from some time on, and that are in no file: a program or the kernel generated or
/// changed this code while it ran.
struct CodeChange {
    static constexpr std::uint32_t kernel = 0xffffffff;
    std::uint32_t process{};  ///< or `kernel`
    std::uint64_t time{};     ///< 0: before everything
    Address address{};
    std::uint64_t bytes{};             ///< number of bytes at the address
    std::vector<std::uint8_t> code{};  ///< the bytes; empty: they were removed
    std::string name{};                ///< name of the code; empty: part of the mapping at that address
    friend bool operator==(const CodeChange&, const CodeChange&) = default;
};

/// A file into which a process wrote the code that it generated (jitdump).
struct WrittenCode {
    std::uint32_t process{};
    std::string file{};  ///< as recorded
    friend bool operator==(const WrittenCode&, const WrittenCode&) = default;
};

/// Thread-safe.
class AddressSpaces {
public:
    virtual ~AddressSpaces() = default;

    /// The thread for a context ID or VMID of the trace; nullopt if the capture has neither.
    [[nodiscard]] virtual std::optional<std::uint32_t> thread_of(std::optional<std::uint32_t> context_id,
                                                                 std::optional<std::uint32_t> vmid) const = 0;
    /// Two threads with equal keys have the same memory during that time.
    struct Key {
        std::uint32_t process{};
        std::size_t first{}, last{};  ///< number of changes of its memory before and during that time
        std::size_t kernel{};         ///< number of changes of the kernel's memory
        friend auto operator<=>(const Key&, const Key&) = default;
    };
    /// nullopt: the thread is not known.
    [[nodiscard]] virtual std::optional<Key> key(std::optional<std::uint32_t> thread, std::uint64_t from,
                                                 std::uint64_t to) const = 0;
    /// The mappings at the end of that time; where there were none then, earlier ones. Sorted by address, without
    /// overlaps.
    [[nodiscard]] virtual std::vector<MappedExtent> extents(const Key& key) const = 0;

    /// Text such as `main[1234]`, or only the number.
    [[nodiscard]] virtual std::string thread_name(std::uint32_t thread, std::uint64_t time) const = 0;
    struct Task {
        std::optional<std::uint32_t> process{};  ///< nothing: not known
        std::uint32_t thread{};
        std::string process_name{}, name{};  ///< empty: not known
        friend bool operator==(const Task&, const Task&) = default;
    };
    [[nodiscard]] virtual Task task(std::uint32_t thread, std::uint64_t time) const = 0;
    /// All threads that the capture reports, by number, with all their names in order of time.
    [[nodiscard]] virtual std::vector<Task> tasks() const = 0;
    /// The time for a timestamp of the trace, in ns; nullopt: there are no timestamps, or they use another clock.
    [[nodiscard]] virtual std::optional<std::uint64_t> time_of(std::uint64_t timestamp) const = 0;
    struct Name {
        std::string file{};                    ///< as recorded
        std::vector<std::uint8_t> build_id{};  ///< empty: not known
    };
    [[nodiscard]] virtual const std::vector<Name>& names() const = 0;

    /// Changed code in the capture itself, by time.
    [[nodiscard]] virtual const std::vector<CodeChange>& code_changes() const = 0;
    /// Files with further changed code, which the caller has to find.
    [[nodiscard]] virtual const std::vector<WrittenCode>& written_code() const = 0;
    /// Whether times in those files use the clock of this capture.
    [[nodiscard]] virtual bool has_clock_of_written_code() const = 0;
};

}  // namespace waymark::capture
