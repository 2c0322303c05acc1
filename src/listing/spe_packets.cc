#include <optional>
#include <utility>

#include "packet_lines.h"
#include "waymark/spe/parser.h"
#include "waymark/spe/text.h"

namespace waymark::listing {

namespace {

namespace perf = capture::perf;

class SpePackets {
public:
    explicit SpePackets(PacketLines& lines) : lines_(lines) {}

    /// The bytes that follow come from this unit.
    void begin(std::string source, std::uint32_t midr) {
        lines_.source = std::move(source);
        midr_ = midr;
        headed_ = false;
    }
    /// Maps bytes of the stream to their offset in the file.
    void piece(std::uint64_t stream, std::uint64_t file, Bytes bytes) {
        recent_.forget({});
        recent_.add(bytes);
        // Pieces that are adjacent in the file are merged.
        if (places_.empty() || file - places_.back().file != stream - places_.back().stream)
            places_.push_back({stream, file});
    }
    /// Begins a stretch that does not continue the previous one.
    void restart() {
        recent_.restart(0);
        places_.clear();
    }

    template <class P>
    void operator()(const P& packet, spe::Extent at) {
        if (!lines_.is_wanted(P::info.name)) return;
        begin_lines();
        const bool json = lines_.format() == LineFormat::json;
        const std::string fields = json ? std::string() : spe::fields_text(packet),
                          object = json ? json_fields(packet) : std::string();
        lines_.put({place(at.first),
                    at.bytes,
                    {},
                    P::info.name,
                    fields,
                    object,
                    spe::explain(spe::Packet(packet), midr_),
                    recent_.text(at)});
    }
    void operator()(const Gap& gap) {
        lines_.met(gap, place(gap.first));
        if (!lines_.has_gaps()) return;
        begin_lines();
        lines_.put_gap(gap, place(gap.first), recent_.text({gap.first, gap.bytes()}));
    }

private:
    void begin_lines() {
        if (!std::exchange(headed_, true)) lines_.put_heads("source " + lines_.source, "bytes", "packet");
    }
    /// Offset in the file for an offset in the stream.
    [[nodiscard]] std::uint64_t place(Offset at) const {
        for (std::size_t i = places_.size(); i-- > 0;)
            if (places_[i].stream <= at.value) return places_[i].file + (at.value - places_[i].stream);
        return at.value;
    }

    struct PlaceInFile {
        std::uint64_t stream, file;
    };
    PacketLines& lines_;
    std::uint32_t midr_ = 0;
    bool headed_ = false;
    RecentBytes recent_;
    std::vector<PlaceInFile> places_;
};

constexpr PacketColumns columns_of_samples{.packet = "packet", .wire = "bytes", .gap = "GAP", .sources = true};

/// Gives the bytes of one CPU to its parser.
Status list_stream(const analysis::SampleCapture& capture, const perf::Stream& stream, SpePackets& packets) {
    std::vector<std::uint8_t> buffer(std::size_t{1} << 16);
    std::uint64_t at = 0;
    std::optional<spe::Parser<SpePackets>> parser;
    Status out = Nothing{};
    for (const perf::Stretch& part : stream.stretches) {
        if (!parser || !part.follows) {
            if (parser) parser->finish();
            packets.restart();
            parser.emplace(packets);
            at = 0;
        }
        for (std::uint64_t read = 0; read < part.bytes && out;) {
            auto got = capture.read(part, read, buffer);
            if (!got) {
                out = got.error();
                break;
            }
            const Bytes bytes = Bytes(buffer).first(*got);
            packets.piece(at, part.payload + read, bytes);
            parser->feed(bytes);
            at += *got;
            read += *got;
        }
        if (!out) break;
    }
    if (parser) parser->finish();
    return out;
}

}  // namespace

Status list_spe_packets(const analysis::SampleCapture& capture, TextSink& out, LineFormat format,
                        const PacketTypes& types, PacketsListed& listed) {
    PacketLines lines(out, format, columns_of_samples, types);
    SpePackets packets(lines);
    Status done = Nothing{};
    for (const perf::Stream& stream : capture.streams) {
        packets.begin(
            stream.cpu != perf::nobody ? fmt::format("CPU {}", stream.cpu) : fmt::format("thread {}", stream.tid),
            capture.midr_of(stream.cpu));
        done = list_stream(capture, stream, packets);
        if (!done) break;
    }
    listed = lines.listed;
    return done;
}

}  // namespace waymark::listing
