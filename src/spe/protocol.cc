#include "waymark/spe/protocol.h"

#include <fmt/format.h>

#include "waymark/core/numbers.h"
#include "waymark/protocol/adapters.h"
#include "waymark/spe/decoder.h"
#include "waymark/spe/packet.h"

namespace waymark::spe {

namespace {

using protocol::CaptureFinding;
using protocol::Severity;
using protocol::Stretch;

class CountRecords final : public RecordSink {
public:
    void consume(const RecordBatch& batch) override {
        for (std::size_t i = 0; i < batch.records.size; ++i) {
            const Record r = batch.records.row(i);
            // Counts the contents of a sample, which are its address and its kind. In a damaged record a time shortly
            // after the one before shows as much: random bytes hardly have two such times.
            const bool kind = r.has(RecordColumn::events) && r.has(RecordColumn::operation);
            if (kind && ((r.defects == 0 && r.has(RecordColumn::pc)) || follows_in_time(r))) ++sound;
            time_ = r.has(RecordColumn::timestamp) ? r.timestamp : 0;
        }
    }
    std::uint64_t sound = 0;

private:
    [[nodiscard]] bool follows_in_time(const Record& r) const {
        constexpr std::uint64_t shortly = std::uint64_t{1} << 32;
        return r.has(RecordColumn::timestamp) && time_ != 0 && r.timestamp > time_ && r.timestamp - time_ < shortly;
    }
    std::uint64_t time_ = 0;
};

/// Decodes the records of a stretch. The last one may have been cut right before the packet that ends it.
Totals count(Bytes bytes, bool ended, CountRecords& sink) {
    constexpr std::uint8_t end_packet = 0x01;
    Decoder decoder(sink);
    decoder.feed(bytes);
    if (ended) decoder.feed({&end_packet, 1});
    decoder.finish();
    return decoder.totals();
}

class ProtocolRow final : public protocol::Protocol {
public:
    [[nodiscard]] const protocol::Words& words() const override {
        static constexpr protocol::Words words{.unit = "SPE",
                                               .unit_title = "Statistical Profiling unit",
                                               .trace = "Statistical Profiling records",
                                               .title = "Statistical Profiling (SPE)",
                                               .types = {}};
        return words;
    }
    [[nodiscard]] std::vector<std::string> packet_names() const override { return protocol::names_of<Packets>(); }

    [[nodiscard]] bool identify(const std::vector<Stretch>& stretches, protocol::Identity& out) const override {
        std::uint64_t records = 0, sound = 0, lost = 0, bytes = 0, padding = 0;
        for (const Stretch& stretch : stretches) {
            CountRecords sink;
            Totals t = count(stretch.bytes, false, sink);
            if (sink.sound == 0) {
                sink = {};
                t = count(stretch.bytes, true, sink);
            }
            records += t.records;
            sound += sink.sound;
            lost += t.lost_bytes + t.damaged_bytes;
            padding += t.padding_bytes;
            bytes += t.bytes;
        }
        out.tried.push_back({"Statistical Profiling records",
                             fmt::format("{}, {} of them sound, {} of {} outside records", counted(records, "record"),
                                         sound, lost, counted(bytes, "byte"))});
        if (sound == 0 || sound * 2 < records || lost * 4 > bytes - padding) return false;
        out.protocol = this;
        out.entries = records;
        out.lost_bytes = lost;
        return true;
    }
    [[nodiscard]] std::vector<CaptureFinding> health(const protocol::Identity& identity, const protocol::Configuration*,
                                                     const std::vector<Stretch>& stretches,
                                                     std::string_view buffer) const override {
        std::vector<CaptureFinding> out =
            protocol::lost_bytes_findings(identity, stretches, "record", "records", "records only",
                                          "waymark spe records shows where; the records around them are kept");
        out.push_back(
            {Severity::note,
             "bare",
             {},
             {},
             {},
             "the bare bytes of a profiling buffer",
             "a perf.data file",
             "they contain neither threads nor programs nor the interval",
             fmt::format("waymark spe report {} shows their contents; perf record writes everything", buffer)});
        return out;
    }
    [[nodiscard]] std::string how_to_read(std::string_view file) const override {
        return fmt::format(
            "{} contains the bare records of a Statistical Profiling unit (SPE), without the perf.data file that would "
            "be around them: waymark spe report {} summarises them, waymark spe records lists them",
            file, file);
    }
    [[nodiscard]] std::string next_step(std::string_view file) const override {
        return fmt::format("waymark spe report {} explains what the samples mean", file);
    }
};

}  // namespace

const protocol::Protocol& row() {
    static const ProtocolRow row;
    return row;
}

}  // namespace waymark::spe
