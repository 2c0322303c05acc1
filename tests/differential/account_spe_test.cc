// The account of samples against the truth: random executions, sampled as the unit does, with filters, levels and
// discards, and then lost in every way. The test knows which operations ran without a decoder, and which samples were
// lost because it removed them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "differential/account_outputs.h"
#include "support/perf_file.h"
#include "support/random.h"
#include "support/sanitized.h"
#include "support/spe_capture.h"
#include "support/temporary_folder.h"
#include "support/tiny_elf.h"
#include "waymark/analysis/spe_answers.h"
#include "waymark/answers/account.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/interval.h"
#include "waymark/answers/sum.h"
#include "waymark/pipeline/several.h"

namespace waymark::analysis {
namespace {

using answers::Account;
using answers::AccountReason;
using answers::Answers;
using answers::Seen;
using spe::OperationClass;
using support::SpeSample;
using Reasons = std::set<AccountReason>;

constexpr std::uint64_t code = 0x401000, function_bytes = 64, kernel = 0xffff800008000100;
constexpr std::size_t functions = 6, cpus = 2;
constexpr std::uint8_t reserved = 0x0f;  ///< no header, of no known size

/// The reasons of a capture of samples that fail `--strict` (docs/account.md).
const Reasons strict_reasons{AccountReason::overflow,    AccountReason::packets, AccountReason::frames,
                             AccountReason::overwritten, AccountReason::cut,     AccountReason::recorder,
                             AccountReason::no_context};
/// The reasons for lost samples, with which no output may say that none was lost.
const Reasons losses{AccountReason::overflow,    AccountReason::packets, AccountReason::frames,
                     AccountReason::overwritten, AccountReason::cut,     AccountReason::recorder,
                     AccountReason::collided};

/// The operations that ran, and the fate of their samples.
struct Sampled {
    std::vector<std::uint8_t> file;              ///< perf.data
    std::map<std::uint64_t, std::uint64_t> ran;  ///< operations by address
    std::array<std::uint64_t, functions> by_function{};
    std::uint64_t population{};  ///< operations that could be chosen
    Reasons reasons;             ///< of the account
    bool unbiased = true;        ///< every operation of the population had the same chance
    std::string text;            ///< for messages
};

std::vector<std::uint8_t> program_file() {
    TinyElf elf;
    elf.is_64 = true;
    elf.machine = EM_AARCH64;
    elf.segments.push_back({PT_LOAD, 0x400000, std::vector<std::uint8_t>(0x2000), 0, 0});
    for (std::size_t f = 0; f < functions; ++f)
        elf.symbols.push_back({fmt::format("f{}", f), code + f * function_bytes, function_bytes});
    return elf.build();
}

/// A run and its capture.
class Recorder {
public:
    explicit Recorder(std::uint32_t seed) : random_(seed) {
        program_unit();
        run();
        lose();
        out_.file = write();
    }
    Sampled take() { return std::move(out_); }

private:
    bool named(bool is, std::string_view name) {
        if (is) out_.text += fmt::format(" {}", name);
        return is;
    }
    bool one_in(std::uint32_t n) { return random_.below(n) == 0; }

    void program_unit() {
        attrs_ = support::spe_attrs();
        capture::perf::Attr& attr = attrs_[0];
        interval_ = 256U << random_.below(2);
        attr.sample_period = interval_;
        attr.config = 1;  // ts_enable
        if (named(one_in(2), "jitter")) {
            jitter_ = true;
            attr.config |= 1U << 16;
        }
        bool filters = false;
        const auto filter = [&](std::uint32_t n, std::string_view name) {
            const bool is = named(one_in(n), name);
            filters |= is;
            return is;
        };
        if (filter(8, "branches")) attr.config |= std::uint64_t{1} << 32;
        if (filter(8, "loads")) attr.config |= std::uint64_t{1} << 33;
        if (filter(8, "stores")) attr.config |= std::uint64_t{1} << 34;
        if (filter(8, "latency")) attr.config2 = latency_ = 6;
        if (filter(10, "events")) attr.config1 = events_ = 1U << 3;
        if (filter(12, "inverse events")) attr.config3 = no_events_ = 1U << 3;
        out_.unbiased = !filters;
        constexpr std::uint64_t exclude_user = 1U << 4, exclude_kernel = 1U << 5;
        levels_ = {true, true};
        if (filter(8, "user only")) {
            attr.flags |= exclude_kernel;
            levels_[1] = false;
        } else if (filter(12, "kernel only")) {
            attr.flags |= exclude_user;
            levels_[0] = false;
        }
        if (filter(25, "discard")) {
            attr.config |= std::uint64_t{1} << 35;
            discard_ = true;
        }
        if (filters) out_.reasons.insert(AccountReason::filtered);
        slow_ = named(one_in(6), "slow loads");
    }

    [[nodiscard]] bool passes(const SpeSample& s, bool load, bool store) const {
        const std::uint64_t config = attrs_[0].config;
        if ((config >> 32 & 7U) != 0) {
            const bool branch = s.operation_class == OperationClass::branch;
            if (!((config >> 32 & 1U) != 0 && branch) && !((config >> 33 & 1U) != 0 && load) &&
                !((config >> 34 & 1U) != 0 && store))
                return false;
        }
        return s.total >= latency_ && (s.events & events_) == events_ && (s.events & no_events_) == 0 && !discard_;
    }

    void run() {
        std::array<std::uint32_t, functions> weights{};
        for (std::uint32_t& weight : weights) weight = 1 + random_.below(20);
        const std::uint32_t all = std::accumulate(weights.begin(), weights.end(), 0U);
        std::array<std::uint64_t, cpus> left{};
        for (std::uint64_t& each : left) each = next_interval();
        std::array<std::uint64_t, cpus> busy_until{};
        const std::uint32_t stays = 500 + random_.below(2500);
        std::uint64_t now = 1000;
        // By function, behind which are the operations of the kernel, and operation.
        std::array<std::array<std::uint64_t, function_bytes / 4>, functions + 1> times{};
        for (std::uint32_t stay = 0; stay < stays; ++stay) {
            const std::size_t cpu = random_.below(cpus);
            const bool in_kernel = one_in(10);
            std::uint32_t which = random_.below(all);
            std::size_t f = 0;
            while (which >= weights[f]) which -= weights[f++];
            for (std::uint32_t n = 5 + random_.below(60); n != 0; --n) {
                const std::uint64_t offset = random_.below(function_bytes / 4) * 4;
                SpeSample s;
                s.cpu = static_cast<std::uint32_t>(cpu);
                s.time = ++now;
                s.el = in_kernel ? 1 : 0;
                s.pc = in_kernel ? kernel + offset : code + f * function_bytes + offset;
                ++times[in_kernel ? functions : f][offset / 4];
                if (!levels_[s.el]) continue;
                ++out_.population;
                if (!in_kernel) ++out_.by_function[f];
                if (--left[cpu] != 0) continue;
                left[cpu] = next_interval();
                sample(s, offset / 4, busy_until[cpu]);
            }
        }
        for (std::size_t f = 0; f <= functions; ++f)
            for (std::size_t i = 0; i < times[f].size(); ++i)
                if (times[f][i] != 0)
                    out_.ran[(f == functions ? kernel : code + f * function_bytes) + 4 * i] = times[f][i];
    }
    std::uint64_t next_interval() { return interval_ + 1 + (jitter_ ? random_.below(256) : 0); }

    void sample(SpeSample& s, std::uint64_t kind, std::uint64_t& busy_until) {
        if (s.time < busy_until) {
            collided_.insert(s.cpu);
            return;
        }
        const bool load = kind % 4 == 1, store = kind % 4 == 2;
        if (kind % 4 == 3) {
            s.operation_class = OperationClass::branch;
            s.type = 1;
            s.target = code;
        } else if (load || store) {
            s.operation_class = OperationClass::load_store;
            s.type = store ? 1 : 0;
            s.address = 0x10000 + random_.below(4096) * 8;
        } else {
            s.operation_class = OperationClass::other;
        }
        s.events = 2U | random_.below(2) << 3;
        s.total = static_cast<std::uint16_t>(1 + random_.below(12));
        if (slow_ && load && one_in(2)) s.total = static_cast<std::uint16_t>(600 + random_.below(2000));
        busy_until = s.time + s.total;
        if (passes(s, load, store)) samples_[s.cpu].push_back(s);
    }

    /// A piece of a CPU's buffer: an AUXTRACE record and the AUX record that announces it.
    struct Piece {
        std::size_t cpu{};
        std::vector<SpeSample> samples;
        std::uint64_t flags{};
        std::size_t without_head{};  ///< bytes
        std::size_t damaged{};       ///< samples whose bytes are no packets
    };

    void lose() {
        using capture::perf::AuxRange;
        for (std::size_t cpu = 0; cpu < cpus; ++cpu)
            for (std::size_t i = 0, n = samples_[cpu].size(); i < 3; ++i) {
                const auto at = [&](std::size_t third) {
                    return samples_[cpu].begin() + static_cast<std::ptrdiff_t>(n * third / 3);
                };
                if (at(i) != at(i + 1)) pieces_.push_back({cpu, {at(i), at(i + 1)}});
            }
        for (Piece& piece : pieces_)
            if (collided_.contains(static_cast<std::uint32_t>(piece.cpu))) {
                piece.flags |= AuxRange::collision;
                out_.reasons.insert(AccountReason::collided);
                out_.unbiased = false;
            }
        if (pieces_.empty()) return;
        const auto any = [&]() -> Piece& { return pieces_[random_.below(static_cast<std::uint32_t>(pieces_.size()))]; };
        if (named(one_in(10), "wrap")) {
            // A snapshot of a buffer that wrapped: it begins inside a record.
            const std::size_t cpu = any().cpu;
            const auto first =
                std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& p) { return p.cpu == cpu; });
            const auto next = std::next(first);
            if (next != pieces_.end() && next->cpu == cpu) pieces_.erase(first);
            for (Piece& piece : pieces_)
                if (piece.cpu == cpu) {
                    piece.flags |= AuxRange::overwrite;
                    if (piece.without_head == 0 && !wrapped_) piece.without_head = 1 + random_.below(8);
                    wrapped_ = true;
                }
            lost(AccountReason::overwritten);
        }
        for (const auto& [flag, name] :
             {std::pair(AuxRange::truncated, "truncated"), std::pair(AuxRange::partial, "partial")})
            if (named(one_in(10), name)) {
                Piece& piece = any();
                piece.flags |= flag;
                piece.samples.resize((piece.samples.size() + 1) / 2);
                lost(AccountReason::overflow);
            }
        if (named(one_in(10), "damage")) {
            Piece& piece = any();
            // Bytes behind the last record of a PARTIAL piece that are no packet belong to that loss.
            if (piece.without_head == 0 && (piece.flags & AuxRange::partial) == 0 && piece.samples.size() > 2) {
                piece.damaged = 1 + random_.below(static_cast<std::uint32_t>(piece.samples.size() - 2));
                lost(AccountReason::packets);
            }
        }
        if (named(one_in(12), "throttle")) {
            throttles_ = 1 + random_.below(3);
            // The damaged sample stays.
            if (Piece& piece = any(); piece.damaged == 0) piece.samples.resize((piece.samples.size() + 1) / 2);
            lost(AccountReason::recorder);
        }
        if (named(one_in(12), "lost records")) {
            lost_records_ = 1 + random_.below(30);
            lost(AccountReason::recorder);
        }
        if (named(one_in(10), "cut")) {
            cut_ = true;
            lost(AccountReason::cut);
        }
        if (named(one_in(10), "no threads")) {
            no_threads_ = true;
            out_.reasons.insert(AccountReason::no_context);
        }
    }
    void lost(AccountReason reason) {
        out_.reasons.insert(reason);
        out_.unbiased = false;
    }

    std::vector<std::uint8_t> write() {
        using namespace capture::perf;
        ByteCollector collector;
        PerfWriter w(collector, attrs_);
        w.feature_text(Feature::arch, "aarch64");
        w.feature_text(Feature::cpu_id, "0x00000000410fd490");
        w.pmus({{1, "software"}, {8, "arm_spe_0"}});
        w.time_conversion({20, 41943040, 0, 0, ~std::uint64_t{0}, false});
        w.auxtrace_info({AuxtraceInfo::arm_spe, {8, 1}});
        Mapping system;
        system.pid = nobody;
        system.address = {0xffff800008000000};
        system.bytes = 0x1000000;
        system.file_offset = 0xffff800008000000;
        system.file = "[kernel.kallsyms]_text";
        w.mapping(system, {});
        w.task({TaskEvent::Kind::comm, 77, 77, nobody, nobody, 0, "server"}, {});
        Mapping program;
        program.pid = program.tid = 77;
        program.address = {0x400000};
        program.bytes = 0x10000;
        program.file_offset = 64;
        program.protection = 5;
        program.file = "/usr/bin/server";
        w.mapping(program, {});
        if (!no_threads_)
            for (std::uint32_t cpu = 0; cpu < cpus; ++cpu) w.switch_to(77, 77, {0, 0, cpu, 1, 1});
        for (std::uint32_t i = 0; i < throttles_; ++i) {
            const PerfWriter::At at{77, 77, 0, 2000, 0};
            w.record(static_cast<Type>(5), 0, std::vector<std::uint8_t>(24), &at);
        }
        if (lost_records_ != 0) w.lost(200, lost_records_, {77, 77, 0, 2000, 1});
        std::array<std::uint64_t, cpus> ring{};
        std::size_t last_bytes = 0;
        for (const Piece& piece : pieces_) {
            std::vector<std::uint8_t> bytes;
            for (std::size_t i = 0; i < piece.samples.size(); ++i) {
                const std::size_t begin = bytes.size();
                support::encode(bytes, piece.samples[i]);
                if (piece.damaged != 0 && i == piece.damaged)
                    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.end(), reserved);
            }
            bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(piece.without_head));
            Chunk c;
            c.cpu = c.index = static_cast<std::uint32_t>(piece.cpu);
            c.ring = ring[piece.cpu];
            w.aux({c.ring, bytes.size(), piece.flags, {}}, {77, 77, c.cpu, 1, 0});
            w.auxtrace(c, bytes);
            ring[piece.cpu] += bytes.size();
            last_bytes = (bytes.size() + 7) / 8 * 8;
        }
        if (!cut_) w.finished_round();
        const std::uint64_t data_end = w.size();
        const auto header = w.finish();
        std::vector<std::uint8_t> out = collector.take();
        std::copy(header.begin(), header.end(), out.begin());
        if (cut_) out.resize(data_end - 1 - random_.below(static_cast<std::uint32_t>(last_bytes - 1)));
        return out;
    }

    synthetic::Random random_;
    std::vector<capture::perf::Attr> attrs_;
    std::uint64_t interval_{}, events_{}, no_events_{};
    std::uint32_t latency_{}, throttles_{}, lost_records_{};
    bool jitter_{}, discard_{}, slow_{}, cut_{}, no_threads_{}, wrapped_{};
    std::array<bool, 2> levels_{};
    std::set<std::uint32_t> collided_;
    std::array<std::vector<SpeSample>, cpus> samples_;
    std::vector<Piece> pieces_;
    Sampled out_;
};

std::string names(const Reasons& reasons) {
    std::string out;
    for (const AccountReason reason : reasons)
        out += fmt::format("{}{}", out.empty() ? "" : ", ",
                           answers::account_reason_words[static_cast<std::size_t>(reason)]);
    return out;
}

Reasons reasons_of(const Account& account) {
    Reasons out;
    for (const answers::AccountRow& row : account) out.insert(row.reason);
    return out;
}

class AccountOfSamples : public testing::Test {
protected:
    AccountOfSamples() {
        const auto elf = program_file();
        folder_.write("root/usr/bin/server", {reinterpret_cast<const char*>(elf.data()), elf.size()});
    }
    /// Empty: there is no sample.
    Answers answers_of(const Sampled& run) {
        const auto path = folder_.write("perf.data", {reinterpret_cast<const char*>(run.file.data()), run.file.size()});
        auto capture = open_samples(path);
        EXPECT_TRUE(capture.has_value()) << (capture ? "" : capture.error().message);
        if (!capture) return {};
        GatheredSamples gathered({false, 0});
        const SampleTotals totals = run_samples(*capture, {}, gathered, 1, nullptr, 64);
        Program program(*capture, {{folder_.path() / "root", {}}, {}});
        return answers_of_samples(*capture, totals, gathered, nullptr, program, {});
    }
    TemporaryFolder folder_;
};

/// The first statement that claims more than was observed; empty: there is none.
std::string wrong_in(const Answers& a, const Sampled& run) {
    const answers::Completeness completeness = answers::completeness(a.account);
    std::uint64_t samples = 0;
    for (const answers::Instruction& i : a.instructions) {
        const std::uint64_t here = i.costs.empty() ? 0 : i.costs.front();
        samples += here;
        const auto found = run.ran.find(i.address);
        if (found == run.ran.end() && (here != 0 || i.seen == Seen::executed))
            return fmt::format("{:#x} did not run, and has {} samples", i.address, here);
        if (found != run.ran.end() && i.seen == Seen::not_executed)
            return fmt::format("{:#x} ran and is called not executed", i.address);
    }
    if (samples > run.population) return fmt::format("{} samples of {} operations", samples, run.population);
    if (completeness.word() == "exact" && samples != run.population)
        return fmt::format("exact: {} samples of {} operations", samples, run.population);
    for (const answers::Branch& b : a.branches)
        if (b.seen_taken == Seen::not_executed || b.seen_not_taken == Seen::not_executed)
            return fmt::format("an outcome of {:#x} is called not executed", b.address);
    for (const answers::Metric& m : a.metrics)
        if (m.exact) return m.name + " is called exact";
    const bool lost =
        std::any_of(losses.begin(), losses.end(), [&](AccountReason reason) { return run.reasons.contains(reason); });
    for (const answers::Finding& f : a.health)
        if (lost && f.what == "No sample was lost") return "no sample is called lost";
    return {};
}

std::uint64_t samples_in(const Answers& a) {
    std::uint64_t samples = 0;
    for (const answers::FunctionCosts& f : answers::function_costs(a))
        if (!f.self.empty()) samples += f.self.front();
    return samples;
}

/// The difference between the account's reasons and the run's, which `run` contains in full afterwards; empty: none.
std::string wrong_reasons_in(const Answers& a, Sampled& run) {
    if (samples_in(a) != 0)
        run.reasons.insert({AccountReason::decoded, AccountReason::sampled});
    else
        run.reasons.erase(AccountReason::no_context);  // no sample is left whose thread could be unknown
    const Reasons said = reasons_of(a.account);
    // The record that the end of the file or the wrap of the buffer cuts is damaged, too.
    if ((run.reasons.contains(AccountReason::cut) || run.reasons.contains(AccountReason::overwritten)) &&
        said.contains(AccountReason::packets))
        run.reasons.insert(AccountReason::packets);
    if (said == run.reasons) return {};
    return fmt::format("the reasons are {}, and were {}", names(said), names(run.reasons));
}

TEST_F(AccountOfSamples, WithoutSamplesNoThreadIsMissing) {
    // Its only sample is damaged, and the capture does not state which threads ran.
    Sampled run = Recorder(6568).take();
    ASSERT_TRUE(run.reasons.contains(AccountReason::no_context));
    const Answers a = answers_of(run);
    EXPECT_EQ(samples_in(a), 0U);
    EXPECT_EQ(wrong_reasons_in(a, run), "");
    EXPECT_EQ(wrong_in(a, run), "");
}

TEST_F(AccountOfSamples, SaysNothingBeyondWhatWasObserved) {
    std::array<std::uint64_t, answers::account_reasons> met{};
    std::map<AccountReason, std::uint32_t> first_met;  // the first run of a reason
    std::uint64_t inside = 0, shares = 0;
    std::vector<Answers> several;
    Reasons of_several;
    const account_test::Seeds seeds = account_test::seeds_to(sized(1000U, 50U));
    for (auto seed = static_cast<std::uint32_t>(seeds.first); seed <= seeds.last; ++seed) {
        Sampled run = Recorder(seed).take();
        SCOPED_TRACE(fmt::format("WAYMARK_PROPERTY_SEED={}:{}", seed, run.text));
        const Answers a = answers_of(run);
        const std::uint64_t samples = samples_in(a);
        EXPECT_EQ(wrong_reasons_in(a, run), "") << answers::account_sentence(a.account);
        EXPECT_EQ(wrong_in(a, run), "") << answers::account_sentence(a.account);
        constexpr std::uint32_t words_one_in = 20;
        if (seed % words_one_in == 0) {
            EXPECT_EQ(account_test::wrong_words_in(a, folder_.path()), "") << answers::account_sentence(a.account);
        }
        const bool strict = std::any_of(strict_reasons.begin(), strict_reasons.end(),
                                        [&](AccountReason reason) { return run.reasons.contains(reason); });
        const pipeline::Shortcoming shortcoming = pipeline::shortcoming_of({&a});
        EXPECT_EQ(shortcoming.of != nullptr, strict)
            << answers::account_sentence(a.account) << "; " << shortcoming.what;
        for (const AccountReason reason : run.reasons) {
            ++met[static_cast<std::size_t>(reason)];
            // The record that the end of the file or the wrap of the buffer cuts may be damaged, or not.
            if (reason != AccountReason::packets ||
                !(run.reasons.contains(AccountReason::cut) || run.reasons.contains(AccountReason::overwritten)))
                first_met.try_emplace(reason, seed);
        }
        if (run.unbiased && samples >= answers::few_samples) {
            const auto costs = answers::function_costs(a);
            for (std::size_t i = 0; i < costs.size(); ++i) {
                const std::uint64_t address = a.functions[i].address;
                if (address < code || address >= code + functions * function_bytes) continue;
                const answers::Interval says =
                    answers::wilson_95(costs[i].self.empty() ? 0 : costs[i].self.front(), samples);
                const double truth = static_cast<double>(run.by_function[(address - code) / function_bytes]) /
                                     static_cast<double>(run.population);
                inside += says.low <= truth && truth <= says.high ? 1 : 0;
                ++shares;
            }
        }
        // The sum of several contains the statements of each.
        several.push_back(a);
        of_several.insert(run.reasons.begin(), run.reasons.end());
        if (several.size() < 3) continue;
        std::vector<std::size_t> order{0, 1, 2};
        std::set<std::string> sentences;
        do {
            answers::AnswersSum sum;
            for (const std::size_t i : order) sum.add(several[i]);
            const Answers all = sum.take();
            ASSERT_EQ(names(reasons_of(all.account)), names(of_several));
            sentences.insert(answers::account_sentence(all.account));
        } while (std::next_permutation(order.begin(), order.end()));
        ASSERT_EQ(sentences.size(), 1U);
        several.clear();
        of_several.clear();
    }
    for (std::size_t i = 0; i < met.size(); ++i)
        if (met[i] != 0)
            std::printf("%-16s in %llu runs\n", std::string(answers::account_reason_words[i]).c_str(),
                        static_cast<unsigned long long>(met[i]));
    std::printf("%llu of %llu shares lie in their intervals\n", static_cast<unsigned long long>(inside),
                static_cast<unsigned long long>(shares));
    const std::uint64_t runs = seeds.last - seeds.first + 1;
    if (runs < 1000) return;
    // 95 % of shares lie in their intervals, and a few less by chance.
    EXPECT_GT(shares, runs / 4);
    EXPECT_GT(inside * 100, shares * 93);
    // This test detects a producer that forgets one of these.
    Reasons all = strict_reasons;
    all.erase(AccountReason::frames);  // such trace has no frames
    all.insert({AccountReason::sampled, AccountReason::collided, AccountReason::filtered});
    for (const AccountReason reason : all) {
        const std::string_view word = answers::account_reason_words[static_cast<std::size_t>(reason)];
        ASSERT_TRUE(first_met.contains(reason)) << word;
        const account_test::WithoutReasons without({reason});
        Sampled run = Recorder(first_met[reason]).take();
        const Answers a = answers_of(run);
        std::string wrong = wrong_in(a, run);
        if (wrong.empty()) wrong = wrong_reasons_in(a, run);
        EXPECT_NE(wrong, "") << word << " is missing in the account, and nothing is wrong: " << first_met[reason];
        std::printf("without %s: %s\n", std::string(word).c_str(), wrong.c_str());
    }
}

}  // namespace
}  // namespace waymark::analysis
