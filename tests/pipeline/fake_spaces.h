/// Processes of a capture, defined by a test.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waymark/capture/address_spaces.h"

namespace waymark::pipeline {

class FakeSpaces final : public capture::AddressSpaces {
public:
    bool has_contexts = true;                           ///< a context ID is the number of a thread
    bool has_clock = false;                             ///< a timestamp is a tenth of a time
    std::uint64_t mapped_at = 0;                        ///< time from which the mappings of all memories exist
    std::vector<Name> images;                           ///< names()
    std::vector<std::pair<std::uint64_t, Task>> named;  ///< a thread, from a time on; in order of time
    std::map<std::uint32_t, std::vector<capture::MappedExtent>> memory;  ///< by process

    [[nodiscard]] std::optional<std::uint32_t> thread_of(std::optional<std::uint32_t> context_id,
                                                         std::optional<std::uint32_t>) const override {
        return has_contexts ? context_id : std::nullopt;
    }
    [[nodiscard]] std::optional<Key> key(std::optional<std::uint32_t> thread, std::uint64_t,
                                         std::uint64_t to) const override {
        if (!thread) return std::nullopt;
        const Task found = task(*thread, ~std::uint64_t{0});
        return found.process ? std::optional(Key{*found.process, 0, to >= mapped_at ? 1U : 0U, 0}) : std::nullopt;
    }
    [[nodiscard]] std::vector<capture::MappedExtent> extents(const Key& key) const override {
        const auto found = memory.find(key.process);
        return found == memory.end() || key.last == 0 ? std::vector<capture::MappedExtent>() : found->second;
    }
    [[nodiscard]] std::string thread_name(std::uint32_t thread, std::uint64_t time) const override {
        const Task found = task(thread, time);
        return found.name.empty() ? std::to_string(thread) : found.name + "[" + std::to_string(thread) + "]";
    }
    [[nodiscard]] Task task(std::uint32_t thread, std::uint64_t time) const override {
        Task out{std::nullopt, thread, {}, {}};
        for (const auto& [since, one] : named)
            if (one.thread == thread && since <= time) out = one;
        return out;
    }
    [[nodiscard]] std::vector<Task> tasks() const override {
        std::vector<Task> out;
        for (const auto& each : named) out.push_back(each.second);
        return out;
    }
    [[nodiscard]] std::optional<std::uint64_t> time_of(std::uint64_t timestamp) const override {
        return has_clock ? std::optional(10 * timestamp) : std::nullopt;
    }
    [[nodiscard]] const std::vector<Name>& names() const override { return images; }
    [[nodiscard]] const std::vector<capture::CodeChange>& code_changes() const override { return changes_; }
    [[nodiscard]] const std::vector<capture::WrittenCode>& written_code() const override { return written_; }
    [[nodiscard]] bool has_clock_of_written_code() const override { return false; }

private:
    std::vector<capture::CodeChange> changes_;
    std::vector<capture::WrittenCode> written_;
};

}  // namespace waymark::pipeline
