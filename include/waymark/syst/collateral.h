/// Meanings of a SyS-T client's messages that have a number instead of a text, from XML files (docs/spec/sys-t.md, 6).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/syst/message.h"

namespace waymark::syst {

struct Item {
    std::uint64_t id{}, mask{};
    std::string text{}, file{}, line{};
};

/// Items by the bits of their number that their mask selects; a lookup finds the first item that fits.
class Items {
public:
    void add(Item item);
    [[nodiscard]] const Item* find(std::uint64_t key) const;
    [[nodiscard]] bool empty() const { return items_.empty(); }

private:
    static constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
    std::vector<Item> items_;
    std::unordered_map<std::uint64_t, std::size_t> whole_;  // items whose mask has all bits
    std::vector<std::size_t> masked_;
};

struct Client {
    struct Id {
        Guid guid, mask;
        std::string name;
    };
    std::string name;
    std::vector<Id> guids;
    Items builds, modules, files, catalog32, catalog64, short32, short64, protocols;
    [[nodiscard]] const Id* match(const Guid& guid) const;
};

/// The contents of one or more files.
class Collateral {
public:
    static constexpr std::size_t most_bytes = std::size_t{64} << 20, most_items = std::size_t{1} << 20;
    /// Adds the definitions in `xml`; `name` is the file's name, for errors. After an error nothing was added.
    /// `bad_format` with the line: no XML, a DOCTYPE, no element of SyS-T, an invalid number or GUID; `unsupported`:
    /// beyond the limits.
    [[nodiscard]] std::optional<Error> add(std::string_view xml, const std::string& name);
    /// The first client with the GUID, and with the build number if one is known and the client has build numbers.
    [[nodiscard]] const Client* find(const Guid& guid, std::optional<std::uint64_t> build) const;
    [[nodiscard]] const Client* named(std::string_view name) const;
    [[nodiscard]] const std::vector<Client>& clients() const { return clients_; }

private:
    std::vector<Client> clients_;
    std::size_t items_ = 0;
};

}  // namespace waymark::syst
