// The account of a run against the truth: random executions of random programs, traced by the model of an ETMv4 or ETE
// as random registers ask, then damaged; code of which is missing. What ran is known without any decoder. A figure that
// is called exact equals it, a lower bound is not above it, and nothing that ran is called "not executed".
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "etm4/execution.h"
#include "etm4/support.h"
#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "support/tiny_elf.h"
#include "waymark/answers/account.h"
#include "waymark/answers/costs.h"
#include "waymark/capture/capture.h"
#include "waymark/etm4/protocol.h"
#include "waymark/pipeline/account.h"
#include "waymark/pipeline/flow_answers.h"
#include "waymark/pipeline/session.h"
#include "waymark/pipeline/several.h"

namespace waymark {
namespace {

using answers::Account;
using answers::AccountReason;
using answers::Answers;
using answers::Seen;
using etm4::test::Execution;

/// How the unit is programmed and made, and what becomes of its trace and of the program's file.
struct Case {
    etm4::ModelConfig model;
    Execution::Options options;
    unsigned steps{};
    std::size_t head{}, tail{};  ///< bytes that are not in the capture
    bool half_an_image = false;  ///< the code at high addresses has no image
    std::string text;
};

Case make_case(std::uint64_t seed) {
    wire::Random random(seed);
    const auto one_in = [&](unsigned n) { return random() % n == 0; };
    const bool ete = one_in(2);
    etm4::Config c = ete ? etm4::test::ete(3) : etm4::test::etmv4();
    Case out;
    c.q_elements = c.cycle_counting = c.timestamps = false;
    c.commit_mode_1 = true;
    c.context_id_trace = c.vmid_trace = false;
    c.return_stack = one_in(2);
    etm4::ModelChoices choices;
    choices.seed = seed;
    out.options.contents = {.aarch32 = false, .newest_instructions = ete, .exception_returns = false};
    out.text = ete ? "ETE" : "ETMv4";
    const auto named = [&](bool is, const char* name) {
        if (is) out.text += fmt::format(" {}", name);
        return is;
    };
    if (named(ete && one_in(5), "Q")) {
        c.q_elements = true;
        choices.q_one_in = 3;
    } else if (named(one_in(6), "broadcast")) {
        c.branch_broadcast = true;
    }
    if (named(one_in(4), "FIFO")) {
        choices.fifo_bytes = 64;
        choices.drain_cycles = 30;
    }
    if (named(one_in(4), "speculation")) {
        c.max_speculation = 8;
        choices.mispredict_one_in = 4;
    }
    if (named(one_in(4), "cycles")) c.cycle_counting = true;
    out.model = {etm4::tracing_registers(c), etm4::CoreProfile::a, choices};
    etm4::Registers& registers = out.model.registers;
    registers.syncpr.period = 8;
    if (named(one_in(5), "filter")) {
        constexpr std::uint64_t first = 0x40'0080, last = 0x40'0600;
        registers.acvr[0].address = first;
        registers.acvr[1].address = last;
        registers.viiectlr.include = 1;
        out.options.view = [](const std::vector<std::uint64_t>& starts, const flow::Context&) {
            return std::any_of(starts.begin(), starts.end(),
                               [](std::uint64_t at) { return at >= first && at <= last; });
        };
    } else if (named(one_in(5), "sessions")) {
        out.options.program = [](etm4::Model&, std::uint64_t, wire::Random&) {
            return decltype(Execution::Options::view){};
        };
    }
    out.steps = 20 + static_cast<unsigned>(random() % 300);
    if (named(one_in(6), "head")) out.head = 1 + random() % 200;
    if (named(one_in(6), "tail")) out.tail = 1 + random() % 60;
    out.options.interrupts = !named(one_in(2) || c.q_elements || c.max_speculation != 0, "straight");
    out.half_an_image = named(one_in(5), "half-an-image");
    out.text += fmt::format(", {} steps", out.steps);
    return out;
}

/// The program's file: functions of 16 instructions.
std::vector<std::uint8_t> file_of(const synthetic::Memory& memory, bool half) {
    TinyElf elf;
    elf.is_64 = true;
    elf.machine = EM_AARCH64;
    for (const synthetic::Memory::Section& section : memory.sections) {
        if (half && section.address >> 63 != 0) continue;
        elf.segments.push_back({.address = section.address, .bytes = section.bytes});
        elf.sections.push_back({.name = ".text", .address = section.address, .bytes = section.bytes});
        constexpr std::uint64_t function = 64;
        for (std::uint64_t at = 0; at < section.bytes.size(); at += function)
            elf.symbols.push_back({.name = fmt::format("f{:x}", section.address + at),
                                   .value = section.address + at,
                                   .bytes = std::min<std::uint64_t>(function, section.bytes.size() - at),
                                   .section = static_cast<std::uint16_t>(elf.sections.size())});
    }
    return elf.build();
}

void write(const std::filesystem::path& path, Bytes bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// What ran, without any decoder.
struct Truth {
    std::uint64_t instructions{};
    std::set<std::uint64_t> addresses;
};

struct Outcome {
    Truth truth;
    Answers answers;
    Account by_flow;  ///< from decoding alone, as waymark flow has it
};

class AccountProperty : public testing::Test {
protected:
    /// Empty: no range was decoded, and flow_answers gave an error.
    [[nodiscard]] std::optional<Outcome> run(const Case& c, std::uint64_t seed) const {
        Execution execution(c.model, seed, c.options);
        execution.run(c.steps);
        std::vector<std::uint8_t> bytes = execution.bytes();
        const std::size_t written = bytes.size();
        bytes.resize(bytes.size() - std::min(bytes.size(), c.tail));
        bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(std::min(bytes.size(), c.head)));
        const auto trace = folder_.path() / "trace.bin", program = folder_.path() / "program";
        write(trace, bytes);
        write(program, file_of(execution.memory, c.half_an_image));

        const etm4::Config packets = etm4::packets_of(c.model.registers, c.model.profile);
        capture::RawOptions raw;
        raw.source_type = packets.ete() ? "ETE" : "ETM4.4";
        raw.registers = etm4::configuration(packets)->registers();
        for (RegisterValue& each : raw.registers)
            if (each.name == "TRCTRACEIDR") each.value = 0x10;
        // Filters are in the description.
        const auto include = to_value(c.model.registers.viiectlr);
        if (include != 0) raw.registers.push_back({"TRCVIIECTLR", include, std::nullopt, 32});
        capture::Capture capture = capture::raw_capture(trace, std::move(raw));
        // The description says how many bytes were written, and what the buffer lost at its head.
        capture.buffers.front().length = written - std::min(written, c.head);
        capture.buffers.front().overwritten = std::min(written, c.head);
        pipeline::SessionOptions code;
        code.images = {program.string()};
        auto session = pipeline::make_session(std::move(capture), code);
        EXPECT_TRUE(session.has_value()) << (session ? "" : session.error().message);
        if (!session) return std::nullopt;
        const auto selected = session->select({});
        pipeline::FlowAnswersOptions wanted;
        wanted.calls = wanted.instructions = wanted.all_functions = true;
        auto made = pipeline::flow_answers(*session, *selected, wanted, {}, {});
        if (!made) return std::nullopt;
        return Outcome{{execution.instructions_run, execution.addresses_run},
                       std::move(*made),
                       pipeline::account_of(*session, *selected)};
    }

    TemporaryFolder folder_;
};

std::uint64_t instructions_in(const Account& account) {
    for (const answers::AccountRow& row : account)
        if (row.reason == AccountReason::decoded) return row.instructions.value_or(0);
    return 0;
}

/// The first statement that claims more than was observed; empty: there is none.
/// What can be reached from where flow was lost is known of code whose calls are well nested (docs/account.md), which
/// random code is not: tests of analysis have such programs (FlowPrograms).
std::string wrong_in(const Answers& a, const Account& account, const Truth& truth) {
    const answers::Completeness completeness = answers::completeness(account);
    const std::uint64_t decoded = instructions_in(account);
    if (completeness.word() == "exact" && decoded != truth.instructions)
        return fmt::format("exact: {} instructions, {} ran", decoded, truth.instructions);
    if (decoded > truth.instructions)
        return fmt::format("{}: {} instructions, {} ran", completeness.word(), decoded, truth.instructions);
    if (completeness.hides == answers::Hides::nothing)
        for (const answers::Instruction& i : a.instructions)
            if (i.seen != Seen::executed && truth.addresses.contains(i.address))
                return fmt::format("nothing is hidden, but {:#x} ran and is not shown as executed", i.address);
    const bool aside = completeness.hides == answers::Hides::reachable;
    for (const answers::Instruction& i : a.instructions) {
        if (!aside && i.seen == Seen::not_executed && truth.addresses.contains(i.address))
            return fmt::format("{:#x} ran and is called not executed", i.address);
        if (i.seen == Seen::executed && !truth.addresses.contains(i.address))
            return fmt::format("{:#x} did not run and is called executed", i.address);
    }
    return {};
}

std::uint64_t runs() {
    if (const char* asked = std::getenv("WAYMARK_PROPERTY_PROGRAMS")) return std::strtoull(asked, nullptr, 10);
    return sized(1000U, 100U);
}

TEST_F(AccountProperty, SaysNothingBeyondWhatWasObserved) {
    std::array<std::uint64_t, answers::account_reasons> met{}, needed{};
    std::uint64_t nothing = 0, exact = 0;
    const std::uint64_t all = runs();
    for (std::uint64_t seed = 1; seed <= all; ++seed) {
        const Case c = make_case(seed);
        SCOPED_TRACE(fmt::format("seed {}: {}", seed, c.text));
        const auto one = run(c, seed);
        if (!one) {
            ++nothing;
            continue;
        }
        const Account& account = one->answers.account;
        ASSERT_EQ(wrong_in(one->answers, account, one->truth), "") << answers::account_sentence(account);
        // All commands have one account.
        ASSERT_EQ(answers::account_sentence(one->by_flow), answers::account_sentence(account));
        std::uint64_t by_function = 0;
        for (const answers::FunctionCosts& costs : answers::function_costs(one->answers))
            if (!costs.self.empty()) by_function += costs.self.front();
        ASSERT_GE(by_function, instructions_in(account));
        exact += answers::completeness(account).word() == "exact" ? 1 : 0;
        ASSERT_EQ(pipeline::shortcoming_of({&one->answers}).of != nullptr, answers::completeness(account).strict)
            << answers::account_sentence(account) << "; " << pipeline::shortcoming_of({&one->answers}).what;
        // Whether a reason is needed: without it, something would be said that is wrong.
        for (const answers::AccountRow& row : account) {
            if (row.reason == AccountReason::decoded) continue;
            const auto reason = static_cast<std::size_t>(row.reason);
            ++met[reason];
            Account without = account;
            // A buffer that wrapped begins amid a packet: one thing, which two reasons tell.
            const bool wrapped =
                row.reason == AccountReason::overwritten || row.reason == AccountReason::unsynchronised;
            std::erase_if(without, [&](const answers::AccountRow& other) {
                return other == row || (wrapped && (other.reason == AccountReason::overwritten ||
                                                    other.reason == AccountReason::unsynchronised));
            });
            needed[reason] += wrong_in(one->answers, without, one->truth).empty() ? 0 : 1;
        }
    }
    for (std::size_t i = 0; i < met.size(); ++i)
        if (met[i] != 0)
            std::printf("%-16s in %llu runs, the only reason in %llu of them\n",
                        std::string(answers::account_reason_words[i]).c_str(), static_cast<unsigned long long>(met[i]),
                        static_cast<unsigned long long>(needed[i]));
    std::printf("%llu runs are exact, %llu gave nothing\n", static_cast<unsigned long long>(exact),
                static_cast<unsigned long long>(nothing));
    if (all < 100) return;
    EXPECT_GT(exact, all / 50);
    EXPECT_LT(nothing, all / 4);
    // Dropped from the account, each of these would make a sentence wrong.
    for (const AccountReason reason :
         {AccountReason::off, AccountReason::filtered, AccountReason::overflow, AccountReason::unsynchronised,
          AccountReason::overwritten, AccountReason::cut, AccountReason::no_image})
        EXPECT_NE(needed[static_cast<std::size_t>(reason)], 0U)
            << answers::account_reason_words[static_cast<std::size_t>(reason)];
}

}  // namespace
}  // namespace waymark
