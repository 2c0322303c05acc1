// Packets of ETMv4 and ETE compared with OpenCSD: with its packet lister (1.8.0) for real captures, column by column,
// and with its library (Debian's libopencsd-dev) for generated streams. Where OpenCSD is known to differ, our packets
// are changed by one narrow rule per quirk, each counted and printed; then all must be equal.

#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "differential/comparing.h"
#include "differential/etm4_captures.h"
#include "etm4/support.h"
#include "support/corpus.h"
#include "support/sanitized.h"
#include "waymark/capture/snapshot.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/etm4/parser.h"
#include "waymark/etm4/state.h"

#ifdef WAYMARK_OPENCSD
#include <opencsd/c_api/opencsd_c_api.h>
#endif

namespace waymark::etm4 {
namespace {

using comparing::Quirks;

std::string to_line(const Row& row) {
    std::string out;
    for (const auto& [column, value] : row) out += " " + column + "=" + value;
    return out;
}

std::string hex_bytes(const std::vector<std::uint8_t>& bytes) {
    std::string out;
    for (const std::uint8_t byte : bytes) {
        char digits[4];
        std::snprintf(digits, sizeof digits, "%s%02x", out.empty() ? "" : " ", byte);
        out += digits;
    }
    return out;
}

// ---- our packets, as OpenCSD would give them

/// Packet names: ours to OpenCSD's, where the name alone decides.
constexpr std::pair<std::string_view, std::string_view> packet_names[] = {
    {"A-SYNC", "I_ASYNC"},
    {"DISCARD", "I_DISCARD"},
    {"OVERFLOW", "I_OVERFLOW"},
    {"TRACE-INFO", "I_TRACE_INFO"},
    {"TIMESTAMP", "I_TIMESTAMP"},
    {"TIMESTAMP-MARKER", "I_TS_MARKER"},
    {"TRACE-ON", "I_TRACE_ON"},
    {"FUNCTION-RETURN", "I_FUNC_RET"},
    {"CYCLE-COUNT-F1", "I_CCNT_F1"},
    {"CYCLE-COUNT-F2", "I_CCNT_F2"},
    {"CYCLE-COUNT-F3", "I_CCNT_F3"},
    {"EVENT", "I_EVENT"},
    {"IGNORE", "I_IGNORE"},
    {"CONTEXT", "I_CTXT"},
    {"ADDRESS-EXACT-MATCH", "I_ADDR_MATCH"},
    {"COMMIT", "I_COMMIT"},
    {"CANCEL-F1", "I_CANCEL_F1"},
    {"CANCEL-F2", "I_CANCEL_F2"},
    {"CANCEL-F3", "I_CANCEL_F3"},
    {"MISPREDICT", "I_MISPREDICT"},
    {"EXCEPTION", "I_EXCEPT"},
    {"EXCEPTION-RETURN", "I_EXCEPT_RTN"},
    {"Q", "I_Q"},
    {"SOURCE-ADDRESS-EXACT-MATCH", "I_SRC_ADDR_MATCH"},
    {"TRANSACTION-START", "I_TRANS_ST"},
    {"TRANSACTION-COMMIT", "I_TRANS_COMMIT"},
    {"INSTRUMENTATION", "I_ITE"},
    {"CONDITIONAL-INSTRUCTION-F1", "I_COND_I_F1"},
    {"CONDITIONAL-INSTRUCTION-F2", "I_COND_I_F2"},
    {"CONDITIONAL-INSTRUCTION-F3", "I_COND_I_F3"},
    {"CONDITIONAL-FLUSH", "I_COND_FLUSH"},
    {"CONDITIONAL-RESULT-F1", "I_COND_RES_F1"},
    {"CONDITIONAL-RESULTS-F1", "I_COND_RES_F1"},
    {"CONDITIONAL-RESULT-F2", "I_COND_RES_F2"},
    {"CONDITIONAL-RESULT-F3", "I_COND_RES_F3"},
    {"CONDITIONAL-RESULT-F4", "I_COND_RES_F4"},
    {"NUMBERED-DATA-SYNC-MARKER", "I_NUM_DS_MKR"},
    {"UNNUMBERED-DATA-SYNC-MARKER", "I_UNNUM_DS_MKR"},
};
std::string packet_name(std::string_view ours) {
    for (const auto& [name, theirs] : packet_names)
        if (name == ours) return std::string(theirs);
    return "?" + std::string(ours);
}

/// The version of OpenCSD to compare with.
enum class Peer : std::uint8_t {
    lister,   ///< 1.8.0, which made the goldens
    library,  ///< Debian's, 1.3.3
};

/// Makes rows of our packets.
class Rows {
public:
    /// `quirks` counts the changes made for equality.
    Rows(const Config& config, Quirks& quirks, Peer peer)
        : config_(config), state_(config), quirks_(quirks), peer_(peer) {}

    std::vector<Row> rows;
    std::vector<Gap> gaps;

    template <class P>
    void operator()(const P& packet, Extent at) {
        Row row;
        row["packet"] = packet_name(P::info.name);
        row["offset"] = std::to_string(at.first.value);
        row["length"] = std::to_string(at.bytes);
        std::vector<std::uint8_t> bytes;
        encode(bytes, packet, config_);
        row["bytes"] = hex_bytes(bytes);
        fill(row, packet, state_(packet));
        rows.push_back(std::move(row));
    }
    void operator()(const Gap& gap) {
        state_(gap);
        gaps.push_back(gap);
    }

private:
    static void number(Row& row, const char* column, std::uint64_t value) { row[column] = std::to_string(value); }

    /// OpenCSD keeps bits 63:32 of a 32-bit address only while the last context is AArch64 (quirk).
    void address(Row& row, const SentAddress* sent, const Meaning& m) {
        std::uint64_t value = m.address->address.value;
        // The quirk's result remains in OpenCSD's address history, so this class keeps a copy of that history beside
        // ours.
        if (sent != nullptr) {
            KnownAddress place = theirs_.complete(*sent);
            if (sent->bytes == 4 && !sf_) place.address.value &= 0xffffffffU;
            theirs_.push(place);
        }
        if (const std::uint64_t quirk = theirs_.entry(0).address.value; quirk != value) {
            ++quirks_["bits 63:32 of a 32-bit address taken as 0 outside AArch64"];
            value = quirk;
        }
        number(row, "address", value);
        if (sent != nullptr && sent->bytes <= 2) number(row, "carried", sent->value);
    }
    void match(Row& row, unsigned entry, const Meaning& m) {
        theirs_.match(entry);
        number(row, "entry", entry);
        address(row, nullptr, m);
    }
    static std::string long_name(const char* prefix, const SentAddress& sent) {
        return std::string(prefix) + (sent.bytes == 4 ? "_L_32" : "_L_64") + (sent.is1 ? "IS1" : "IS0");
    }
    void context(Row& row, const ContextFields& p) {
        constexpr const char* security[] = {"S", "NS", "Root", "Realm"};
        row["context"] = "new";
        number(row, "el", p.el);
        row["security"] = security[(p.nse ? 2 : 0) + (p.ns ? 1 : 0)];
        number(row, "width", p.sf ? 64 : 32);
        if (p.has_vmid) number(row, "vmid", p.vmid);
        if (p.has_context_id) number(row, "contextid", p.context_id);
        sf_ = p.sf;
    }
    static void counted(Row& row, const Meaning& m) {
        number(row, "cycles", m.count->cycles.value_or(0));  // it gives 0 for unknown
        if (m.count->commit) number(row, "commit", *m.count->commit);
    }
    bool commits(const Meaning& m) {
        if (m.count->commit) return true;
        if (peer_ == Peer::library) ++quirks_["commit count of format 2 in commit mode 1 (1.3.3)"];
        return peer_ == Peer::library;
    }
    static void atoms(Row& row, const Atoms& a) {
        if (a.count != 0) AtomField::print(row["atoms"], a);
    }

    void fill(Row& row, const TraceInfo& p, const Meaning&) {
        theirs_.reset();
        number(row, "value", p.info_section & 0xffU);  // it gives the low 8 bits
        if (p.has_threshold()) number(row, "threshold", p.threshold);
        if (p.has_speculation()) number(row, "spec", p.speculation);
    }
    void fill(Row& row, const Timestamp& p, const Meaning& m) {
        number(row, "timestamp", m.timestamp.value_or(0));
        if (p.has_cycles) number(row, "cycles", m.count->cycles.value_or(0));
    }
    void fill(Row& row, const CycleCountF1&, const Meaning& m) { counted(row, m); }
    void fill(Row& row, const CycleCountF2& p, const Meaning& m) {
        counted(row, m);
        if (!commits(m)) return;
        bool from_maximum = p.from_maximum;
        if (peer_ == Peer::library && from_maximum != ((p.count & 1U) != 0)) {
            ++quirks_["F of a cycle count format 2 taken from bit 0 of its second byte (1.3.3)"];
            from_maximum = !from_maximum;
        }
        const std::uint32_t commit = from_maximum ? p.commit + config_.max_speculation - 15 : p.commit + 1U;
        if (from_maximum && p.commit + config_.max_speculation < 15)
            ++quirks_["commit count below zero, where MAXSPEC is too small for it"];
        number(row, "commit", commit);
    }
    void fill(Row& row, const CycleCountF3&, const Meaning& m) { counted(row, m); }
    void fill(Row& row, const Event& p, const Meaning&) { number(row, "value", p.events); }
    void fill(Row& row, const Context& p, const Meaning&) {
        if (p.has_payload)
            context(row, p);
        else
            row["context"] = "same";
    }
    void fill(Row& row, const ShortAddress& p, const Meaning& m) {
        row["packet"] = p.address.is1 ? "I_ADDR_S_IS1" : "I_ADDR_S_IS0";
        address(row, &p.address, m);
    }
    void fill(Row& row, const LongAddress& p, const Meaning& m) {
        row["packet"] = long_name("I_ADDR", p.address);
        address(row, &p.address, m);
    }
    void fill(Row& row, const ExactMatchAddress& p, const Meaning& m) { match(row, p.entry, m); }
    void fill(Row& row, const AddressWithContext& p, const Meaning& m) {
        row["packet"] = long_name("I_ADDR_CTXT", p.address);
        address(row, &p.address, m);
        context(row, p);
    }
    void fill(Row& row, const ShortSourceAddress& p, const Meaning& m) {
        row["packet"] = p.address.is1 ? "I_SRC_ADDR_S_IS1" : "I_SRC_ADDR_S_IS0";
        address(row, &p.address, m);
    }
    void fill(Row& row, const LongSourceAddress& p, const Meaning& m) {
        row["packet"] = long_name("I_SRC_ADDR", p.address);
        address(row, &p.address, m);
    }
    void fill(Row& row, const ExactMatchSourceAddress& p, const Meaning& m) { match(row, p.entry, m); }
    void fill(Row& row, const Q& p, const Meaning& m) {
        if (p.has_count()) number(row, "count", p.count);
        if (p.has_entry()) return match(row, p.type, m);
        if (!p.has_short_address() && !p.has_long_address()) return;
        address(row, &p.address, m);
        number(row, "carried", p.address.value);
    }
    void fill(Row& row, const Atom& p, const Meaning&) {
        row["packet"] = "I_ATOM_F" + std::to_string(atom_format(atom_header(p.atoms)));
        atoms(row, p.atoms);
    }
    void fill(Row& row, const Commit& p, const Meaning&) { number(row, "commit", p.count); }
    void fill(Row& row, const CancelF1& p, const Meaning&) {
        if (p.mispredict) row["packet"] = "I_CANCEL_F1_MISPRED";
        number(row, "cancel", p.count);
        if (p.mispredict) number(row, "mispredict", 1);
    }
    void fill(Row& row, const CancelF2& p, const Meaning&) {
        atoms(row, speculation_atoms(p.atoms));
        number(row, "cancel", 1);
        number(row, "mispredict", 1);
    }
    void fill(Row& row, const CancelF3& p, const Meaning&) {
        if (p.atom) row["atoms"] = "E";
        number(row, "cancel", p.count + 2U);
        number(row, "mispredict", 1);
    }
    void fill(Row& row, const Mispredict& p, const Meaning&) {
        atoms(row, speculation_atoms(p.atoms));
        number(row, "mispredict", 1);
    }
    void fill(Row& row, const Exception& p, const Meaning&) {
        if (p.address_unknown(config_)) {
            theirs_.push_unknown();
            row["packet"] = p.is_pe_reset(config_) ? "I_PE_RESET" : "I_TRANS_FAIL";
            return;
        }
        number(row, "exception", p.type());
        number(row, "E", (p.e1 ? 2U : 0U) + (p.e0 ? 1U : 0U));
        if (p.fault_pending) number(row, "fault_pending", 1);
    }
    void fill(Row& row, const Instrumentation& p, const Meaning&) {
        number(row, "el", p.el);
        number(row, "value", p.value);
    }
    void fill(Row& row, const ConditionalInstructionF2& p, const Meaning&) {
        number(row, "elements", p.kind == 2 ? 2 : 1);
        number(row, "increment", p.kind == 1 ? 0 : 1);
    }
    void fill(Row& row, const ConditionalInstructionF3& p, const Meaning&) {
        number(row, "elements", p.count + (p.final_differs ? 1U : 0U));
        number(row, "final", p.final_differs ? 1 : 0);
    }
    void fill(Row& row, const ConditionalResultF1& p, const Meaning&) {
        number(row, "key0", p.result.key & 0xffffffffU);
        number(row, "result0", p.result.result);
        number(row, "ci0", p.ci0 ? 1 : 0);
    }
    void fill(Row& row, const ConditionalResultsF1& p, const Meaning&) {
        number(row, "key0", p.first.key & 0xffffffffU);
        number(row, "result0", p.first.result);
        number(row, "ci0", p.ci0 ? 1 : 0);
        number(row, "key1", p.second.key & 0xffffffffU);
        number(row, "result1", p.second.result);
        number(row, "ci1", p.ci1 ? 1 : 0);
    }
    void fill(Row& row, const ConditionalResultF2& p, const Meaning&) {
        number(row, "token", p.token());
        number(row, "key_increment", p.key_increment());
    }
    void fill(Row& row, const ConditionalResultF3& p, const Meaning&) {
        number(row, "tokens", p.tokens_11_8 * 256U + p.tokens_7_0);
    }
    void fill(Row& row, const ConditionalResultF4& p, const Meaning&) { number(row, "token", p.token); }
    void fill(Row& row, const NumberedDataSyncMarker& p, const Meaning&) { number(row, "value", p.number); }
    void fill(Row& row, const UnnumberedDataSyncMarker& p, const Meaning&) { number(row, "value", p.value); }
    void fill(Row&, const auto&, const Meaning&) {}

    const Config& config_;
    PacketState state_;
    AddressHistory theirs_;
    bool sf_ = false;
    Quirks& quirks_;
    Peer peer_;
};

std::string first_difference(const std::vector<Row>& ours, const std::vector<Row>& theirs) {
    return comparing::first_difference(ours, theirs, std::equal_to<>(), to_line);
}

// ---- captures

/// Bytes that OpenCSD calls unsynchronised or cut off must be in a gap of ours; they have no other columns to compare.
std::vector<Row> without_gaps(const std::vector<Row>& theirs, const std::vector<Gap>& gaps, Quirks& quirks) {
    std::vector<Row> out;
    for (const Row& row : theirs) {
        const std::string& name = row.at("packet");
        if (name != "I_NOT_SYNC" && name != "I_INCOMPLETE_EOT") {
            out.push_back(row);
            continue;
        }
        const std::uint64_t at = std::stoull(row.at("offset"));
        EXPECT_TRUE(std::any_of(gaps.begin(), gaps.end(), [&](const Gap& gap) {
            return gap.first.value <= at && at < gap.end.value;
        })) << to_line(row);
        ++quirks[name + " rows, in our gaps"];
    }
    return out;
}

class Etm4Golden : public CaptureTest {
protected:
    void SetUp() override { find({".packets.tsv", ".packets.tsv.zst"}); }
};

TEST_P(Etm4Golden, PacketsAreEqual) {
    const std::string name = GetParam();
    const Golden golden = read_golden(golden_);
    ASSERT_FALSE(golden.empty());
    Quirks quirks;
    std::size_t compared = 0;
    for (const auto& [key, theirs] : golden) {
        const auto& [id, buffer_name] = key;
        SCOPED_TRACE(name + " " + buffer_name + " " + std::to_string(id));
        const Source source = read_source(folder_, id, buffer_name);
        ASSERT_TRUE(source.config.has_value());
        const Config& config = *source.config;
        const Stream& stream = source.stream;
        Rows rows(config, quirks, Peer::lister);
        Parser<Rows> parser(config, rows);
        parser.feed(stream.bytes);
        parser.finish();
        for (Row& row : rows.rows) row["offset"] = std::to_string(stream.offsets[std::stoull(row["offset"])]);
        for (Gap& gap : rows.gaps)
            gap = {{stream.offsets[gap.first.value]}, {stream.offsets[gap.end.value - 1] + 1}, gap.reason};
        const std::vector<Row> packets = without_gaps(theirs, rows.gaps, quirks);
        // Only bytes at the ends of a stream are in gaps.
        for (const Gap& gap : rows.gaps)
            EXPECT_TRUE(gap.reason == GapReason::unsynchronised || gap.reason == GapReason::incomplete_packet ||
                        gap.reason == GapReason::padding)
                << gap.first.value << ": " << waymark::name(gap.reason);
        ASSERT_EQ(first_difference(rows.rows, packets), "");
        compared += packets.size();
    }
    comparing::print(name, compared, "packets", quirks);
}

/// A packet or gap: where it is, and its kind.
struct Item {
    std::uint64_t first, bytes;
    std::string_view kind;
    friend bool operator==(const Item&, const Item&) = default;
};
struct ItemCollector {
    std::vector<Item> items;
    template <class P>
    void operator()(const P&, Extent at) {
        items.push_back({at.first.value, at.bytes, P::info.name});
    }
    void operator()(const Gap& gap) { items.push_back({gap.first.value, gap.bytes(), waymark::name(gap.reason)}); }
};
std::vector<Item> items_of(Bytes bytes, const Config& config) {
    ItemCollector collector;
    Parser<ItemCollector> parser(config, collector);
    parser.feed(bytes);
    parser.finish();
    return std::move(collector.items);
}
void expect_accounted(const std::vector<Item>& items, std::size_t bytes) {
    std::uint64_t at = 0;
    for (const Item& item : items) {
        ASSERT_EQ(item.first, at);
        ASSERT_GT(item.bytes, 0U);
        at += item.bytes;
    }
    ASSERT_EQ(at, bytes);
}

/// Offsets of A-sync packets.
std::vector<std::uint64_t> syncs_of(const std::vector<Item>& items) {
    std::vector<std::uint64_t> out;
    for (const Item& item : items)
        if (item.kind == ASync::info.name) out.push_back(item.first);
    return out;
}

// A stretch of a capture of up to four periods from one A-sync to the next, with bytes changed, lost or added in the
// first period: every byte is in a packet or a gap, and from the third A-sync on the packets are unchanged. (The second
// A-sync may be partly consumed by a packet that the damage lengthened.)
TEST_P(Etm4Golden, IsRightAgainAfterDamage) {
    const char* const wanted = std::getenv("WAYMARK_DAMAGES");
    const unsigned damages = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : sized(60U, 20U);
    wire::Random random(1);
    unsigned resynchronised = 0;
    for (const auto& [key, rows] : read_golden(golden_)) {
        const auto& [id, buffer_name] = key;
        SCOPED_TRACE(buffer_name + " " + std::to_string(id));
        const Source source = read_source(folder_, id, buffer_name);
        ASSERT_TRUE(source.config.has_value());
        const Bytes whole(source.stream.bytes);
        std::vector<std::uint64_t> syncs = syncs_of(items_of(whole, *source.config));
        ASSERT_FALSE(syncs.empty());
        syncs.push_back(whole.size());
        for (unsigned n = 0; n < damages; ++n) {
            const std::size_t first = random() % (syncs.size() - 1), last = std::min(first + 4, syncs.size() - 1);
            const Bytes piece = whole.subspan(syncs[first], syncs[last] - syncs[first]);
            std::vector<std::uint8_t> bytes(piece.begin(), piece.end());
            const std::uint64_t period = syncs[first + 1] - syncs[first];
            for (auto times = 1 + random() % 3; times != 0; --times) {
                const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(random() % (period - 3));
                switch (random() % 4) {
                    case 0: *at = static_cast<std::uint8_t>(*at ^ 1U << random() % 8); break;
                    case 1: *at = static_cast<std::uint8_t>(random()); break;
                    case 2: bytes.erase(at); break;
                    default: bytes.insert(at, static_cast<std::uint8_t>(random())); break;
                }
            }
            const std::vector<Item> damaged = items_of(bytes, *source.config);
            ASSERT_NO_FATAL_FAILURE(expect_accounted(damaged, bytes.size()));
            if (last - first < 4) continue;
            // From the end backwards, since the damage may have moved everything.
            const std::uint64_t good = syncs[last] - syncs[first + 2];
            std::vector<Item> expected = items_of(piece, *source.config), found = damaged;
            const auto from_end = [&](std::vector<Item>& items, std::size_t size) {
                std::erase_if(items, [&](const Item& item) { return item.first + good < size; });
                for (Item& item : items) item.first = size - item.first;
            };
            from_end(expected, piece.size());
            from_end(found, bytes.size());
            ASSERT_EQ(found, expected) << "damage " << n;
            ++resynchronised;
        }
        // Cut anywhere in the first period: whole packets remain, the rest is one gap.
        const Bytes piece = whole.subspan(syncs[0], syncs[1] - syncs[0]);
        const std::vector<Item> items = items_of(piece, *source.config);
        for (std::size_t cut = 0; cut < std::min<std::size_t>(piece.size(), 300); ++cut) {
            std::vector<Item> found = items_of(piece.first(cut), *source.config);
            std::vector<Item> expected;
            for (const Item& item : items)
                if (item.first + item.bytes <= cut) expected.push_back(item);
            const std::uint64_t covered = expected.empty() ? 0 : expected.back().first + expected.back().bytes;
            if (covered != cut) {
                ASSERT_FALSE(found.empty());
                ASSERT_EQ(found.back().first, covered);
                ASSERT_EQ(found.back().bytes, cut - covered);
                found.pop_back();
            }
            ASSERT_EQ(found, expected) << "cut at " << cut;
        }
    }
    std::printf("%s: right again after %u damages\n", GetParam(), resynchronised);
}

INSTANTIATE_TEST_SUITE_P(captures, Etm4Golden, captures(), capture_test_name);

// No golden of packets is left out.
TEST(Etm4Goldens, AreAllCompared) {
    WM_NEEDS_CORPUS("../conformance/golden");
    unsigned found = 0;
    for (const auto& entry : std::filesystem::directory_iterator(support::corpus_path("../conformance/golden"))) {
        std::string name = entry.path().filename();
        const std::size_t end = name.find(".packets.tsv");
        if (end == std::string::npos || !(name.starts_with("etmv4-") || name.starts_with("ete-"))) continue;
        name.resize(end);
        EXPECT_NE(std::find(std::begin(capture_names), std::end(capture_names), name), std::end(capture_names)) << name;
        ++found;
    }
    EXPECT_EQ(found, std::size(capture_names));
}

// ---- generated streams, through OpenCSD's library

#ifdef WAYMARK_OPENCSD

/// Turns OpenCSD's packets into rows.
class Theirs {
public:
    std::vector<Row> rows;

    static void monitor(const void* context, const ocsd_datapath_op_t op, const ocsd_trc_index_t index,
                        const void* packet, const std::uint32_t size, const std::uint8_t* data) {
        if (op != OCSD_OP_DATA || packet == nullptr) return;
        static_cast<Theirs*>(const_cast<void*>(context))
            ->take(*static_cast<const ocsd_etmv4_i_pkt*>(packet), index, {data, data + size});
    }

private:
    static std::string name_of(ocsd_etmv4_i_pkt_type type) {
        const std::pair<ocsd_etmv4_i_pkt_type, const char*> names[] = {
            {ETM4_PKT_I_ASYNC, "I_ASYNC"},
            {ETM4_PKT_I_DISCARD, "I_DISCARD"},
            {ETM4_PKT_I_OVERFLOW, "I_OVERFLOW"},
            {ETM4_PKT_I_TRACE_INFO, "I_TRACE_INFO"},
            {ETM4_PKT_I_TIMESTAMP, "I_TIMESTAMP"},
            {ETM4_PKT_I_TRACE_ON, "I_TRACE_ON"},
            {ETM4_PKT_I_FUNC_RET, "I_FUNC_RET"},
            {ETM4_PKT_I_EXCEPT, "I_EXCEPT"},
            {ETM4_PKT_I_EXCEPT_RTN, "I_EXCEPT_RTN"},
            {ETE_PKT_I_TRANS_ST, "I_TRANS_ST"},
            {ETE_PKT_I_TRANS_COMMIT, "I_TRANS_COMMIT"},
            {ETE_PKT_I_TRANS_FAIL, "I_TRANS_FAIL"},
            {ETE_PKT_I_PE_RESET, "I_PE_RESET"},
            {ETM4_PKT_I_CCNT_F1, "I_CCNT_F1"},
            {ETM4_PKT_I_CCNT_F2, "I_CCNT_F2"},
            {ETM4_PKT_I_CCNT_F3, "I_CCNT_F3"},
            {ETM4_PKT_I_NUM_DS_MKR, "I_NUM_DS_MKR"},
            {ETM4_PKT_I_UNNUM_DS_MKR, "I_UNNUM_DS_MKR"},
            {ETM4_PKT_I_COMMIT, "I_COMMIT"},
            {ETM4_PKT_I_CANCEL_F1, "I_CANCEL_F1"},
            {ETM4_PKT_I_CANCEL_F1_MISPRED, "I_CANCEL_F1_MISPRED"},
            {ETM4_PKT_I_MISPREDICT, "I_MISPREDICT"},
            {ETM4_PKT_I_CANCEL_F2, "I_CANCEL_F2"},
            {ETM4_PKT_I_CANCEL_F3, "I_CANCEL_F3"},
            {ETM4_PKT_I_COND_I_F1, "I_COND_I_F1"},
            {ETM4_PKT_I_COND_I_F2, "I_COND_I_F2"},
            {ETM4_PKT_I_COND_I_F3, "I_COND_I_F3"},
            {ETM4_PKT_I_COND_FLUSH, "I_COND_FLUSH"},
            {ETM4_PKT_I_COND_RES_F1, "I_COND_RES_F1"},
            {ETM4_PKT_I_COND_RES_F2, "I_COND_RES_F2"},
            {ETM4_PKT_I_COND_RES_F3, "I_COND_RES_F3"},
            {ETM4_PKT_I_COND_RES_F4, "I_COND_RES_F4"},
            {ETM4_PKT_I_IGNORE, "I_IGNORE"},
            {ETM4_PKT_I_EVENT, "I_EVENT"},
            {ETM4_PKT_I_CTXT, "I_CTXT"},
            {ETM4_PKT_I_ADDR_CTXT_L_32IS0, "I_ADDR_CTXT_L_32IS0"},
            {ETM4_PKT_I_ADDR_CTXT_L_32IS1, "I_ADDR_CTXT_L_32IS1"},
            {ETM4_PKT_I_ADDR_CTXT_L_64IS0, "I_ADDR_CTXT_L_64IS0"},
            {ETM4_PKT_I_ADDR_CTXT_L_64IS1, "I_ADDR_CTXT_L_64IS1"},
            {ETE_PKT_I_TS_MARKER, "I_TS_MARKER"},
            {ETM4_PKT_I_ADDR_MATCH, "I_ADDR_MATCH"},
            {ETM4_PKT_I_ADDR_S_IS0, "I_ADDR_S_IS0"},
            {ETM4_PKT_I_ADDR_S_IS1, "I_ADDR_S_IS1"},
            {ETM4_PKT_I_ADDR_L_32IS0, "I_ADDR_L_32IS0"},
            {ETM4_PKT_I_ADDR_L_32IS1, "I_ADDR_L_32IS1"},
            {ETM4_PKT_I_ADDR_L_64IS0, "I_ADDR_L_64IS0"},
            {ETM4_PKT_I_ADDR_L_64IS1, "I_ADDR_L_64IS1"},
            {ETM4_PKT_I_Q, "I_Q"},
            {ETE_PKT_I_SRC_ADDR_MATCH, "I_SRC_ADDR_MATCH"},
            {ETE_PKT_I_SRC_ADDR_S_IS0, "I_SRC_ADDR_S_IS0"},
            {ETE_PKT_I_SRC_ADDR_S_IS1, "I_SRC_ADDR_S_IS1"},
            {ETE_PKT_I_SRC_ADDR_L_32IS0, "I_SRC_ADDR_L_32IS0"},
            {ETE_PKT_I_SRC_ADDR_L_32IS1, "I_SRC_ADDR_L_32IS1"},
            {ETE_PKT_I_SRC_ADDR_L_64IS0, "I_SRC_ADDR_L_64IS0"},
            {ETE_PKT_I_SRC_ADDR_L_64IS1, "I_SRC_ADDR_L_64IS1"},
            {ETM4_PKT_I_ATOM_F1, "I_ATOM_F1"},
            {ETM4_PKT_I_ATOM_F2, "I_ATOM_F2"},
            {ETM4_PKT_I_ATOM_F3, "I_ATOM_F3"},
            {ETM4_PKT_I_ATOM_F4, "I_ATOM_F4"},
            {ETM4_PKT_I_ATOM_F5, "I_ATOM_F5"},
            {ETM4_PKT_I_ATOM_F6, "I_ATOM_F6"},
            {ETM4_PKT_I_NOTSYNC, "I_NOT_SYNC"},
            {ETM4_PKT_I_INCOMPLETE_EOT, "I_INCOMPLETE_EOT"},
            {ETM4_PKT_I_BAD_SEQUENCE, "I_BAD_SEQUENCE"},
            {ETM4_PKT_I_RESERVED, "I_RESERVED"},
        };
        for (const auto& [value, name] : names)
            if (value == type) return name;
        return "type " + std::to_string(type);
    }

    void take(const ocsd_etmv4_i_pkt& p, std::uint64_t index, std::vector<std::uint8_t> bytes) {
        Row row;
        const auto number = [&](const char* column, std::uint64_t value) { row[column] = std::to_string(value); };
        const auto atoms = [&] {
            std::string text;
            for (unsigned i = 0; i < p.atom.num; ++i) text += (p.atom.En_bits >> i & 1U) != 0 ? 'E' : 'N';
            if (!text.empty()) row["atoms"] = text;
        };
        const std::string name = name_of(p.type);
        row["packet"] = name;
        number("offset", index);
        number("length", bytes.size());
        row["bytes"] = hex_bytes(bytes);
        const auto starts = [&](std::string_view prefix) { return name.starts_with(prefix); };
        const bool with_context = starts("I_ADDR_CTXT") || p.type == ETM4_PKT_I_CTXT;
        if (starts("I_ADDR") || starts("I_SRC_ADDR") || (p.type == ETM4_PKT_I_Q && p.Q_pkt.addr_present != 0) ||
            (p.type == ETM4_PKT_I_Q && p.Q_pkt.addr_match != 0)) {
            number("address", p.v_addr.val);
            if (name.ends_with("MATCH") || (p.type == ETM4_PKT_I_Q && p.Q_pkt.addr_match != 0))
                number("entry", p.addr_exact_match_idx);
            else if (starts("I_ADDR_S") || starts("I_SRC_ADDR_S") || p.type == ETM4_PKT_I_Q)
                number("carried", p.v_addr.val & ((std::uint64_t{1} << p.v_addr.pkt_bits) - 1));
        }
        if (with_context && p.context.updated == 0) row["context"] = "same";
        if (with_context && p.context.updated != 0) {
            constexpr const char* security[] = {"S", "NS", "Root", "Realm"};
            row["context"] = "new";
            number("el", p.context.EL);
            row["security"] = security[p.context.NSE * 2 + p.context.NS];
            number("width", p.context.SF != 0 ? 64 : 32);
            if (p.context.updated_v != 0) number("vmid", p.context.VMID);
            if (p.context.updated_c != 0) number("contextid", p.context.ctxtID);
        }
        if (starts("I_ATOM")) atoms();
        if (starts("I_CCNT")) {
            number("cycles", p.pkt_valid.bits.cc_valid != 0 ? p.cycle_count : 0);
            if (p.pkt_valid.bits.commit_elem_valid != 0) number("commit", p.commit_elements);
        }
        switch (p.type) {
            case ETM4_PKT_I_TRACE_INFO:
                number("value", p.trace_info.val & 0xffU);
                if ((bytes[1] & 8U) != 0) number("threshold", p.cc_threshold);
                if ((bytes[1] & 4U) != 0) number("spec", p.curr_spec_depth);
                break;
            case ETM4_PKT_I_TIMESTAMP:
                number("timestamp", p.ts.timestamp);
                if ((bytes[0] & 1U) != 0) number("cycles", p.cycle_count);
                break;
            case ETM4_PKT_I_EVENT: number("value", p.event_val); break;
            case ETM4_PKT_I_COMMIT: number("commit", p.commit_elements); break;
            case ETM4_PKT_I_CANCEL_F1_MISPRED: number("mispredict", 1); [[fallthrough]];
            case ETM4_PKT_I_CANCEL_F1: number("cancel", p.cancel_elements); break;
            case ETM4_PKT_I_CANCEL_F2:
            case ETM4_PKT_I_CANCEL_F3: number("cancel", p.cancel_elements); [[fallthrough]];
            case ETM4_PKT_I_MISPREDICT:
                number("mispredict", 1);
                atoms();
                break;
            case ETM4_PKT_I_EXCEPT:
                number("exception", p.exception_info.exceptionType);
                number("E", p.exception_info.addr_interp);
                if (p.exception_info.m_fault_pending != 0) number("fault_pending", 1);
                break;
            case ETM4_PKT_I_Q:
                if (p.Q_pkt.count_present != 0) number("count", p.Q_pkt.q_count);
                break;
            case ETM4_PKT_I_COND_I_F2:
                number("elements", p.cond_instr.num_c_elem);
                number("increment", p.cond_instr.f2_cond_incr);
                break;
            case ETM4_PKT_I_COND_I_F3:
                number("elements", p.cond_instr.num_c_elem);
                number("final", p.cond_instr.f3_final_elem);
                break;
            case ETM4_PKT_I_COND_RES_F1:
                number("key0", p.cond_result.cond_r_key_0);
                number("result0", p.cond_result.res_0);
                number("ci0", p.cond_result.ci_0);
                if ((bytes[0] & 0xcU) == 8) {
                    number("key1", p.cond_result.cond_r_key_1);
                    number("result1", p.cond_result.res_1);
                    number("ci1", p.cond_result.ci_1);
                }
                break;
            case ETM4_PKT_I_COND_RES_F2:
                number("token", p.cond_result.f2f4_token);
                number("key_increment", p.cond_result.f2_key_incr);
                break;
            case ETM4_PKT_I_COND_RES_F3: number("tokens", p.cond_result.f3_tokens); break;
            case ETM4_PKT_I_COND_RES_F4: number("token", p.cond_result.f2f4_token); break;
            case ETM4_PKT_I_NUM_DS_MKR:
            case ETM4_PKT_I_UNNUM_DS_MKR: number("value", p.dsm_val); break;
            default: break;
        }
        rows.push_back(std::move(row));
    }
};

/// OpenCSD's packets of a bare stream; empty with a failure if its library refuses the configuration.
std::vector<Row> opencsd_packets(const Config& c, Bytes bytes) {
    const RegisterValues r = to_registers(c);
    const dcd_tree_handle_t tree = ocsd_create_dcd_tree(OCSD_TRC_SRC_SINGLE, 0);
    unsigned char id = 0;
    // The library gives packets to a callback for ETMv4 only. Its packet processor is the same for ETE: a major version
    // of 5 makes the differences.
    auto idr1 = from_value<Trcidr1>(*r.idr1);
    idr1.archmaj = c.version >> 4;
    idr1.archmin = c.version & 0xfU;
    ocsd_etmv4_cfg config{};
    config.reg_idr0 = *r.idr0;
    config.reg_idr1 = static_cast<std::uint32_t>(to_value(idr1));
    config.reg_idr2 = *r.idr2;
    config.reg_idr8 = *r.idr8;
    config.reg_configr = *r.configr;
    config.reg_traceidr = *r.traceidr;
    config.arch_ver = c.ete() ? ARCH_AA64 : ARCH_V8;
    config.core_prof = c.profile == CoreProfile::m ? profile_CortexM : profile_CortexA;
    const ocsd_err_t error =
        ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_ETMV4I, OCSD_CREATE_FLG_PACKET_PROC, &config, &id);
    EXPECT_EQ(error, OCSD_OK);
    Theirs theirs;
    if (error == OCSD_OK) {
        EXPECT_EQ(ocsd_dt_attach_packet_callback(tree, id, OCSD_C_API_CB_PKT_MON,
                                                 reinterpret_cast<void*>(&Theirs::monitor), &theirs),
                  OCSD_OK);
        std::uint32_t used = 0;
        EXPECT_FALSE(OCSD_DATA_RESP_IS_FATAL(ocsd_dt_process_data(
            tree, OCSD_OP_DATA, 0, static_cast<std::uint32_t>(bytes.size()), bytes.data(), &used)));
        EXPECT_EQ(used, bytes.size());
    }
    ocsd_destroy_dcd_tree(tree);
    return theirs.rows;
}

/// Generated streams omit packets that OpenCSD 1.3.3 does not know, and contexts that announce an identifier of no
/// bytes: OpenCSD reads one byte too many for those (quirk).
bool known_to_opencsd(const Packet& packet, const Config& config) {
    const auto announces_nothing = [&](const ContextFields& c) {
        return (c.has_vmid && config.vmid_bytes == 0) || (c.has_context_id && config.context_id_bytes == 0);
    };
    if (const auto* p = std::get_if<Context>(&packet)) return !announces_nothing(*p);
    if (const auto* p = std::get_if<AddressWithContext>(&packet)) return !announces_nothing(*p);
    return !std::holds_alternative<Instrumentation>(packet) && !std::holds_alternative<BranchFutureFlush>(packet);
}

#endif

TEST(Etm4OpenCsd, AgreesOnGeneratedStreams) {
#ifndef WAYMARK_OPENCSD
    GTEST_SKIP() << "built without OpenCSD's library: install libopencsd-dev to compare with it";
#else
    Quirks quirks;
    std::size_t compared = 0;
    for (Config config : test::all_configs())
        for (std::uint64_t seed = 1; seed <= sized(10U, 2U); ++seed) {
            config.max_speculation = static_cast<std::uint32_t>(seed % 3 * 0x3c);
            SCOPED_TRACE("version " + std::to_string(config.version) + ", seed " + std::to_string(seed));
            wire::Random random(seed);
            std::vector<std::uint8_t> bytes;
            encode(bytes, ASync{}, config);
            encode(bytes, TraceInfo{}, config);
            Context context;  // without one, OpenCSD does not know the width of addresses
            context.has_payload = true;
            context.sf = seed % 2 == 0;
            encode(bytes, context, config);
            for (unsigned i = 0; i < 300; ++i) {
                const Packet packet = test::random_packet(random, config);
                if (known_to_opencsd(packet, config)) encode(bytes, packet, config);
            }
            Rows rows(config, quirks, Peer::library);
            Parser<Rows> parser(config, rows);
            parser.feed(bytes);
            parser.finish();
            ASSERT_TRUE(rows.gaps.empty());
            ASSERT_EQ(first_difference(rows.rows, opencsd_packets(config, bytes)), "");
            compared += rows.rows.size();
        }
    comparing::print("generated streams", compared, "packets", quirks);
#endif
}

}  // namespace
}  // namespace waymark::etm4
