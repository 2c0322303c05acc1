/// The Statistical Profiling Extension as its published functions define it (docs/spec/spe.md, section 3). Functions
/// and enumerations of the architecture have exactly their published names, and take one explicit state. Each answer is
/// a `Decision`: the value, and the condition that decided it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "waymark/spe/registers.h"

namespace waymark::spe {

/// ID_AA64DFR0_EL1.PMSVer.
enum class Version : std::uint8_t { none, v1_0, v1_1, v1_2, v1_3, v1_4, v1_5 };

/// The text of the functions that applies: the text of Armv8.2 and 8.3, or the later ones (3).
enum class Revision : std::uint8_t { first, modern };

enum class SecurityState : std::uint8_t { NonSecure, Secure, Realm, Root };
enum class SysRegAccess : std::uint8_t { OK, UNDEFINED, TrapToEL1, TrapToEL2, TrapToEL3 };
enum class TimeStamp : std::uint8_t { None, CoreSight, Virtual, OffsetPhysical, Physical };
/// The last three belong to the later revisions; the first revision counts them as `Other`.
enum class OpType : std::uint8_t { Load, Store, LoadAtomic, Branch, Other, OtherSVE, OtherSME, Invalid };

/// Exception levels, as PSTATE.EL has them.
enum : std::uint8_t { EL0, EL1, EL2, EL3 };

/// The implemented features, and the interpretation of their text.
struct Architecture {
    Version version = Version::v1_0;
    Revision revision = Revision::first;
    bool el2 = true, el3 = true;
    bool secure_el2 = false;   ///< FEAT_SEL2
    bool secure_only = false;  ///< without EL3: the PE is always in Secure state (3.0 states when this counts)
    bool secure = true;        ///< with RME: there is a Secure state
    bool rme = false;
    bool ecv = false;  ///< FEAT_ECV: PCT has two bits
    bool sve = false;
    bool fn_e = false, fds = false, eft = false, sme = false;  ///< FEAT_SPE_FnE, _FDS, _EFT, _SME
    bool exc = false, n_vm = false;                            ///< FEAT_SPE_EXC, FEAT_SPE_nVM
    /// The IMPLEMENTATION DEFINED events that can be filtered (2.4); other bits have no effect.
    std::uint64_t own_events = 0xffff'0000'ff00'f000;
    /// CollectContextIDR2 with the test inverted, as the first revision prints it (3.6).
    bool as_printed = false;

    /// An implementation of this version with all its features. The text is that of the first revision for v1.0, and
    /// the modern one from v1.1 on.
    [[nodiscard]] static Architecture of(Version version);
    /// The same with the options in PMSIDR_EL1.
    [[nodiscard]] Architecture with(const PmsidrEl1& id) const;
    bool operator==(const Architecture&) const = default;
};

/// Choices that the architecture leaves to the implementation within bounds (CONSTRAINED UNPREDICTABLE), by their
/// published names.
enum class Unpredictable : std::uint8_t {
    ZEROPMSEVFR,     ///< PMSFCR_EL1.FE = 1 with PMSEVFR_EL1 = 0: TRUE drops every sample
    NOOPTYPES,       ///< PMSFCR_EL1.FT = 1 with B = LD = ST = 0
    ZEROMINLATENCY,  ///< PMSFCR_EL1.FL = 1 with MINLAT = 0: TRUE drops every sample
    BADPMSFCR,       ///< all of these in the later revisions, and an event that must be both 0 and 1
    PMSCR_PCT,       ///< PCT = 0b10
    RESERVEDNSxB,    ///< {NSPBE,NSPB} = 0b10x
};
inline constexpr unsigned unpredictable_count = 6;

/// The choice of an implementation in these cases: always the same, or different each time.
struct Choices {
    enum class Answer : std::uint8_t { no, yes, drawn };
    /// The answers in the first four cases.
    std::array<Answer, 4> answers{};
    /// `drawn` depends only on this, so that functions of a state stay functions. Use another seed for each sample.
    std::uint64_t seed = 0;
    std::uint8_t pmscr_pct = 0;                               ///< the meaning of PCT = 0b10
    SecurityState reserved_owner = SecurityState::NonSecure;  ///< the owner of the buffer with {NSPBE,NSPB} = 0b10x

    [[nodiscard]] Answer& operator[](Unpredictable which) { return answers[static_cast<unsigned>(which)]; }
    bool operator==(const Choices&) const = default;
};

/// A processing element, as far as profiling depends on it.
struct State {
    Architecture arch;
    Registers regs;
    Choices choices;
    std::array<bool, 4> el_using_aarch32{};  ///< by exception level
    bool halted = false;                     ///< in Debug state
    bool sdd = false;                        ///< EDSCR.SDD: in Debug state, EL3 is out of reach
    bool operator==(const State&) const = default;
};

/// One fact behind a decision: a field (`PMSCR_EL1.E1SPE`), a feature (`FEAT_SPE`) or a value of the sample (`events`).
struct Fact {
    std::string_view name;
    std::uint64_t value = 0;
    bool operator==(const Fact&) const = default;
};

/// The condition that decided an answer. The text lives as long as the program.
struct Why {
    std::string_view row;         ///< row of docs/spec/spe.md: `3.4 row 7`
    std::string_view text;        ///< meaning of the condition
    std::array<Fact, 3> facts{};  ///< the deciding fact first; unused ones have no name
    /// The value of the first fact's field with which this condition is no longer true; nullopt if no field can help.
    std::optional<std::uint64_t> remedy{};
};

/// The choices that a function made, in order. Choices of the functions it calls are not repeated.
struct Consultation {
    Unpredictable which{};
    std::uint8_t answer = 0;  ///< 1 is TRUE; the value taken for PMSCR_PCT, the SecurityState for RESERVEDNSxB
    bool operator==(const Consultation&) const = default;
};
class Consultations {
public:
    void add(Consultation c) { list_[count_++] = c; }
    [[nodiscard]] const Consultation* begin() const { return list_.data(); }
    [[nodiscard]] const Consultation* end() const { return list_.data() + count_; }
    [[nodiscard]] unsigned size() const { return count_; }

private:
    std::array<Consultation, 4> list_{};
    unsigned count_ = 0;
};

/// An answer and its reason.
template <class T>
struct Decision {
    T value{};
    Why why{};
    Consultations consulted{};
    // Implicit on purpose: a decision is used where the specification uses its value.
    operator const T&() const { return value; }
};

/// The owning translation regime of the buffer.
struct Owner {
    SecurityState state{};
    std::uint8_t el{};
    [[nodiscard]] bool secure() const { return state == SecurityState::Secure; }
    bool operator==(const Owner&) const = default;
};

// Basic functions (3.0).

[[nodiscard]] bool HaveStatisticalProfiling(const State& s);
[[nodiscard]] bool HaveEL(const State& s, std::uint8_t el);
[[nodiscard]] bool UsingAArch32(const State& s);
[[nodiscard]] bool ELUsingAArch32(const State& s, std::uint8_t el);
[[nodiscard]] bool IsSecure(const State& s);
[[nodiscard]] bool EL2Enabled(const State& s);
/// The security state of the current exception level.
[[nodiscard]] SecurityState CurrentSecurityState(const State& s);
/// The security state below EL3: {SCR_EL3.NSE, SCR_EL3.NS}, or its replacement if EL3 is absent.
[[nodiscard]] SecurityState SecurityStateBelowEL3(const State& s);
/// A decision among the allowed answers; `site` distinguishes two decisions of one function.
[[nodiscard]] bool ConstrainUnpredictableBool(const State& s, Unpredictable which, unsigned site = 0);

// Direct accesses to registers (3.1).

/// Access to the registers PMB*.
[[nodiscard]] Decision<SysRegAccess> CheckProfilingBufferAccess(const State& s);
/// Access to the registers PMS*.
[[nodiscard]] Decision<SysRegAccess> CheckStatisticalProfilingAccess(const State& s);
/// Access to one register of section 2, by name: depends on one of the two checks, on the register's existence, and on
/// its own enable. Fine-grained traps and NV2 do not count.
[[nodiscard]] Decision<SysRegAccess> check_register_access(const State& s, std::string_view name);

// Decisions about whether there are samples, and about their contents.

[[nodiscard]] Decision<Owner> ProfilingBufferOwner(const State& s);        // 3.2
[[nodiscard]] Decision<bool> ProfilingBufferEnabled(const State& s);       // 3.3
[[nodiscard]] Decision<bool> StatisticalProfilingEnabled(const State& s);  // 3.4
[[nodiscard]] Decision<bool> CollectContextIDR1(const State& s);           // 3.5
[[nodiscard]] Decision<bool> CollectContextIDR2(const State& s);           // 3.6
[[nodiscard]] Decision<bool> CollectPhysicalAddress(const State& s);       // 3.7
[[nodiscard]] Decision<TimeStamp> CollectTimeStamp(const State& s);        // 3.8

/// Facts for the filters of the later versions, beside events, latency and operation type (3.12, 3.13).
struct SampleDetails {
    std::optional<std::uint16_t> data_source{};
    bool fp = false, simd = false;
    bool loads = false, stores = false;  ///< a branch that read or wrote a guarded control stack
    bool operator==(const SampleDetails&) const = default;
};

/// Whether a sample is written to the buffer (3.9). Precondition: StatisticalProfilingEnabled.
[[nodiscard]] Decision<bool> CollectRecord(const State& s, std::uint64_t events, std::uint32_t total_latency,
                                           OpType optype, const SampleDetails& details = {});
/// The same without the precondition: the decision of the filters alone.
[[nodiscard]] Decision<bool> passes_filters(const State& s, std::uint64_t events, std::uint32_t total_latency,
                                            OpType optype, const SampleDetails& details = {});

/// The event bits that PMSEVFR_EL1 and PMSNEVFR_EL1 can select (2.4).
[[nodiscard]] std::uint64_t filterable_events(const Architecture& arch);

[[nodiscard]] std::string_view name(Version version);
[[nodiscard]] std::string_view name(SecurityState state);
[[nodiscard]] std::string_view name(SysRegAccess access);
[[nodiscard]] std::string_view name(TimeStamp time_stamp);
[[nodiscard]] std::string_view name(OpType optype);
[[nodiscard]] std::string_view name(Unpredictable which);

}  // namespace waymark::spe
