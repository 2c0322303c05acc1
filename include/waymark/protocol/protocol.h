/// The interface of a trace protocol for the layers above: each protocol is one object of class Protocol, a row of the
/// registry (pipeline/protocols.h). Each protocol implements it in its own folder, `src/<protocol>/protocol.cc`, with
/// everything that only the protocol knows: names, registers, how bytes become packets and packets become flow, how to
/// recognise its bytes, and their possible errors. docs/how-to/add-a-protocol.md describes all steps.
///
/// Virtual calls are made for each chunk of bytes, and for each packet of a listing; never for each packet of a
/// decoder.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "waymark/core/offset_map.h"
#include "waymark/core/register_reference.h"
#include "waymark/core/register_value.h"
#include "waymark/core/types.h"
#include "waymark/flow/blocks.h"
#include "waymark/flow/unit.h"
#include "waymark/follow/parallel.h"
#include "waymark/follow/recover.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/isa/isa.h"
#include "waymark/protocol/explanation.h"
#include "waymark/protocol/finding.h"
#include "waymark/protocol/packets.h"

namespace waymark::flow {
class UnitFactory;
}

namespace waymark::protocol {

class Configuration;
class Protocol;

// ---- names of a unit, and its programming

/// The names of a protocol and its unit, for sentences and options.
struct Words {
    std::string_view unit;        ///< short, as `Answers::unit` has it: `PTM`
    std::string_view unit_title;  ///< `Program Trace Macrocell`
    std::string_view trace;       ///< its trace: `Program Flow Trace`
    std::string_view title;       ///< `Program Flow Trace (PTM)`
    std::string_view types;       ///< source types, as sentences list them: `PTM1.x and PFT1.x`
    /// The registers that decide how its bytes are read, if there are any: `ETMCR and ETMCCER`.
    std::string_view settings{};
    std::string_view core_type{};  ///< type of a core with such a unit, as far as the trace shows: `ARMv7-A`
    /// The packet at which a decoder can begin: `A-sync`, and its bytes, `00 00 00 00 00 80`.
    std::string_view sync{}, sync_bytes{};
    std::string_view syncs{};     ///< packets that give the address again, for Survey::syncs: `I-syncs`
    std::string_view one_sync{};  ///< one such packet: `I-sync`
    /// Source types in the spelling of captures, in capitals and without their version, for is_type().
    std::array<std::string_view, 4> type_names{};
};

/// The place of the trace ID of a unit on a trace bus: seven bits of a register.
struct TraceIdField {
    std::string_view register_name;
    unsigned lowest_bit = 0;
    std::optional<unsigned> number{};  ///< of the register, as captures give it
};

/// A register of a bare trace file, which the command line gives: `--etmcr VALUE`.
struct RegisterOption {
    std::string_view option, register_name, help;
};

/// A source in a capture's description.
struct Description {
    std::string_view name, type, core_type;
    const std::vector<RegisterValue>& registers;
    bool from_command_line = false;  ///< a bare trace file, whose registers options give
};

/// The programming of a source's unit, and the problems of its description as sentences.
struct Configured {
    std::shared_ptr<const Configuration> configuration;
    std::vector<std::string> problems;
};

/// One property of a configuration, for people: `cycle_accurate`, true.
struct Setting {
    std::string name;
    std::variant<bool, std::uint64_t, std::string> value;
    friend bool operator==(const Setting&, const Setting&) = default;
};
/// The name of a setting, such as `return stack`, and its value as `yes`, `no`, a number or words.
[[nodiscard]] std::string setting_words(const Setting& setting);
[[nodiscard]] std::string value_words(const Setting& setting);

// ---- decoding

enum class DecoderKind : std::uint8_t { fast, reference };

struct DecoderOptions {
    DecoderKind kind = DecoderKind::fast;
    /// Longest walk in bytes; a longer walk shows that the image is wrong. Absent: the decoder's own limit.
    std::optional<std::uint32_t> max_walk_bytes{};
};

/// Decodes packets with a program to flow, on one thread.
using Decoder = StreamDecoder;

// ---- recognising bytes

/// Consecutive bytes of one source, and their place in the buffer.
struct Stretch {
    std::vector<std::uint8_t> bytes{};
    OffsetMap offsets{};
    bool head = false;  ///< the source's first bytes in the buffer
    /// Number of bytes at the end that may be the end mark of a buffer in bypass (coresight/bypass.h). They are the
    /// mark, unless the last packet needs them, which depends on the configuration.
    std::size_t end_mark_bytes{};
};

/// An attempt, and its result.
struct Tried {
    std::string what, result;
    friend bool operator==(const Tried&, const Tried&) = default;
};

/// The certainty of an inferred setting.
enum class Certainty : std::uint8_t {
    assumed,  ///< no evidence: the value that most units have
    likely,   ///< some evidence, and other values are possible
    proven,   ///< the other values were tried, and the bytes contradict them
};
[[nodiscard]] constexpr std::string_view name(Certainty certainty) {
    return certainty == Certainty::proven ? "proven" : certainty == Certainty::likely ? "likely" : "assumed";
}

/// A field of the configuration.
struct InferredField {
    std::string what, value;
    Certainty certainty{};
    std::string proof;  ///< why, or which evidence is missing
    friend bool operator==(const InferredField&, const InferredField&) = default;
};

/// A protocol's findings about bytes that it recognised, for its own later use.
class Evidence {
public:
    virtual ~Evidence() = default;
};

/// The identity of bytes: their protocol and its settings.
struct Identity {
    const Protocol* protocol = nullptr;  ///< null: not recognised
    std::vector<Tried> tried{};
    std::vector<InferredField> facts{};
    /// Further findings: a word, and a sentence (`syncs`, `12 A-syncs, 1,024 bytes apart`).
    std::vector<std::pair<std::string, std::string>> remarks{};
    // For protocols that are decoded with a configuration.
    std::shared_ptr<const Configuration> configuration{};  ///< inferred
    std::shared_ptr<const Evidence> evidence{};
    std::uint64_t waypoints{};           ///< outcomes and addresses of branches in the trace
    std::optional<Offset> first_sync{};  ///< in the buffer
    // Of others.
    std::uint64_t entries{}, lost_bytes{};  ///< samples or entries; bytes outside all entries, or damaged in one
};

/// A configuration on which a description and the bytes agree, and the errors of the description.
struct Settled {
    std::shared_ptr<const Configuration> configuration;
    std::vector<CaptureFinding> findings;  ///< without place
};

/// Feeds a stretch to a reader like the pipeline: an end mark is trace if a packet needs it. Returns the number of
/// bytes of trace.
std::size_t feed(auto& reader, const Stretch& stretch, auto&& amid_packet) {
    const std::size_t trace = stretch.bytes.size() - stretch.end_mark_bytes;
    reader.feed(Bytes(stretch.bytes).first(trace));
    if (stretch.end_mark_bytes == 0 || !amid_packet()) return trace;
    reader.feed(Bytes(stretch.bytes).subspan(trace));
    return stretch.bytes.size();
}

// ---- the two classes that a protocol implements

/// The programming of one unit, and everything that depends on it. It never changes; all readers of the source share
/// it.
class Configuration {
public:
    virtual ~Configuration() = default;
    [[nodiscard]] virtual const Protocol& protocol() const = 0;
    /// `other` is of the same protocol.
    [[nodiscard]] virtual bool equals(const Configuration& other) const = 0;

    /// The description of such a unit in a capture: the type of the source, and registers from which it is configured
    /// again.
    [[nodiscard]] virtual std::string source_type() const = 0;
    [[nodiscard]] virtual std::vector<RegisterValue> registers() const = 0;
    /// Settings for people, in the order in which lists show them.
    [[nodiscard]] virtual std::vector<Setting> settings() const = 0;
    /// Type of the traced core, as far as the trace shows: `ARMv7-A`.
    [[nodiscard]] virtual std::string core_type() const;

    /// `listener` is borrowed and must outlive the reader.
    [[nodiscard]] virtual std::unique_ptr<Reader> list(PacketListener& listener) const = 0;
    /// `offsets` maps positions in the stream to those in the buffer; borrowed.
    [[nodiscard]] virtual std::unique_ptr<Surveyor> survey(const OffsetMap& offsets) const = 0;

    // Functions for flow: only if Protocol::decodes_flow().

    /// Options that determine further instructions which end a block.
    [[nodiscard]] virtual isa::DecodeOptions waypoints() const { return {}; }
    /// The trace has cycle counts.
    [[nodiscard]] virtual bool cycle_counts() const { return false; }
    /// Whether cycle counts come apart from ranges (flow::Cycles::Of::flow).
    [[nodiscard]] virtual bool cycle_counts_apart() const { return false; }
    /// Everything is borrowed and must outlive the decoder.
    [[nodiscard]] virtual std::unique_ptr<Decoder> decoder(const isa::CodeReader& code, flow::BatchWriter& out,
                                                           const DecoderOptions& options) const;
    /// The same on several threads (follow/parallel.h).
    [[nodiscard]] virtual std::unique_ptr<follow::Parallel> parallel_decoder(
        const isa::CodeReader& code, flow::BlockTable& table, flow::Sink& sink,
        const follow::ParallelOptions& options) const;

    // Functions for the head of a stream: only if Protocol::recovers_head().

    /// Whether `held` has a place at which decoding can begin, and enough bytes after it to recover the flow before it.
    [[nodiscard]] virtual bool has_sync(Bytes held) const;
    [[nodiscard]] virtual follow::HeadRecovery recover_head(const isa::CodeReader& code,
                                                            std::span<const follow::CodeExtent> extents,
                                                            Bytes stream) const;
    virtual void decode_head(const follow::HeadRecovery& head, const isa::CodeReader& code, Bytes stream,
                             flow::BatchWriter& out) const;

    // Properties that only a program proves.

    /// Configurations that differ only in settings that bytes without a program do not show, such as a return stack.
    [[nodiscard]] virtual std::vector<std::shared_ptr<const Configuration>> variants() const { return {}; }
    /// The same unit beside a core with another name (`Cortex-M33`) or architecture (`ARMv8-M`); null: nothing in the
    /// configuration depends on the core.
    [[nodiscard]] virtual std::shared_ptr<const Configuration> beside([[maybe_unused]] std::string_view core) const {
        return nullptr;
    }
    /// A program agrees with `*this`, a variant of `described`, but not with `described`. Returns the findings about
    /// the description of `source`, without place: each differing setting of the description is an error.
    [[nodiscard]] virtual std::vector<CaptureFinding> differences(const Configuration& described,
                                                                  std::string_view source) const;
    /// Addresses at which execution continues according to the trace: the targets of branches and of synchronisation.
    virtual void named_addresses(Bytes stream, const std::function<void(const follow::Place&)>& take) const;
};

/// A protocol of trace, and its unit. One object of each protocol, never destroyed.
class Protocol {
public:
    virtual ~Protocol() = default;
    [[nodiscard]] virtual const Words& words() const = 0;

    // Captures.

    /// Whether sources of this type (`PTM1.1`, in any case) send this protocol.
    [[nodiscard]] virtual bool is_type(std::string_view source_type) const;
    /// The short name of a unit of that type (`Answers::unit`), for a protocol whose units have several names.
    [[nodiscard]] virtual std::string_view unit_of([[maybe_unused]] std::string_view source_type) const {
        return words().unit;
    }
    /// The source type for `--protocol NAME`, in any case; empty: the name belongs to another protocol.
    [[nodiscard]] virtual std::string type_of_option(std::string_view option) const;
    /// The names that `--protocol` accepts for it, for messages and help; empty if there are none.
    [[nodiscard]] virtual std::string_view option_names() const { return {}; }
    [[nodiscard]] virtual std::span<const RegisterOption> register_options() const { return {}; }
    /// nullopt: the unit is not on a trace bus.
    [[nodiscard]] virtual std::optional<TraceIdField> trace_id() const { return {}; }
    /// The register reference of the unit. It has no registers if none is described.
    [[nodiscard]] virtual UnitReference register_reference() const { return {}; }
    /// The fields of a register of a description, by its name; no call for unknown names.
    virtual void visit_register(const RegisterValue& value, FieldVisitor& visitor) const;
    /// Never fails: settings that a description lacks are assumed, with a problem. Only if is_type() can be true.
    [[nodiscard]] virtual Configured configure(const Description& source) const;

    /// The registers whose programming excludes code from the trace, by address or by a condition: `TRCVIIECTLR`.
    /// Filters of exception levels are not included: their effect is visible in the trace. Registers that the
    /// description lacks are assumed to exclude nothing.
    [[nodiscard]] virtual std::vector<std::string> filters(
        [[maybe_unused]] const std::vector<RegisterValue>& registers) const {
        return {};
    }
    /// Explains why the unit traces or does not, with these registers, which visit_register() must know; others are not
    /// judged. `core`: the type of the traced core; may be empty. nullopt: this protocol does not explain its unit.
    [[nodiscard]] virtual std::optional<UnitExplanation> explain(
        [[maybe_unused]] const std::vector<RegisterValue>& registers, [[maybe_unused]] std::string_view core) const {
        return std::nullopt;
    }

    // Abilities of the protocol.

    /// Whether there are decoders: Configuration::decoder and parallel_decoder.
    [[nodiscard]] virtual bool decodes_flow() const { return false; }
    /// Whether flow before the first synchronisation can be recovered.
    [[nodiscard]] virtual bool recovers_head() const { return false; }
    /// Whether all cores with such a unit run A32 and T32 only, so that a program for another machine cannot be the
    /// right one.
    [[nodiscard]] virtual bool aarch32_only() const { return false; }
    /// Units as models, for recordings; empty if none of this protocol fits flow/unit.h.
    [[nodiscard]] virtual std::span<const flow::UnitFactory* const> units() const { return {}; }
    /// Names as in PacketView::name(), in the order of the specification.
    [[nodiscard]] virtual std::vector<std::string> packet_names() const = 0;

    // Recognising bytes, and finding their problems.

    /// Adds the attempts to `out.tried`. Returns true if the bytes are trace of this protocol; `out` then has all facts
    /// from them. The time is proportional to the number of bytes.
    [[nodiscard]] virtual bool identify(const std::vector<Stretch>& stretches, Identity& out) const = 0;
    /// Compares the bytes of a described source with its description.
    [[nodiscard]] virtual Settled settle(const Identity& identity, const Configuration& described,
                                         const std::vector<Stretch>& stretches, std::string_view source) const;
    /// Problems of recognised bytes. `configuration`: the settled configuration, null if there is none; `buffer`: the
    /// name of their buffer.
    [[nodiscard]] virtual std::vector<CaptureFinding> health(const Identity& identity,
                                                             const Configuration* configuration,
                                                             const std::vector<Stretch>& stretches,
                                                             std::string_view buffer) const;
    /// A contradiction of trace and program, as a sentence.
    [[nodiscard]] virtual std::string sentence(const flow::Inconsistency& what) const;
    /// Advice on how to read a bare file of such bytes without options. `file`: its name.
    [[nodiscard]] virtual std::string how_to_read(std::string_view file) const = 0;
    /// Short advice for the end of `waymark info`.
    [[nodiscard]] virtual std::string next_step(std::string_view file) const = 0;
};

}  // namespace waymark::protocol
