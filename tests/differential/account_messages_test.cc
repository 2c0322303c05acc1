// The account of messages against the truth: what software wrote to an ITM or an STM, and what a DWT met, sent by the
// units' models, lost in a full FIFO, and then lost in every way. No figure of a capture that is called whole differs
// from what was sent, and no other figure is above it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "differential/account_frames.h"
#include "differential/account_outputs.h"
#include "differential/commands_in_process.h"
#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "waymark/answers/account.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/sum.h"
#include "waymark/capture/capture.h"
#include "waymark/capture/snapshot.h"
#include "waymark/core/wire.h"
#include "waymark/itm/model.h"
#include "waymark/itm/packet.h"
#include "waymark/itm/protocol.h"
#include "waymark/pipeline/account.h"
#include "waymark/pipeline/message_answers.h"
#include "waymark/pipeline/session.h"
#include "waymark/pipeline/several.h"
#include "waymark/stm/model.h"
#include "waymark/stm/protocol.h"

namespace waymark {
namespace {

using account_test::OneIn;
using answers::Account;
using answers::AccountReason;
using answers::Answers;
using protocol::Message;
using protocol::MessageKind;

/// Figures of a capture by name: `port 3 writes`.
using Figures = std::map<std::string, std::uint64_t>;

/// What was sent, and its trace.
struct Sent {
    std::vector<std::uint8_t> bytes;
    std::vector<std::size_t> between;  ///< offsets between packets
    Figures truth;
    std::uint64_t messages{}, overflows{};
    std::string type, ending;  ///< `ending`: bytes that are no packet
    std::vector<RegisterValue> registers;
    bool framed = false;
    std::optional<capture::Source> neighbour{};
    std::size_t head{}, tail{};  ///< bytes that are not in the capture
    bool begins_late = false, ends_early = false;
    /// Bytes of an ITM are missing that show where packets begin, or the page of its ports: up to a synchronisation or
    /// page packet, both are assumed.
    bool misread = false;
    std::set<AccountReason> must;  ///< reasons that the account must have
    std::string text;              ///< for messages
};

void count(Figures& to, const Message& m) {
    switch (m.kind) {
        case MessageKind::text: {
            const std::string what =
                m.port ? fmt::format("port {}", *m.port) : fmt::format("master {} channel {}", *m.master, *m.channel);
            ++to[what + " writes"];
            to[what + " bytes"] += m.value_bytes;
            if (m.marked) ++to[what + " messages ended"];
            break;
        }
        case MessageKind::flag: ++to[fmt::format("master {} channel {} messages ended", *m.master, *m.channel)]; break;
        case MessageKind::exception:
            if (m.change == Message::Change::entered) ++to[fmt::format("exception {}", *m.number)];
            break;
        case MessageKind::access:
            ++to[fmt::format("comparator {} {}", *m.comparator,
                             m.direction == Message::Direction::write ? "writes" : "reads")];
            break;
        default: break;
    }
}

Figures figures_of(const Answers& a) {
    Figures out;
    const auto add = [&](std::string what, const std::string& number) {
        if (const std::uint64_t value = std::strtoull(number.c_str(), nullptr, 10); value != 0)
            out[std::move(what)] += value;
    };
    for (const answers::Table& table : a.tables)
        for (const auto& row : table.rows)
            for (std::size_t c = 0; c < row.size(); ++c) {
                const std::string& column = table.columns[c].name;
                if (table.title == "stimulus ports" && c > 1)
                    add(fmt::format("port {} {}", row[1].field(), column), row[c].field());
                if (table.title == "channels" && c > 2)
                    add(fmt::format("master {} channel {} {}", row[1].field(), row[2].field(), column), row[c].field());
                if (table.title == "watched data" && (column == "reads" || column == "writes"))
                    add(fmt::format("comparator {} {}", row[1].field(), column), row[c].field());
            }
    for (const answers::ExceptionRow& row : a.exceptions) out[fmt::format("exception {}", row.number)] += row.times;
    return out;
}

Message random_text(const OneIn<wire::Random>& one_in) {
    Message m;
    m.kind = MessageKind::text;
    m.value_bytes = static_cast<std::uint8_t>(1U << one_in.below(3));
    m.value = one_in.below(256);
    return m;
}

template <class Named>
Sent send_itm(wire::Random& random, const Named& named, const OneIn<wire::Random>& one_in) {
    Sent out;
    itm::ModelConfig config;
    config.timestamps = !one_in(4);
    config.sync_messages = named(one_in(3), "no syncs") ? 0 : 1 + one_in.below(20);
    config.config.prescaler = static_cast<std::uint8_t>(1U << 2 * one_in.below(4));
    if (named(one_in(3), "FIFO")) {
        config.fifo_bytes = 20 + one_in.below(40);
        config.cycles_per_byte = 1 + one_in.below(8);
    }
    const bool samples = named(one_in(4), "samples");
    itm::Model model(config);
    model.sync();
    std::uint64_t cycle = 0;
    for (std::size_t left = 50 + one_in.below(200); left != 0; --left) {
        Message m = random_text(one_in);
        switch (one_in.below(8)) {
            case 0:
                m.kind = MessageKind::exception;
                m.number = static_cast<std::uint32_t>(1 + one_in.below(60));
                m.change = static_cast<Message::Change>(1 + one_in.below(3));
                break;
            case 1:
                m.kind = MessageKind::access;
                m.comparator = static_cast<std::uint32_t>(one_in.below(4));
                m.direction = one_in(2) ? Message::Direction::write : Message::Direction::read;
                break;
            case 2:
                if (samples) {
                    m.kind = MessageKind::sample;
                    m.pc = 0x8000 + 2 * one_in.below(100);
                    break;
                }
                [[fallthrough]];
            default: m.port = static_cast<std::uint32_t>(one_in(4) ? one_in.below(256) : one_in.below(32)); break;
        }
        count(out.truth, m);
        ++out.messages;
        model.tell(cycle += one_in.below(100), m);
        if (left == 2) cycle += 100'000;  // the FIFO has time to drain, so the trace shows what it lost before
        out.between.push_back(model.bytes().size());
    }
    for (const Message& m : model.truth()) out.overflows += m.kind == MessageKind::overflow ? 1 : 0;
    out.bytes = model.bytes();
    out.type = "ITM";
    out.registers = itm::configuration(config.config)->registers();
    for (unsigned byte = 1; byte < 256 && out.ending.empty(); ++byte)
        if (itm::is_reserved(static_cast<std::uint8_t>(byte))) out.ending = static_cast<char>(byte);
    static_cast<void>(random);
    return out;
}

/// `many`: to more channels than the table of a capture holds.
template <class Named>
Sent send_stm(wire::Random& random, const Named& named, const OneIn<wire::Random>& one_in, bool many) {
    Sent out;
    stm::Model model(one_in(2) ? 3 : 4);
    const bool overflows = named(one_in(3), "FIFO");
    named(many, "many channels");
    std::uint64_t time = random() >> 8;
    const std::size_t all = many ? 66'000 : 50 + one_in.below(300);
    for (std::size_t i = 0; i < all; ++i) {
        if (i % 50 == 0) model.sync();
        Message m = random_text(one_in);
        m.master = static_cast<std::uint32_t>(many ? i >> 8 : one_in.below(4));
        m.channel = static_cast<std::uint32_t>(many ? i & 0xff : one_in.below(300));
        if (one_in(2)) m.timestamp = time += random() >> (20 + one_in.below(44));
        m.marked = one_in(2);
        if (one_in(8)) {
            m.kind = MessageKind::flag;
            m.value.reset();
            m.value_bytes = 0;
            m.marked = true;
        }
        count(out.truth, m);
        ++out.messages;
        if (overflows && one_in(40)) {
            m = {};
            m.kind = MessageKind::overflow;
            m.master = static_cast<std::uint32_t>(one_in.below(4));
            m.value = 1 + one_in.below(20);
            m.value_bytes = 1;
            ++out.overflows;
        }
        model.add(m);
        // Null packets fill the last byte.
        const std::size_t bytes = model.bytes().size();
        model.add_packet(stm::Null{});
        if (model.bytes().size() != bytes) model.add_packet(stm::Null{});
        out.between.push_back(model.bytes().size());
    }
    out.bytes = model.bytes();
    out.type = "STM";
    out.registers = stm::configuration({})->registers();
    out.ending = "\x0f\x02";
    return out;
}

constexpr std::uint64_t most_messages = 1000;  ///< of a run whose channels a capture's table can hold

template <class Send>
Sent sent_by(std::uint64_t seed, const Send& send) {
    wire::Random random(seed);
    const OneIn one_in(random);
    std::string text;
    const auto named = [&](bool is, const char* what) {
        if (is) text += fmt::format(" {}", what);
        return is;
    };
    Sent out = send(random, named, one_in);
    const auto anywhere = [&] { return one_in.below(static_cast<unsigned>(out.between.size())); };
    if (out.messages > most_messages) {  // of which nothing else is lost
        out.text = out.type + text;
        return out;
    }
    const bool damaged = named(one_in(6), "damage");
    if (damaged) {
        const std::size_t first = anywhere(), last = std::min(out.between.size() - 1, first + 1 + one_in.below(5));
        for (std::size_t at = out.between[first]; at < out.between[last]; ++at)
            out.bytes[at] = static_cast<std::uint8_t>(out.ending[(at - out.between[first]) % out.ending.size()]);
    }
    if (named(one_in(6), "head")) out.head = out.between[anywhere()];
    if (named(one_in(6), "tail")) out.tail = 1 + one_in.below(40);
    out.begins_late = named(one_in(10), "late");
    out.ends_early = named(one_in(10), "limit");
    if (out.head != 0) out.must.insert(AccountReason::overwritten);
    if (out.begins_late) out.must.insert(AccountReason::before_start);
    if (out.ends_early) out.must.insert(AccountReason::after_end);
    if (out.tail != 0) out.must.insert(AccountReason::cut);
    if (out.begins_late || out.ends_early) ++out.messages;  // of software, before or after
    if (named(one_in(3), "frames")) {
        out.framed = true;
        std::vector<std::uint8_t> second(out.bytes.size() + 400);
        for (std::uint8_t& byte : second) byte = static_cast<std::uint8_t>(random());
        // One byte of a packet of more. Zeros at the end are padding of the frames; a packet of an STM whose first four
        // bits are 0 or 15 may be whole, and an ITM's whose last four bits are 8 is.
        const std::size_t end = out.between[one_in.below(static_cast<unsigned>(out.between.size() - 1))];
        const bool within =
            end < out.bytes.size() && out.bytes[end] % 16 != 0 && out.bytes[end] % 16 != 8 && out.bytes[end] % 16 != 15;
        const bool silent = !damaged && within && named(one_in(5), "silence");
        if (silent) out.bytes.resize(end + 1);
        out.neighbour = {.name = "source1",
                         .type = "HTM",
                         .registers = {{"ETMTRACEIDR", account_test::second_id, std::nullopt, 32}}};
        account_test::Frames frames = account_test::in_frames(out.bytes, second, named, one_in, silent);
        const bool whole = out.head == 0 && out.tail == 0;
        if (whole && frames.strays) out.must.insert(AccountReason::strays);
        if (whole && frames.damaged) out.must.insert(AccountReason::frames);
        if (whole && silent && !frames.strays && !frames.damaged) out.must.insert(AccountReason::silence);
        out.bytes = std::move(frames.bytes);
        out.head -= out.head % coresight::frame_bytes;
        if (out.head == 0) out.must.erase(AccountReason::overwritten);
        out.misread = out.type == "ITM" && (frames.strays || frames.damaged);
    }
    out.misread |= out.type == "ITM" && out.head != 0;
    out.text = out.type + text;
    for (RegisterValue& each : out.registers)
        if (each.name == "ITMTCR" || each.name == "STMTCSR") each.value |= std::uint64_t{account_test::first_id} << 16;
    return out;
}
Sent itm_by(std::uint64_t seed) {
    return sent_by(seed, [](auto&&... all) { return send_itm(all...); });
}
Sent stm_by(std::uint64_t seed) {
    constexpr std::uint64_t many_one_in = 1000, turn = 500;
    return sent_by(seed, [&](auto&&... all) { return send_stm(all..., seed % many_one_in == turn); });
}

std::uint64_t records_in(const Account& account) {
    for (const answers::AccountRow& row : account)
        if (row.reason == AccountReason::decoded) return row.records.value_or(0);
    return 0;
}

/// The word for other figures than samples, which are estimates in any capture.
std::string_view word_of(Account account) {
    std::erase_if(account, [](const answers::AccountRow& row) { return row.reason == AccountReason::sampled; });
    return answers::completeness(account).word();
}
bool is_exact(const Account& account) { return word_of(account) == "exact"; }
bool is_estimate(const Account& account) { return word_of(account) == "estimate"; }

/// The first figure that claims more than was observed; empty: there is none.
std::string wrong_in(const Answers& a, const Account& account, const Sent& sent) {
    const bool exact = is_exact(account), estimates = is_estimate(account);
    const std::uint64_t records = records_in(account);
    if (estimates || sent.misread) return {};
    if (exact ? records != sent.messages : records > sent.messages + sent.overflows)
        return fmt::format("{}: {} messages of {}", exact ? "exact" : "part", records, sent.messages);
    const Figures shown = figures_of(a);
    for (const auto& [what, value] : shown) {
        const auto truth = sent.truth.find(what);
        const std::uint64_t was = truth == sent.truth.end() ? 0 : truth->second;
        if (exact ? value != was : value > was)
            return fmt::format("{}: {} is {}, and was {}", exact ? "exact" : "part", what, value, was);
    }
    if (exact)
        for (const auto& [what, value] : sent.truth)
            if (!shown.contains(what) && value != 0)
                return fmt::format("exact: {} is missing, and was {}", what, value);
    return {};
}

/// A reason that the account must have, and lacks; empty: none.
std::string_view missing_in(const Account& account, const Sent& sent) {
    for (const AccountReason reason : sent.must)
        if (!answers::has_reason(account, reason))
            return answers::account_reason_words[static_cast<std::size_t>(reason)];
    return {};
}

class AccountOfMessages : public testing::Test {
protected:
    struct Outcome {
        Answers answers;
        Account by_flow;
    };
    [[nodiscard]] std::filesystem::path capture_folder() const { return folder_.path() / "capture"; }

    /// Empty: nothing was decoded.
    [[nodiscard]] std::optional<Outcome> run(const Sent& sent) const {
        std::vector<std::uint8_t> bytes = sent.bytes;
        const std::size_t written = bytes.size(), head = std::min(written, sent.head);
        bytes.resize(bytes.size() - std::min(bytes.size(), sent.tail));
        bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(std::min(bytes.size(), head)));
        std::filesystem::remove_all(capture_folder());
        const auto trace = folder_.write("capture/trace.bin", bytes);
        capture::RawOptions raw;
        if (sent.framed) raw.format = capture::Buffer::Format::coresight;
        raw.source_type = sent.type;
        raw.registers = sent.registers;
        capture::Capture capture = capture::raw_capture(trace, std::move(raw));
        capture::Buffer& buffer = capture.buffers.front();
        if (sent.neighbour) {
            buffer.sources.push_back(sent.neighbour->name);
            capture.sources.push_back(*sent.neighbour);
        }
        buffer.length = written - head;
        buffer.wrapped = head != 0;
        buffer.overwritten = head;
        if (sent.begins_late) buffer.begins = "when execution reached f (--start-at)";
        if (sent.ends_early) buffer.ends = "after 1,000 instructions (--limit)";
        EXPECT_TRUE(capture::write_snapshot(capture, capture_folder()).has_value());
        auto session = pipeline::make_session(std::move(capture), {});
        EXPECT_TRUE(session.has_value()) << (session ? "" : session.error().message);
        if (!session) return std::nullopt;
        const auto selected = session->select({});
        auto made = pipeline::trace_answers(*session, *selected, {}, {}, {});
        if (!made) return std::nullopt;
        return Outcome{std::move(*made), pipeline::account_of(*session, *selected)};
    }

    /// The first statement of a run that claims more than was observed, in any output; empty: there is none.
    [[nodiscard]] std::string wrong_statement(const Sent& sent, const Outcome& one, std::uint64_t seed) const {
        const Account& account = one.answers.account;
        if (std::string wrong = wrong_in(one.answers, account, sent); !wrong.empty()) return wrong;
        if (const std::string_view reason = missing_in(account, sent); !reason.empty())
            return fmt::format("no '{}' in the account", reason);
        // Decoding alone needs no tables, which could be full.
        Account decoded = account;
        std::erase_if(decoded, [](const answers::AccountRow& row) { return row.reason == AccountReason::not_kept; });
        const std::string said = answers::account_sentence(decoded), by_flow = answers::account_sentence(one.by_flow);
        if (said != by_flow) return fmt::format("{}, and by flow {}", said, by_flow);
        const bool strict = answers::completeness(account).strict;
        if ((pipeline::shortcoming_of({&one.answers}).of != nullptr) != strict) return "--strict fails by one of two";
        constexpr std::uint64_t words_one_in = 10, commands_one_in = 10;
        if (seed % words_one_in == 0)
            if (std::string wrong = account_test::wrong_words_in(one.answers, folder_.path()); !wrong.empty())
                return wrong;
        return seed % commands_one_in == 1 ? wrong_in_commands(sent, account, said) : std::string();
    }

    [[nodiscard]] std::string wrong_in_commands(const Sent& sent, const Account& account,
                                                const std::string& said) const {
        using nlohmann::json;
        const auto listed =
            account_test::run_command({"messages", capture_folder(), "--kind", "all", "--format", "json", "--strict"});
        std::uint64_t messages = 0;
        std::istringstream lines(listed.out);
        for (std::string line; std::getline(lines, line);) {
            const std::string kind = json::parse(line)["kind"].get<std::string>();
            messages += kind == "damage" || kind == "reserved" ? 0 : 1;
        }
        const bool exact = is_exact(account);
        const std::uint64_t most = sent.messages + sent.overflows;
        if (exact ? messages != sent.messages : messages > most && !is_estimate(account) && !sent.misread)
            return fmt::format("messages: {} of {}", messages, sent.messages);
        // An input that cannot be read to its end comes before all else (docs/exit-status.md).
        const int status = answers::has_reason(account, AccountReason::cut) ? 3
                           : answers::completeness(account).strict          ? 1
                                                                            : 0;
        if (listed.status != status)
            return fmt::format("messages: status {} instead of {}: {}", listed.status, status, listed.errors);
        const json info =
            json::parse(account_test::run_command({"info", capture_folder(), "--format", "json", "--sample", "0"}).out,
                        nullptr, false);
        const std::string by_info = info.is_object() ? info["run"].get<std::string>() : std::string();
        return by_info == said ? std::string() : fmt::format("info says '{}', not '{}'", by_info, said);
    }

    void hold(Sent (*send)(std::uint64_t seed), std::initializer_list<AccountReason> decisive);

    TemporaryFolder folder_;
};

/// Reasons with the same cause: a buffer that wrapped begins inside a packet.
std::vector<AccountReason> with_its_twin(AccountReason reason) {
    if (reason == AccountReason::overwritten) return {reason, AccountReason::unsynchronised};
    return {reason};
}

void AccountOfMessages::hold(Sent (*send)(std::uint64_t seed), std::initializer_list<AccountReason> decisive) {
    std::array<std::uint64_t, answers::account_reasons> met{};
    // Runs with a wrong statement if the account lacked the reason.
    std::array<std::vector<std::uint64_t>, answers::account_reasons> needed{};
    std::uint64_t exact = 0;
    std::vector<Answers> several;
    const account_test::Seeds seeds = account_test::seeds_to(sized(1000U, 100U));
    const std::uint64_t all = seeds.last - seeds.first + 1;
    for (std::uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
        const Sent sent = send(seed);
        SCOPED_TRACE(fmt::format("WAYMARK_PROPERTY_SEED={}: {}", seed, sent.text));
        auto one = run(sent);
        if (!one) continue;
        const Account& account = one->answers.account;
        ASSERT_EQ(wrong_statement(sent, *one, seed), "") << answers::account_sentence(account);
        exact += is_exact(account) ? 1 : 0;
        for (const answers::AccountRow& row : account) {
            if (row.reason == AccountReason::decoded) continue;
            const auto reason = static_cast<std::size_t>(row.reason);
            ++met[reason];
            const Account without = account_test::without(account, with_its_twin(row.reason));
            if (!wrong_in(one->answers, without, sent).empty() || !missing_in(without, sent).empty())
                needed[reason].push_back(seed);
        }
        several.push_back(std::move(one->answers));
        if (several.size() < 3) continue;
        std::set<std::string> sentences;
        std::array<std::size_t, 3> order{0, 1, 2};
        const bool all_exact = std::all_of(several.begin(), several.end(), [](const Answers& each) {
            return answers::completeness(each.account).word() == "exact";
        });
        do {
            answers::AnswersSum sum;
            for (const std::size_t i : order) sum.add(several[i]);
            const Answers total = sum.take();
            ASSERT_EQ(answers::completeness(total.account).word() == "exact", all_exact);
            sentences.insert(answers::account_sentence(total.account));
        } while (std::next_permutation(order.begin(), order.end()));
        ASSERT_EQ(sentences.size(), 1U);
        several.clear();
    }
    for (std::size_t i = 0; i < met.size(); ++i)
        if (met[i] != 0)
            std::printf("%-16s in %llu runs, the only reason in %zu of them\n",
                        std::string(answers::account_reason_words[i]).c_str(), static_cast<unsigned long long>(met[i]),
                        needed[i].size());
    std::printf("%llu runs are exact\n", static_cast<unsigned long long>(exact));
    if (all < 100) return;
    EXPECT_GT(exact, all / 50);
    if (all < 1000) return;
    // This test detects a producer that forgets one of these.
    for (const AccountReason reason : decisive) {
        const std::string_view word = answers::account_reason_words[static_cast<std::size_t>(reason)];
        const auto& of_reason = needed[static_cast<std::size_t>(reason)];
        ASSERT_FALSE(of_reason.empty()) << word;
        const account_test::WithoutReasons without(with_its_twin(reason));
        const Sent sent = send(of_reason.front());
        const auto one = run(sent);
        ASSERT_TRUE(one.has_value());
        const std::string wrong = wrong_statement(sent, *one, of_reason.front());
        EXPECT_NE(wrong, "") << word << " is missing in the account, and nothing is wrong: seed " << of_reason.front();
        std::printf("without %s: %s\n", std::string(word).c_str(), wrong.c_str());
    }
}

TEST_F(AccountOfMessages, OfItmsSaysNothingBeyondWhatWasObserved) {
    hold(itm_by, {AccountReason::before_start, AccountReason::after_end, AccountReason::overflow,
                  AccountReason::packets, AccountReason::overwritten, AccountReason::cut, AccountReason::frames,
                  AccountReason::strays, AccountReason::silence});
}

TEST_F(AccountOfMessages, OfStmsSaysNothingBeyondWhatWasObserved) {
    hold(stm_by, {AccountReason::before_start, AccountReason::after_end, AccountReason::overflow,
                  AccountReason::packets, AccountReason::overwritten, AccountReason::cut, AccountReason::frames,
                  AccountReason::strays, AccountReason::silence, AccountReason::not_kept});
}

}  // namespace
}  // namespace waymark
