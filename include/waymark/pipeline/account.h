/// The account of decoded program flow (answers/account.h): which part of the run the capture shows, and why the rest
/// is missing. All commands that decode flow use this account.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "waymark/answers/account.h"
#include "waymark/flow/troubles.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::pipeline {

/// One source in one buffer, decoded.
struct DecodedStream {
    const StreamReport* stream{};
    const flow::Troubles* troubles{};
    std::uint64_t ranges{}, instructions{};  ///< that were delivered
};

/// The account of a capture. `selected`: the sources that the user asked for. `streams`: the streams of `report` that
/// were decoded.
[[nodiscard]] answers::Account flow_account(const Session& session, const std::vector<const Source*>& selected,
                                            const Report& report, std::span<const DecodedStream> streams);

/// The account of a part of the decoded flow, such as a window: what happened in these streams and what the units were
/// programmed to leave out, without what the capture lacks elsewhere.
[[nodiscard]] answers::Account part_account(const Session& session, const std::vector<const Source*>& selected,
                                            std::span<const DecodedStream> streams);

/// A PacketCounter for a source with packets, otherwise null.
[[nodiscard]] std::unique_ptr<Consumer> count_packets(const StreamInfo& stream);
/// The account of sources with messages alone (has_messages_alone), from a report whose consumers are of
/// count_packets(). Empty if there is no message. It does not count rows that tables of answers leave out.
[[nodiscard]] answers::Account counted_account(const Session& session, const std::vector<const Source*>& selected,
                                               const Report& report);

/// Decodes the trace of the `selected` sources and gives its account. `unreadable`, where not null, receives the
/// errors of buffers that could not be opened or read to their end; the account counts such buffers as `cut`. `open`
/// replaces capture::open_buffer.
[[nodiscard]] answers::Account account_of(const Session& session, const std::vector<const Source*>& selected,
                                          const Progress& progress = {}, std::vector<Error>* unreadable = nullptr,
                                          const OpenBuffer& open = {});

}  // namespace waymark::pipeline
