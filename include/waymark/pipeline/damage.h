/// Losses of a capture and contradictions with its images, in words for all commands: flow, info, report, profile and
/// doctor describe the same damage alike.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/flow/troubles.h"
#include "waymark/pipeline/run.h"
#include "waymark/protocol/finding.h"

namespace waymark::pipeline {

using protocol::Severity;

struct Damage {
    enum class Kind : std::uint8_t {
        reserved_ids,     ///< bytes under trace IDs that are reserved
        trigger_ids,      ///< bytes under the IDs of triggers and flushes that are no trigger or flush
        padding,          ///< bytes under the null ID that are not zero
        damaged_ids,      ///< a few bytes under IDs without a described source
        undescribed_ids,  ///< the same, but enough bytes to be a source
        silence,          ///< a source ended inside a packet while others continued
        cut,              ///< a buffer lacks bytes that were written, or its last frame is not whole
        lost_frames,      ///< frames that cannot be
        no_frame_sync,    ///< bytes before the first frame sync
        partial_frame,    ///< the last frame is not whole, in a format that may end so
        contradiction,    ///< trace and image contradict each other
        no_branch,        ///< the walked bytes are no code
        no_image,         ///< execution went where no image is known
        missing_code,     ///< execution went into a file that was not found
        uncertain_code,   ///< which of two files ran is not known
        unplaced,         ///< waypoints without an address: the code that ran with them is unknown
        untraced,         ///< the trace omits the way through code that ran
        uncommitted,      ///< P0 elements that were neither committed nor cancelled
        overflow,         ///< the unit's FIFO overflowed
        unsynchronised,   ///< the trace of a source begins inside a packet
        lost_packets,     ///< bytes that are no packet
        cut_packets,      ///< packets that lost frames cut in two
        last_packet,      ///< the last packet is cut off
        not_decoded,      ///< bytes of selected sources whose protocol is not decoded
    };
    Kind kind{};
    Severity severity{};
    Offset first{};              ///< in the buffer
    std::string buffer, source;  ///< names; `source` is empty where any source may be meant
    std::string found, means;    ///< `21 bytes in 1 stretch have reserved trace IDs (0x70)`; and the consequence
    /// One sentence with place: `buffer ETB_0: 21 bytes in 1 stretch, first at offset 0x1b, have …: …`.
    std::string sentence;
    std::uint64_t times = 1;               ///< stretches, at least 1
    std::optional<std::uint64_t> bytes{};  ///< of trace; absent: not known
    /// The size of the code that ran, or would have run: executions of blocks, waypoints or P0 elements
    /// (answers::AccountRow). Absent: not known.
    std::optional<std::uint64_t> instructions{}, ranges{};
    std::string of{};  ///< the file or the sources concerned, where known
};

/// Damage that concerns frames of one buffer.
struct FrameLosses {
    std::string_view buffer;
    capture::Buffer::Format format{};
    const coresight::Totals& totals;
    std::span<const Gap> gaps;
};
[[nodiscard]] std::vector<Damage> damage_in(const FrameLosses& frames);

/// The damage in BufferReport::strays, one entry for each kind. The function uses no other member.
[[nodiscard]] std::vector<Damage> stray_damage(const BufferReport& buffer);
/// The damage of a buffer: a cut file, losses at frame level, and `stray_damage`.
[[nodiscard]] std::vector<Damage> damage_in(const BufferReport& buffer);
/// Damage `cut`: the buffer's file ends inside a frame, or has fewer bytes than were written. A stream with syncs may
/// end anywhere.
[[nodiscard]] std::optional<Damage> cut_of(const BufferReport& buffer);
/// The reason why a buffer could not be read to its end, in one sentence; nullopt: it was read, though it may have been
/// cut.
[[nodiscard]] std::optional<std::string> error_of(const BufferReport& buffer);

/// Bytes of selected sources that were read and that no decoder takes. For units that trace program flow they are a
/// warning; for others, such as units to which programs write, a note.
[[nodiscard]] std::vector<Damage> not_decoded(const Session& session, const std::vector<const Source*>& selected,
                                              const Report& report);

/// Sentences about cut or damaged parts of the capture's file (capture::Problem::Kind::damage), combined by kind.
[[nodiscard]] std::vector<std::string> file_damage(const Session& session);
/// The reasons why the capture could not be read completely: `file_damage`, and buffers that were cut or could not be
/// read. An input with any of these is damaged, even if the rest was read (docs/exit-status.md).
[[nodiscard]] std::vector<std::string> read_errors(const Session& session, const Report& report);

/// The sudden silence of a source; nullopt: it ended in the usual way.
[[nodiscard]] std::optional<Damage> silence_of(const StreamReport& stream);
/// Losses and contradictions of one stream. `ranges`: number of executed blocks in the stream. The last packet of a
/// source that fell silent has no separate entry.
[[nodiscard]] std::vector<Damage> damage_in(const StreamReport& stream, const flow::Troubles& troubles,
                                            std::uint64_t ranges);
/// The damage that concerns only packets: `lost_packets`, `cut_packets`, `last_packet`.
[[nodiscard]] std::vector<Damage> packet_damage(const Source& source, std::string_view buffer,
                                                const flow::Troubles& troubles);

/// For a capture of several processes: the files whose code ran but was not found, and the cost; then code that belongs
/// to no file. Sorted by frequency: at most `most` files, and the number of further ones. They replace `no_image`.
[[nodiscard]] std::vector<Damage> missing_code(const Session& session, const Report& report, std::size_t most = 20);
/// For a capture of several processes: code whose file is uncertain, since its address belonged to two files within an
/// AUX range. Grouped by files, the most instructions first.
[[nodiscard]] std::vector<Damage> uncertain_code(const Session& session, const Report& report);
/// Both.
[[nodiscard]] std::vector<Damage> code_damage(const Session& session, const Report& report);

}  // namespace waymark::pipeline
