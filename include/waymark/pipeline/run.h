/// Reads the buffers of a session in constant memory, splits their frames, and passes each source's bytes to its
/// consumer: a decoder with a sink, a packet listing, or a counter.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waymark/capture/byte_stream.h"
#include "waymark/core/offset_map.h"
#include "waymark/core/result.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/coresight/dstream.h"
#include "waymark/flow/flow.h"
#include "waymark/pipeline/flow_filter.h"
#include "waymark/pipeline/session.h"
#include "waymark/protocol/packets.h"

namespace waymark::pipeline {

/// One source's bytes in one buffer. The referenced objects outlive the consumer.
struct StreamInfo {
    const Source& source;
    const capture::Buffer& buffer;
    const OffsetMap& offsets;  ///< maps positions in this stream to positions in the buffer
};

/// Receives the bytes of one source.
class Consumer {
public:
    virtual ~Consumer() = default;
    /// The next bytes, borrowed for the call.
    virtual void feed(Bytes bytes) = 0;
    /// The next bytes do not follow the bytes before: `why` is framing, missing or stopped.
    virtual void reset(GapReason why) = 0;
    /// A part of the buffer begins. Called before its first bytes, and after `reset` if it does not continue the
    /// previous part.
    virtual void begin(const capture::BufferPart&) {}
    /// The stream ends here.
    virtual void finish() = 0;
    /// Delivers everything known so far. Called at the end of each piece of the buffer, while its offsets can be
    /// mapped.
    virtual void flush() = 0;
    /// Stream positions that the consumer will still report: where its unfinished packets and elements began.
    [[nodiscard]] virtual std::array<Offset, 2> pending() const = 0;
    /// The position of the first element that is known but not delivered: the consumer will report positions from there
    /// on.
    [[nodiscard]] virtual std::optional<Offset> held_from() const { return std::nullopt; }
    /// Whether the bytes fed so far end inside a packet, to which the next bytes then belong. False if that is unknown.
    [[nodiscard]] virtual bool amid_packet() { return false; }
};

/// A consumer that passes the bytes to a protocol's reader. The reader usually has the derived class as its listener,
/// so the derived class makes the reader in the body of its constructor.
class ReaderConsumer : public Consumer {
public:
    void feed(Bytes bytes) override { reader_->feed(bytes); }
    void reset(GapReason why) override { reader_->reset(why); }
    void finish() override { reader_->finish(); }
    void flush() override {}
    [[nodiscard]] std::array<Offset, 2> pending() const override { return reader_->pending(); }
    [[nodiscard]] bool amid_packet() override { return reader_->amid_packet(); }

protected:
    std::unique_ptr<protocol::Reader> reader_{};
};

using MakeConsumer = std::function<std::unique_ptr<Consumer>(const StreamInfo&)>;

/// The bytes and packets of one selected source in one buffer.
struct StreamReport {
    const Source* source{};
    std::string buffer;
    std::uint64_t bytes{};               ///< fed to the consumer
    std::uint64_t padding{};             ///< the end mark of a buffer written without formatter (docs/spec/pft.md, 6.5)
    std::unique_ptr<Consumer> consumer;  ///< finished; may be null
    /// Only in frames: the place in the buffer at which the source fell silent inside a packet, while others continued.
    std::optional<Offset> silent_from{};
    std::uint64_t bytes_of_others{};  ///< bytes of other sources after that
};

/// Bytes with a trace ID that no source of the buffer has, or that no source can have. They are missing from the source
/// that sent them, or the capture does not describe their source.
struct Stray {
    coresight::TraceId id;
    std::uint64_t bytes{}, stretches{};  ///< a stretch is what one announcement of the ID covers
    Offset first{};                      ///< in the buffer
    /// Whether there are so few bytes that damaged frames are likelier than a source without description. For IDs that
    /// no source can have, damage is certain: at each place all sources of the buffer begin again, because any of them
    /// may have sent the bytes.
    bool damage{};
};

/// The result of reading one buffer.
struct BufferReport {
    std::string name;
    const capture::Buffer* buffer{};
    std::uint64_t bytes{};  ///< read, after decompression
    bool framed{};
    coresight::Totals frames;  ///< framed only: every byte read is in one of its counters
    coresight::DstreamLayout layout{coresight::Framing::aligned, false};  ///< framed only: how the frames lay
    /// Only in frames, by ID: reserved IDs, padding that is not zero, triggers of no source, and IDs of sources that
    /// the capture does not describe. Such IDs are missing here if the capture may contain other sources
    /// (capture::Buffer::other_sources), or one of its sources has an unknown ID.
    std::vector<Stray> strays;
    /// Only in frames: bytes that came before a trace ID, without stretches of zeros: their source is not known.
    std::uint64_t nobodys{};
    std::vector<Gap> gaps;       ///< framed only: bytes lost at frame level, the first 100
    std::optional<Error> error;  ///< the buffer could not be opened, or not be read to its end
};

struct Report {
    std::vector<BufferReport> buffers;
    std::vector<StreamReport> streams;
};

/// Called regularly with the number of bytes read so far in all buffers, and the sum of their sizes, if known.
using Progress = std::function<void(std::uint64_t bytes, std::optional<std::uint64_t> of)>;

/// Opens the bytes of a buffer that do not come from its files.
using OpenBuffer = std::function<Result<std::unique_ptr<capture::ByteStream>>(const capture::Buffer&)>;

/// Runs all buffers in order. `make` is called once for every pair of buffer and selected source in it; for a buffer in
/// parts only when the source's first byte comes. A null consumer leaves the source out. A buffer that cannot be read
/// to its end is reported, and its bytes before the failure count. Memory: a piece of 4 MiB, its bytes once more by
/// source, and their offsets, for any size of the capture. Each piece is passed to the consumers source by source, so
/// that their output has one order. With `at_once` > 1, that number of threads read buffers side by side, each with
/// that memory: `make` and `progress` are then called by one thread at a time, but for buffers in any order; consumers
/// of different buffers work concurrently. The report is the same.
[[nodiscard]] Report run(const Session& session, std::span<const Source* const> selected, const MakeConsumer& make,
                         const Progress& progress = {}, const OpenBuffer& open = {}, unsigned at_once = 1);
/// The best number of buffers for `workers` threads to read side by side; 1: each decoder should have all threads. More
/// than 1 only for captures of several processes with short parts, which one decoder cannot divide among threads.
[[nodiscard]] unsigned buffers_at_once(const Session& session, unsigned workers);

using protocol::DecoderKind;

/// A decoder on several threads uses only one if it receives fewer bytes than this at a time.
inline constexpr std::uint64_t least_bytes_for_threads = std::uint64_t{1} << 15;

/// A consumer of program flow.
class FlowConsumer : public Consumer {
public:
    /// Number of packets so far.
    [[nodiscard]] virtual std::uint64_t packets() const = 0;
    /// Code of processes that lacked an image (Source::code).
    [[nodiscard]] virtual std::vector<MissingCode> missing() const { return {}; }
    /// Code of processes that may belong to another file (Source::code).
    [[nodiscard]] virtual std::vector<UncertainCode> uncertain() const { return {}; }
    /// The amount of flow that passed the source's filter (Source::filter); null if it has none.
    [[nodiscard]] virtual const Filtered* filtered() const { return nullptr; }
};

/// A consumer that decodes the source's program flow (Source::has_flow) into `sink`, which is borrowed: the fast
/// decoder on `jobs` threads, including the caller's. The sink is called by one thread at a time, its forks by several.
/// The output does not depend on `jobs`. For a source with code of several processes (Source::code), the sink receives
/// addresses at the places of files, to which `Source::memory` and `names` apply; with `Addresses::as_they_were`, it
/// receives the processes' own addresses. Flow that the source's filter excludes is not delivered.
enum class Addresses : std::uint8_t { placed, as_they_were };
[[nodiscard]] std::unique_ptr<FlowConsumer> flow_consumer(const StreamInfo& stream, flow::Sink& sink, DecoderKind kind,
                                                          unsigned jobs = 1, Addresses addresses = Addresses::placed);

/// Number of packets in a consumer's stream so far; the consumer must be a FlowConsumer.
[[nodiscard]] std::uint64_t packets(const Consumer& flow_consumer);

}  // namespace waymark::pipeline
