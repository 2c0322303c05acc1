/// The interface of parsers, lists and decoders: they read the bytes of one stream, in chunks of any size.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "waymark/core/gap.h"
#include "waymark/core/types.h"

namespace waymark {

/// Reads the bytes of one stream.
class StreamReader {
public:
    virtual ~StreamReader() = default;
    /// The next bytes of the stream, borrowed for the call.
    virtual void feed(Bytes bytes) = 0;
    /// The next bytes do not follow the bytes before: `why` is framing, missing or stopped.
    virtual void reset(GapReason why) = 0;
    /// The stream ends here: reports the rest.
    virtual void finish() = 0;
    /// Stream positions that the reader will still report: where its unfinished packets and elements began.
    [[nodiscard]] virtual std::array<Offset, 2> pending() const = 0;
    /// Whether the bytes fed so far end inside a packet, which the next bytes complete.
    [[nodiscard]] virtual bool amid_packet() const = 0;
};

/// Decodes one stream.
class StreamDecoder : public StreamReader {
public:
    /// Number of whole packets so far.
    [[nodiscard]] virtual std::uint64_t packets() const = 0;
};

/// Puts a `Machine`, which has the functions of a StreamDecoder without deriving from it, behind `Interface`:
/// StreamDecoder, or an interface that adds functions to it.
template <class Machine, class Interface = StreamDecoder>
class StreamDecoderOf : public Interface {
public:
    template <class... Arguments>
    explicit StreamDecoderOf(Arguments&&... arguments) : machine_(std::forward<Arguments>(arguments)...) {}
    void feed(Bytes bytes) final { machine_.feed(bytes); }
    void reset(GapReason why) final { machine_.reset(why); }
    void finish() final { machine_.finish(); }
    [[nodiscard]] std::array<Offset, 2> pending() const final { return machine_.pending(); }
    [[nodiscard]] bool amid_packet() const final { return machine_.amid_packet(); }
    [[nodiscard]] std::uint64_t packets() const final { return machine_.packets(); }
    [[nodiscard]] Machine& machine() { return machine_; }

protected:
    Machine machine_;
};

}  // namespace waymark
