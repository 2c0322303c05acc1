/// Nexus 5001 messages (IEEE-ISTO 5001-2012), the unit's second output: messages ↔ bytes, and trace entries → messages
/// in Waymark's own profile (docs/spec/dpu.md, section 11): SRC of 4 bits, B-TYPE of 2, IDTAG of 8, no TSTAMP, no MAP.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "waymark/core/cursor.h"
#include "waymark/core/gap.h"
#include "waymark/core/packet_parser.h"
#include "waymark/core/result.h"
#include "waymark/core/wire.h"
#include "waymark/dpu/loop_starts.h"
#include "waymark/dpu/packet.h"

namespace waymark::dpu::nexus {

/// Bits 1:0 of every byte; bits 7:2 carry six bits of the message (11.1).
enum class Mseo : std::uint8_t { more, end_of_field, reserved, end_of_message };
inline constexpr std::uint8_t idle = 0xff;
/// A longer message is refused.
inline constexpr std::size_t max_message_bytes = 128;

/// Properties of a message type that do not depend on its contents.
struct MessageInfo {
    std::string_view name;     ///< in capitals
    std::string_view section;  ///< of docs/spec/dpu.md
    std::uint8_t tcode{};
};

enum class BranchType : std::uint8_t { indirect, exception, hardware_loop, reserved };
/// Why a sync message was sent; other codes are reserved or not used here.
enum class Sync : std::uint8_t { evti, reset, periodic, debug_exit, i_cnt, trace_enabled, watchpoint, overrun };

struct OwnershipTrace {
    static constexpr MessageInfo info{.name = "OWNERSHIP", .section = "11.2", .tcode = 2};
    std::uint8_t source{};
    std::uint32_t process{};

    static void fields(auto& w, auto& m) {
        w.fixed("SRC", m.source, 4);
        w.variable("PROCESS", m.process);
    }
    bool operator==(const OwnershipTrace&) const = default;
};
struct DirectBranch {
    static constexpr MessageInfo info{.name = "DIRECT-BRANCH", .section = "11.2", .tcode = 3};
    std::uint8_t source{};
    std::uint32_t i_cnt{};

    static void fields(auto& w, auto& m) {
        w.fixed("SRC", m.source, 4);
        w.variable("I-CNT", m.i_cnt);
    }
    bool operator==(const DirectBranch&) const = default;
};
struct IndirectBranch {
    static constexpr MessageInfo info{.name = "INDIRECT-BRANCH", .section = "11.2", .tcode = 4};
    std::uint8_t source{};
    BranchType b_type{};
    std::uint32_t i_cnt{};
    std::uint32_t u_addr{};  ///< without bit 0: the destination xor the last address in any program message

    static void fields(auto& w, auto& m) {
        w.fixed("SRC", m.source, 4);
        w.fixed("B-TYPE", m.b_type, 2);
        w.variable("I-CNT", m.i_cnt);
        w.variable("U-ADDR", m.u_addr);
    }
    bool operator==(const IndirectBranch&) const = default;
};
struct DataAcquisition {
    static constexpr MessageInfo info{.name = "DATA-ACQUISITION", .section = "11.2", .tcode = 7};
    static constexpr std::size_t most = 8;
    std::uint8_t source{};
    std::uint8_t id_tag{};
    std::uint8_t count = 1;  ///< bytes of data: 1 to `most`
    std::array<std::uint32_t, most> data{};

    static void fields(auto& w, auto& m) {
        w.fixed("SRC", m.source, 4);
        w.fixed("IDTAG", m.id_tag, 8);
        w.list("DQDATA", m.count, m.data);
    }
    bool operator==(const DataAcquisition&) const = default;
};
struct ErrorMessage {
    static constexpr MessageInfo info{.name = "ERROR", .section = "11.2", .tcode = 8};
    // Bits of `e_code`.
    static constexpr std::uint32_t watchpoint = 1, data_trace = 2, program_trace = 4, ownership = 8, status = 0x10,
                                   data_acquisition = 0x20;
    std::uint8_t source{};
    std::uint8_t e_type{};  ///< 0: queue overrun
    std::uint32_t e_code{};

    static void fields(auto& w, auto& m) {
        w.fixed("SRC", m.source, 4);
        w.fixed("ETYPE", m.e_type, 4);
        w.variable("ECODE", m.e_code);
    }
    bool operator==(const ErrorMessage&) const = default;
};
struct ProgramTraceSync {
    static constexpr MessageInfo info{.name = "SYNC", .section = "11.2", .tcode = 9};
    std::uint8_t source{};
    Sync sync{};
    std::uint32_t i_cnt{};
    std::uint32_t pc{};  ///< without bit 0

    static void fields(auto& w, auto& m) {
        w.fixed("SRC", m.source, 4);
        w.fixed("SYNC", m.sync, 4);
        w.variable("I-CNT", m.i_cnt);
        w.variable("PC", m.pc);
    }
    bool operator==(const ProgramTraceSync&) const = default;
};
struct IndirectBranchSync {
    static constexpr MessageInfo info{.name = "INDIRECT-BRANCH-SYNC", .section = "11.2", .tcode = 12};
    std::uint8_t source{};
    Sync sync{};
    BranchType b_type{};
    std::uint32_t i_cnt{};
    std::uint32_t f_addr{};  ///< without bit 0

    static void fields(auto& w, auto& m) {
        w.fixed("SRC", m.source, 4);
        w.fixed("SYNC", m.sync, 4);
        w.fixed("B-TYPE", m.b_type, 2);
        w.variable("I-CNT", m.i_cnt);
        w.variable("F-ADDR", m.f_addr);
    }
    bool operator==(const IndirectBranchSync&) const = default;
};
struct Watchpoint {
    static constexpr MessageInfo info{.name = "WATCHPOINT", .section = "11.2", .tcode = 15};
    std::uint8_t source{};
    std::uint32_t wp_hit{};  ///< bit n: EDCAn

    static void fields(auto& w, auto& m) {
        w.fixed("SRC", m.source, 4);
        w.variable("WPHIT", m.wp_hit);
    }
    bool operator==(const Watchpoint&) const = default;
};
struct ResourceFull {
    static constexpr MessageInfo info{.name = "RESOURCE-FULL", .section = "11.2", .tcode = 27};
    std::uint8_t source{};
    std::uint8_t r_code{};  ///< 0: I-CNT
    std::uint32_t r_data{};

    static void fields(auto& w, auto& m) {
        w.fixed("SRC", m.source, 4);
        w.fixed("RCODE", m.r_code, 4);
        w.variable("RDATA", m.r_data);
    }
    bool operator==(const ResourceFull&) const = default;
};
struct RepeatBranch {
    static constexpr MessageInfo info{.name = "REPEAT-BRANCH", .section = "11.2", .tcode = 30};
    std::uint8_t source{};
    std::uint32_t b_cnt{};

    static void fields(auto& w, auto& m) {
        w.fixed("SRC", m.source, 4);
        w.variable("B-CNT", m.b_cnt);
    }
    bool operator==(const RepeatBranch&) const = default;
};
struct ProgramCorrelation {
    static constexpr MessageInfo info{.name = "CORRELATION", .section = "11.2", .tcode = 33};
    static constexpr std::uint8_t trace_disabled = 4, process_change = 5;  ///< of `ev_code`
    std::uint8_t source{};
    std::uint8_t ev_code{};
    std::uint8_t cdf{};  ///< number of CDATA fields that follow
    std::uint32_t i_cnt{};
    std::array<std::uint32_t, 3> c_data{};

    static void fields(auto& w, auto& m) {
        w.fixed("SRC", m.source, 4);
        w.fixed("EVCODE", m.ev_code, 4);
        w.fixed("CDF", m.cdf, 2);
        w.variable("I-CNT", m.i_cnt);
        for (unsigned i = 0; i < m.cdf; ++i) w.variable("CDATA", m.c_data[i]);
    }
    bool operator==(const ProgramCorrelation&) const = default;
};

template <class... M>
struct MessageList {
    template <class F>
    static constexpr void for_each(F&& f) {
        (f.template operator()<M>(), ...);
    }
};
/// All messages that Waymark knows; the in-circuit trace message (34) has fields of variable width and is read as
/// unknown.
using Messages =
    MessageList<IndirectBranch, ProgramTraceSync, DataAcquisition, OwnershipTrace, RepeatBranch, ErrorMessage,
                Watchpoint, ProgramCorrelation, DirectBranch, IndirectBranchSync, ResourceFull>;
using Message =
    std::variant<IndirectBranch, ProgramTraceSync, DataAcquisition, OwnershipTrace, RepeatBranch, ErrorMessage,
                 Watchpoint, ProgramCorrelation, DirectBranch, IndirectBranchSync, ResourceFull>;

/// Appends a message.
void encode(std::vector<std::uint8_t>& out, const Message& message);

/// Decodes the message in exactly these bytes, of which only the last ends a message. nullopt for an unknown TCODE, or
/// a field that ends in the wrong place or does not fit 32 bits. Unnecessary leading zeros are accepted.
[[nodiscard]] std::optional<Message> parse_message(Bytes bytes);

/// Converts the message to text, such as `OWNERSHIP SRC=0 PROCESS=0xa0b`, and back; errors as for dpu::from_text.
[[nodiscard]] std::string to_text(const Message& message);
[[nodiscard]] Result<Message> from_text(std::string_view text);
/// Random legal values.
[[nodiscard]] Message random_message(wire::Random& random);

using wire::Extent;

/// Parses a stream of messages, in chunks of any size: the division into chunks never changes the result. Every byte is
/// in one message, in one gap, or idle; idle bytes are counted and not reported. A stream that begins inside a message
/// (`Start::anywhere`) is lost up to the first end of a message. Gaps: `reserved_header` for a TCODE without a name,
/// `malformed_packet` for other errors.
///
/// Handler: callable with (const Message&, Extent) and with (const Gap&).
template <class Handler>
class Parser {
public:
    enum class Start : std::uint8_t { message, anywhere };

    /// The handler is borrowed and must outlive the parser.
    explicit Parser(Handler& handler, Start start = Start::message)
        : handler_(handler), lost_(start == Start::anywhere), reason_(GapReason::unsynchronised) {}

    void feed(Bytes chunk) {
        for (const std::uint8_t byte : chunk) take(byte);
    }
    /// The stream ends here: reports the rest.
    void finish() {
        if (size_ != 0) report(lost_ ? reason_ : GapReason::incomplete_packet);
        lost_ = false;
    }
    [[nodiscard]] Offset offset() const { return at_ + size_; }
    [[nodiscard]] std::uint64_t idle_bytes() const { return idle_bytes_; }

private:
    void take(std::uint8_t byte) {
        const auto mseo = static_cast<Mseo>(byte & 3U);
        if (size_ == 0 && byte == idle && !lost_) {
            ++idle_bytes_;
            at_ = at_ + 1;
            return;
        }
        if (size_ < max_message_bytes)
            message_[size_] = byte;
        else if (!lost_)
            lose(GapReason::malformed_packet);
        ++size_;
        if (mseo == Mseo::reserved && !lost_) lose(GapReason::malformed_packet);
        if (mseo != Mseo::end_of_message) return;
        if (lost_) {
            report(reason_);
        } else if (const auto message = parse_message(Bytes(message_.data(), size_))) {
            handler_(*message, Extent{at_, size_});
            at_ = at_ + size_;
            size_ = 0;
        } else {
            report(known(message_[0] >> 2) ? GapReason::malformed_packet : GapReason::reserved_header);
        }
        lost_ = false;
    }
    /// Everything up to the end of this message is in the gap.
    void lose(GapReason reason) {
        lost_ = true;
        reason_ = reason;
    }
    void report(GapReason reason) {
        handler_(Gap{at_, at_ + size_, reason});
        at_ = at_ + size_;
        size_ = 0;
    }
    [[nodiscard]] static bool known(unsigned tcode) {
        bool found = false;
        Messages::for_each([&]<class M>() { found = found || M::info.tcode == tcode; });
        return found;
    }

    Handler& handler_;
    Offset at_{};             // offset of the current message
    std::uint64_t size_ = 0;  // bytes of the message so far; the first ones are in message_
    bool lost_;
    GapReason reason_;
    std::uint64_t idle_bytes_ = 0;
    std::array<std::uint8_t, max_message_bytes> message_{};
};

/// The process whose code runs: the contents of PROCESS.
struct Process {
    bool supervisor = false;
    std::uint8_t pid{}, did{};
    [[nodiscard]] constexpr std::uint32_t value() const {
        return std::uint32_t{did} << 9 | std::uint32_t{pid} << 1 | static_cast<std::uint32_t>(supervisor);
    }
    [[nodiscard]] static constexpr Process of(std::uint32_t process) {
        return {(process & 1U) != 0, static_cast<std::uint8_t>(process >> 1), static_cast<std::uint8_t>(process >> 9)};
    }
    /// From a trace entry, whose only ID is used for both IDs.
    [[nodiscard]] static constexpr Process of(const TaskContext& context) {
        return {context.supervisor, context.id, context.id};
    }
    friend bool operator==(const Process&, const Process&) = default;
};

/// The contents of data acquisition messages (11.3).
enum class Tag : std::uint8_t {
    change_counters = 0x10,  ///< deltas A0 to B2 up to a task switch or flow entry, sent before its pair
    first_counters = 0x11,   ///< absolute values, because nothing is known before
    sample_counters = 0x12,  ///< deltas up to a sample
    loop = 0x13,             ///< last address and repetitions of a loop with unknown start
    user_data = 0x80,
    user_raw = 0x81,
};

/// Classes of messages that an overrun loses in this trace mode: ECODE.
[[nodiscard]] std::uint32_t lost_classes(TraceMode mode);

/// Converts trace entries to messages (11.3). Pass them in chronological order.
class Mapper {
public:
    /// `flow_complete`: EONCE_RAW or EONCE_COMP with TCHOF, TINT and TLOOP on, so that I-CNT is valid. `counters` are
    /// the values at enable, if known.
    Mapper(std::vector<std::uint8_t>& out, TraceMode mode, bool flow_complete, std::uint8_t source = 0,
           std::optional<Counters> counters = {})
        : out_(out), mode_(mode), complete_(flow_complete), source_(source), counters_(counters) {}

    /// Tracing was enabled.
    void enabled(const Process& process);
    void disabled();
    /// Sends the owner if it differs from the last one sent.
    void owner(const Process& process);
    /// A change of flow. A loop item of the EOnCE counts as a change of flow with B-TYPE 2, from its last to its start
    /// address.
    void pair(std::uint32_t source, std::uint32_t destination, BranchType type);
    /// EDCA channels that matched, a bit for each.
    void watchpoint(std::uint32_t channels) { send(Watchpoint{source_, channels}); }
    /// Messages were lost: E14, or an overflow of the queue to the port. Later messages do not depend on earlier ones:
    /// the next counters are absolute values, since lost differences would be missing for ever.
    void lost(std::uint32_t classes);
    /// The same without a loss: the time between is unknown to readers.
    void forget();
    /// Start addresses of loops, for entries that lack them; starts seen in compressed flow are added.
    [[nodiscard]] LoopStarts& loop_starts() { return loops_; }

    /// An entry, with its process after the entry. `type`: for pairs; without it a task switch is an exception, and
    /// others are indirect branches. Entries of execution sets (TEXEC) must not be passed.
    void entry(const Entry& entry, const Process& process, std::optional<BranchType> type = {});

private:
    template <class M>
    void send(const M& message) {
        encode(out_, message);
    }
    void counters(const Counters& values, Tag tag);
    void data(Tag tag, std::initializer_list<std::uint32_t> values);
    void sync(Sync why, std::uint32_t i_cnt, std::uint32_t pc);
    [[nodiscard]] bool follows(std::uint32_t pc) const { return complete_ && previous_ && *previous_ <= pc; }
    void loop(std::uint32_t last_address, std::uint32_t reps);

    /// A sync message is due after this number of program trace messages without synchronisation.
    static constexpr unsigned sync_period = 256;

    std::vector<std::uint8_t>& out_;
    TraceMode mode_;
    bool complete_;
    std::uint8_t source_;
    std::optional<Counters> counters_;
    std::optional<Process> owner_;
    std::optional<std::uint32_t> previous_;  // destination, if the flow from it is known
    std::uint32_t last_address_ = 0;         // of any program trace message
    bool after_loss_ = false;
    unsigned since_sync_ = 0;
    LoopStarts loops_;
};

/// The contents of one message, with complete addresses.
struct Meaning {
    enum class Kind : std::uint8_t {
        owner,       ///< value: PROCESS
        branch,      ///< from (0 if not known), to, type
        pc,          ///< to: a program counter, such as of a MARK
        counters,    ///< data: deltas, or values (tag first_counters)
        loop,        ///< from: last address; value: repetitions
        repeat,      ///< the last branch, repeated `value` times
        user_data,   ///< value
        watchpoint,  ///< value: channels
        lost,        ///< value: ECODE; addresses are unknown until the next sync
        disabled,
        unknown,  ///< a message without meaning in this profile, or a branch before any sync
    };
    Kind kind{};
    BranchType type{};
    Tag tag{};
    std::uint32_t from{}, to{}, value{};
    Counters data{};
    bool from_known = false;
    friend bool operator==(const Meaning&, const Meaning&) = default;
};

/// Interprets messages. The sync message at the source of a pair only gives the place of flow, and has no result.
class Reader {
public:
    /// nullopt for messages that only synchronise or count.
    [[nodiscard]] std::optional<Meaning> read(const Message& message);

private:
    Meaning branch(BranchType type, std::uint32_t i_cnt, std::uint32_t to);

    std::uint32_t last_ = 0;  // address of the last program message, from which I-CNT counts
    std::uint32_t more_ = 0;  // I-CNT from resource full messages since then
    bool known_ = false;
};

}  // namespace waymark::dpu::nexus
