// The account of a DPU's trace against the truth: random programs of the core under random programs of the unit, in all
// modes, with stretches left out of the trace in every way; then recordings that end early, buffers that are cut or
// damaged, and units that still held trace.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "differential/account_outputs.h"
#include "support/dpu_runs.h"
#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "waymark/analysis/counter_runs.h"
#include "waymark/analysis/dpu_answers.h"
#include "waymark/analysis/dpu_findings.h"
#include "waymark/answers/account.h"
#include "waymark/capture/dpu_folder.h"
#include "waymark/doctor/dpu.h"
#include "waymark/doctor/dpu_input.h"
#include "waymark/pipeline/several.h"
#include "waymark/record_dpu/dpu.h"
#include "waymark/record_dpu/dpu_truth.h"

namespace waymark::record {
namespace {

using namespace dpu_runs;
using answers::Account;
using answers::AccountReason;
using dpu::TraceMode;

/// The fate of a recording.
enum class Fate : std::uint8_t { whole, limited, killed, interrupted, cut, damaged, held_trace, lost_unseen };

/// A recording, and what the test knows about it without decoding.
struct Recorded {
    DpuTruth truth;
    std::map<std::uint32_t, std::uint64_t> calls;  ///< by function entered; empty: not known
    std::set<AccountReason> must;                  ///< reasons that the account must have
    std::set<AccountReason> never;                 ///< reasons that it must not have
    bool damaged = false;  ///< trace was changed: figures may be wrong, but must not be called exact
};

class AccountOfCounters : public testing::Test {
protected:
    void record(std::uint32_t seed);
    void change_description(const std::function<void(capture::DpuCapture&)>& change) const {
        auto capture = capture::read_dpu_folder(folder());
        ASSERT_TRUE(capture.has_value());
        change(*capture);
        ASSERT_TRUE(capture::write_dpu_folder(*capture, folder()).has_value());
    }
    static void set(capture::DpuCapture& capture, std::string_view name, std::uint64_t bits) {
        for (capture::Register& r : capture.registers)
            if (r.name == name) r.value |= bits;
    }
    [[nodiscard]] std::filesystem::path folder() const { return temporary_->path() / "out"; }

    std::optional<TemporaryFolder> temporary_;
    std::string text_;  ///< for messages
    std::optional<Recorded> recorded_;
};

void AccountOfCounters::record(std::uint32_t seed) {
    using enum TraceMode;
    constexpr std::array modes{task, flow, flow, task, flow, eonce_comp, eonce_raw, user, user_raw, sw_sample, edca5};
    recorded_.reset();
    temporary_.emplace();
    Threads run(seed);
    const TraceMode mode = modes[seed % modes.size()];
    const std::string writes = registers(run, mode);
    const auto program = dpu::read_program(writes);
    ASSERT_TRUE(program.has_value()) << program.error().message;
    DpuOptions options;
    options.program = *program;
    options.folder = folder();
    options.command = {"./program"};
    options.core.miss_cycles = 0;
    options.core.os_cycles = 10;
    options.choices.bus_cycles_per_line = run.chance(60) ? 1 : 20 + run.below(100);
    const auto fate = run.chance(50) ? Fate::whole : static_cast<Fate>(run.below(8));
    text_ = fmt::format("seed {}, fate {}:\n{}", seed, static_cast<int>(fate), writes);
    if (!resolve(options)) return;  // nothing would be traced
    auto recorder = DpuRecorder::create(options);
    ASSERT_TRUE(recorder.has_value()) << recorder.error().message;
    const bool part = fate == Fate::limited || fate == Fate::killed || fate == Fate::interrupted;
    run.on(**recorder, part ? 30 + run.below(60) : 100);
    ASSERT_TRUE((*recorder)
                    ->finish(fate == Fate::limited  ? std::string(limited_run)
                             : fate == Fate::killed ? "by force, and what the program did last may be missing"
                             : fate == Fate::interrupted
                                 ? fmt::format("by SIGINT to the recorder{}", capture::recorded_up_to_there)
                                 : std::string(whole_run))
                    .has_value());
    Recorded out;
    const auto truth = read_dpu_truth(folder());
    ASSERT_TRUE(truth.has_value());
    out.truth = *truth;
    if (!part) out.calls = run.calls;
    (fate == Fate::limited || fate == Fate::killed ? out.must : out.never).insert(AccountReason::after_end);
    if (mode == user || mode == user_raw) out.must.insert(AccountReason::filtered);
    (mode == sw_sample || mode == edca5 ? out.must : out.never).insert(AccountReason::sampled);
    if (writes.find("IDFLT=1") == writes.npos && mode != user && mode != user_raw)
        out.never.insert(AccountReason::filtered);
    if (mode != user_raw && writes.find("EN=0") == writes.npos && writes.find("TMPDIS=1") == writes.npos &&
        writes.find("@") == writes.npos)
        out.never.insert(AccountReason::held);
    const auto buffer = capture::read_dpu_folder(folder())->buffer;
    const std::uintmax_t bytes = std::filesystem::file_size(buffer);
    // The end of the file may hold no trace.
    const auto written =
        std::min<std::uintmax_t>(bytes, 32 * capture::read_dpu_folder(folder())->lines_written.value_or(0));
    if (fate == Fate::cut && written > 64) {
        std::filesystem::resize_file(buffer, written - 1 - run.below(60));
        out.must.insert(AccountReason::cut);
        out.damaged = true;
    } else {
        out.never.insert(AccountReason::cut);
    }
    // Contents of readings can be checked; any word is possible user data.
    if (fate == Fate::damaged && bytes > 96 && (mode == task || mode == flow)) {
        std::fstream file(buffer, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(32 * run.below(static_cast<std::uint32_t>(bytes / 32))));
        for (unsigned i = 0; i < 32; ++i) file.put(static_cast<char>(run.below(256)));
        out.damaged = true;
    }
    if (fate == Fate::held_trace) {
        change_description([](auto& capture) { set(capture, "DP_SR", 1U << 6); });
        out.must.insert(AccountReason::recorder);
    } else {
        out.never.insert(AccountReason::recorder);
    }
    if (fate == Fate::lost_unseen) {
        change_description([](auto& capture) { set(capture, "DP_MR", 1U << 11); });
        out.must.insert(AccountReason::overflow);
    }
    recorded_ = std::move(out);
}

/// A reason that the account must have, and lacks; empty: none.
std::string_view missing_in(const Account& account, const Recorded& recorded) {
    for (const AccountReason reason : recorded.must)
        if (!answers::has_reason(account, reason))
            return answers::account_reason_words[static_cast<std::size_t>(reason)];
    return {};
}

/// A decoded recording.
struct Decoded {
    analysis::DpuSaid said;
    doctor::DpuSums sums;
    answers::Answers answers;
};

/// The first figure that claims more than was observed; empty: there is none.
std::string wrong_in(const Decoded& d, const Account& account, const Recorded& recorded) {
    const answers::Completeness completeness = answers::completeness(account);
    const std::string_view word = completeness.word();
    std::string wrong;
    const auto figure = [&](const std::string& what, std::uint64_t shown, std::uint64_t truth) {
        if (word == "exact" ? shown != truth : shown > truth && !recorded.damaged && word == "lower bound")
            if (wrong.empty()) wrong = fmt::format("{}: {} is {}, and was {}", word, what, shown, truth);
    };
    const auto& costs = *d.sums.costs;
    const DpuTruth& truth = recorded.truth;
    if (costs.knows_stays()) {
        std::map<DpuTruth::Context, analysis::DpuTask> shown;
        for (const auto& [who, task] : costs.tasks())
            if (who.is_context()) shown[{who.context.supervisor, who.context.id}] = task;
        auto all = truth.contexts;
        for (const auto& [context, task] : shown) all.try_emplace(context);
        for (const auto& [context, counted] : all) {
            const auto found = shown.find(context);
            const std::string who = fmt::format("{} {}", context.supervisor ? "supervisor" : "user", context.id);
            figure("stays of " + who, found == shown.end() ? 0 : found->second.entered, counted.times);
            for (unsigned c = 0; c < dpu::counter_count; ++c)
                if (truth.counters[c])
                    figure(fmt::format("counter {} of {}", c, who), found == shown.end() ? 0 : found->second.sum[c],
                           counted.happened.count[*truth.counters[c]]);
        }
    }
    if (d.said.mode == TraceMode::flow)
        for (const auto& [address, times] : recorded.calls) {
            std::uint64_t shown = 0;
            for (const auto& [f, cost] : costs.functions())
                if (f.address == address) shown += cost.calls;
            figure(fmt::format("calls of {:#x}", address), shown, times);
        }
    // Literal words that fill lines look like words of the program (docs/spec/dpu.md, 13.4).
    const bool literal = d.said.mode == TraceMode::user_raw;
    if (d.said.mode == TraceMode::user || literal) {
        const std::string exact = analysis::trust_in("data", d.said, costs).exact;
        const bool whole = exact.find("there may have been more") == exact.npos;
        const std::size_t shown = costs.data().size(), written = truth.user_data.size();
        if (whole ? shown != written : shown > written && !recorded.damaged)
            wrong = fmt::format("{}: {} of {} user data", exact, shown, written);
        if (!literal && !whole && !completeness.strict) wrong = "user data may be missing, and --strict passes";
    }
    if (!completeness.strict) return wrong;
    for (const answers::Finding& f : d.answers.health)
        if (f.what.starts_with("Nothing was lost")) return "nothing is called lost, and --strict fails";
    return wrong;
}

/// Nothing: nothing was recorded, or the recording has no content, as every command says.
std::optional<Decoded> decode(const std::filesystem::path& folder) {
    const auto input = doctor::DpuInput::open(folder.string());
    EXPECT_TRUE(input.has_value()) << input.error().message;
    if (!input) return std::nullopt;
    Decoded d;
    const analysis::DpuCode code;
    analysis::DpuSetup setup = input->setup();
    auto sums = doctor::add_up(input->trace(), input->trace_bytes(), setup, code);
    EXPECT_TRUE(sums.has_value()) << sums.error().message;
    if (!sums) return std::nullopt;
    d.sums = std::move(*sums);
    if (!doctor::DpuInput::has_content(d.sums.decoded.totals)) return std::nullopt;
    d.said = input->said(setup, d.sums.decoded);
    d.answers = analysis::answers_of_dpu(*d.sums.costs, nullptr, code, d.said);
    return d;
}

TEST_F(AccountOfCounters, SaysNothingBeyondWhatWasObserved) {
    std::array<std::uint64_t, answers::account_reasons> met{};
    std::array<std::vector<std::uint32_t>, answers::account_reasons> needed{};
    std::uint64_t exact = 0, bounds = 0;
    std::vector<answers::Answers> several;
    const account_test::Seeds seeds = account_test::seeds_to(sized(1000U, 50U));
    const std::uint64_t all = seeds.last - seeds.first + 1;
    for (auto seed = static_cast<std::uint32_t>(seeds.first); seed <= seeds.last; ++seed) {
        record(seed);
        SCOPED_TRACE(fmt::format("WAYMARK_PROPERTY_SEED={}: {}", seed, text_));
        if (HasFatalFailure()) return;
        if (!recorded_) continue;
        auto decoded = decode(folder());
        if (!decoded) continue;
        Decoded& d = *decoded;
        const Account& account = d.answers.account;
        const std::string sentence = answers::account_sentence(account);
        EXPECT_EQ(wrong_in(d, account, *recorded_), "") << sentence;
        constexpr std::uint32_t words_one_in = 20;
        if (seed % words_one_in == 0) {
            EXPECT_EQ(account_test::wrong_words_in(d.answers, temporary_->path()), "") << sentence;
        }
        const auto has = [&](AccountReason reason) {
            return std::any_of(account.begin(), account.end(), [&](const auto& row) { return row.reason == reason; });
        };
        EXPECT_EQ(missing_in(account, *recorded_), "") << sentence;
        for (const AccountReason reason : recorded_->never)
            EXPECT_FALSE(has(reason)) << answers::account_reason_words[static_cast<std::size_t>(reason)] << " is in "
                                      << sentence;
        const answers::Completeness completeness = answers::completeness(account);
        const pipeline::Shortcoming shortcoming = pipeline::shortcoming_of({&d.answers});
        EXPECT_EQ(shortcoming.of != nullptr, completeness.strict) << sentence << "; " << shortcoming.what;
        ++(completeness.word() == "exact" ? exact : bounds);
        for (const answers::AccountRow& row : account) {
            const auto reason = static_cast<std::size_t>(row.reason);
            ++met[reason];
            Account without = account;
            std::erase(without, row);
            if (!wrong_in(d, without, *recorded_).empty() || !missing_in(without, *recorded_).empty())
                needed[reason].push_back(seed);
        }
        // The sum of several contains the statements of each, in any order.
        several.push_back(std::move(d.answers));
        if (several.size() < 3) continue;
        std::array<std::size_t, 3> order{0, 1, 2};
        std::set<std::string> sentences;
        const bool strict = std::any_of(several.begin(), several.end(), [](const answers::Answers& each) {
            return answers::completeness(each.account).strict;
        });
        do {
            const answers::Answers sum =
                analysis::merge_counter_runs({several[order[0]], several[order[1]], several[order[2]]});
            ASSERT_EQ(answers::completeness(sum.account).strict, strict) << answers::account_sentence(sum.account);
            sentences.insert(answers::account_sentence(sum.account));
        } while (std::next_permutation(order.begin(), order.end()));
        ASSERT_EQ(sentences.size(), 1U);
        several.clear();
    }
    for (std::size_t i = 0; i < met.size(); ++i)
        if (met[i] != 0)
            std::printf("%-16s in %llu runs, the only reason in %zu of them\n",
                        std::string(answers::account_reason_words[i]).c_str(), static_cast<unsigned long long>(met[i]),
                        needed[i].size());
    std::printf("%llu runs are exact, %llu are not\n", static_cast<unsigned long long>(exact),
                static_cast<unsigned long long>(bounds));
    if (all < 1000) return;
    EXPECT_GT(exact, all / 20);
    EXPECT_GT(bounds, all / 10);
    for (const AccountReason reason :
         {AccountReason::held, AccountReason::filtered, AccountReason::overflow, AccountReason::overwritten,
          AccountReason::after_end, AccountReason::recorder, AccountReason::sampled, AccountReason::cut}) {
        // This test detects a producer that forgets one of these.
        const std::string_view word = answers::account_reason_words[static_cast<std::size_t>(reason)];
        const auto& of_reason = needed[static_cast<std::size_t>(reason)];
        ASSERT_FALSE(of_reason.empty()) << word;
        const account_test::WithoutReasons without({reason});
        record(of_reason.front());
        ASSERT_TRUE(recorded_.has_value());
        const auto d = decode(folder());
        ASSERT_TRUE(d.has_value());
        std::string wrong = wrong_in(*d, d->answers.account, *recorded_);
        if (wrong.empty()) wrong = missing_in(d->answers.account, *recorded_);
        EXPECT_NE(wrong, "") << word << " is missing in the account, and nothing is wrong: seed " << of_reason.front();
        std::printf("without %s: %s\n", std::string(word).c_str(), wrong.c_str());
    }
}

}  // namespace
}  // namespace waymark::record
