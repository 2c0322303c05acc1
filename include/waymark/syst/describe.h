/// Converts the bytes of a message to its contents: SyS-T with its collateral, and the layouts of Linux
/// (docs/spec/sys-t.md, 4 to 7).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "waymark/protocol/message.h"
#include "waymark/syst/collateral.h"
#include "waymark/syst/message.h"

namespace waymark::syst {

/// The layout of software's writes to a channel.
enum class Layout : std::uint8_t {
    sys_t,   ///< MIPI SyS-T; Linux p_sys-t
    basic,   ///< text or bytes: Linux p_basic, and its console
    ost,     ///< Linux p_ost
    ftrace,  ///< records of Linux's ftrace, as p_basic sends them
};
inline constexpr unsigned layouts = 4;
[[nodiscard]] std::string_view name(Layout layout);

/// Describes the messages of one stream, in order: a BUILD message decides to which client later messages belong.
class Describer {
public:
    /// `collateral` is borrowed and may be null. `client`: the client of messages without GUID; null: it follows from
    /// the GUID made of master, channel and origin.
    Describer(Layout layout, const Collateral* collateral, const Client* client)
        : layout_(layout), collateral_(collateral), client_(client) {}
    [[nodiscard]] protocol::Record operator()(Bytes bytes, std::uint32_t master, std::uint32_t channel);

private:
    static constexpr std::size_t most_builds = 4096;
    void sys_t(protocol::Record& out, Bytes bytes, std::uint32_t master, std::uint32_t channel);
    [[nodiscard]] const Client* client_of(const SystMessage& m, const Guid& guid) const;

    Layout layout_;
    const Collateral* collateral_;
    const Client* client_;
    std::map<Guid, std::uint64_t> builds_;
};

}  // namespace waymark::syst
