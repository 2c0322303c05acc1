#include "differential/account_outputs.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "differential/commands_in_process.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/file.h"
#include "waymark/answers/sampled.h"
#include "waymark/core/byte_sink.h"
#include "waymark/core/numbers.h"
#include "waymark/exports/database.h"
#include "waymark/exports/sqlite.h"
#include "waymark/exports/tables.h"
#include "waymark/exports/write.h"
#include "waymark/report/report.h"

// Every producer adds its rows with this function, and the linker replaces it by the second one (--wrap).
extern "C" {
void __real__ZN7waymark7answers3addERSt6vectorINS0_10AccountRowESaIS2_EES2_(  // NOLINT
    waymark::answers::Account& to, waymark::answers::AccountRow row);
void __wrap__ZN7waymark7answers3addERSt6vectorINS0_10AccountRowESaIS2_EES2_(  // NOLINT
    waymark::answers::Account& to, waymark::answers::AccountRow row);
}

namespace waymark::account_test {

Seeds seeds_to(std::uint64_t last) {
    if (const char* one = std::getenv("WAYMARK_PROPERTY_SEED")) {
        const std::uint64_t seed = std::strtoull(one, nullptr, 10);
        return {seed, seed};
    }
    if (const char* asked = std::getenv("WAYMARK_PROPERTY_PROGRAMS")) last = std::strtoull(asked, nullptr, 10);
    return {1, last};
}

namespace {

using answers::Account;
using answers::AccountReason;
using answers::Answers;
using nlohmann::json;

std::vector<AccountReason> left_out;

}  // namespace

WithoutReasons::WithoutReasons(std::vector<AccountReason> reasons) { left_out = std::move(reasons); }
WithoutReasons::~WithoutReasons() { left_out.clear(); }

}  // namespace waymark::account_test

void __wrap__ZN7waymark7answers3addERSt6vectorINS0_10AccountRowESaIS2_EES2_(waymark::answers::Account& to,
                                                                            waymark::answers::AccountRow row) {
    const auto& left_out = waymark::account_test::left_out;
    if (std::find(left_out.begin(), left_out.end(), row.reason) == left_out.end())
        __real__ZN7waymark7answers3addERSt6vectorINS0_10AccountRowESaIS2_EES2_(to, std::move(row));
}

namespace waymark::account_test {

namespace {

std::string text_of(const std::vector<std::uint8_t>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A number as JSON, CSV or SQLite have it; addresses are hexadecimal, and SQLite's numbers have a sign.
std::uint64_t number_of(const std::string& text) {
    if (text.starts_with("0x")) return std::strtoull(text.c_str() + 2, nullptr, 16);
    if (text.starts_with("-")) return static_cast<std::uint64_t>(std::strtoll(text.c_str(), nullptr, 10));
    return std::strtoull(text.c_str(), nullptr, 10);
}
std::string field_of(const json& value) {
    return value.is_null() ? std::string() : value.is_string() ? value.get<std::string>() : value.dump();
}

/// A table as one of the formats has it: rows of fields by column.
using Rows = std::vector<std::map<std::string, std::string>>;

Rows rows_of_jsonl(const std::string& text) {
    Rows out;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        auto& row = out.emplace_back();
        const json object = json::parse(line);
        for (const auto& [name, value] : object.items()) row[name] = field_of(value);
    }
    return out;
}

std::vector<std::string> fields_of(const std::string& line, char separator, bool quotes) {
    std::vector<std::string> out(1);
    bool quoted = false;
    for (const char c : line)
        if (quotes && c == '"')
            quoted = !quoted;
        else if (c == separator && !quoted)
            out.emplace_back();
        else
            out.back() += c;
    return out;
}
Rows rows_of_lines(const std::string& text, char separator, bool quotes) {
    Rows out;
    std::istringstream lines(text);
    std::vector<std::string> names;
    for (std::string line; std::getline(lines, line);) {
        if (line.ends_with('\r')) line.pop_back();
        std::vector<std::string> fields = fields_of(line, separator, quotes);
        if (names.empty()) {
            names = std::move(fields);
            continue;
        }
        auto& row = out.emplace_back();
        for (std::size_t i = 0; i < std::min(names.size(), fields.size()); ++i) row[names[i]] = fields[i];
    }
    return out;
}

Rows rows_of_database(const exports::Database& database, const std::string& table) {
    Rows out;
    auto rows = database.select("select * from " + table);
    if (!rows) return out;
    for (auto more = rows->next(); more && *more; more = rows->next()) {
        auto& row = out.emplace_back();
        for (std::size_t c = 0; c < rows->columns(); ++c)
            row[std::string(rows->name(c))] = rows->is_null(c) ? std::string() : rows->text(c);
    }
    return out;
}

/// A table of answers by its name, as one format has it.
using Tables = std::function<Rows(const char* table)>;

Tables exported(const Answers& answers, bool csv) {
    return [&answers, csv](const char* table) {
        ByteCollector sink;
        const exports::TableInfo& info = *exports::find_table(table);
        static_cast<void>(csv ? exports::write_csv(answers, info, sink) : exports::write_jsonl(answers, info, sink));
        const std::string text = text_of(sink.take());
        return csv ? rows_of_lines(text, ',', true) : rows_of_jsonl(text);
    };
}

std::string unpacked(std::string_view base64) {
    static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::vector<Bytef> packed;
    std::uint32_t bits = 0;
    unsigned have = 0;
    for (const char c : base64) {
        if (c == '=') break;
        bits = bits << 6 | static_cast<std::uint32_t>(digits.find(c));
        have += 6;
        if (have >= 8) packed.push_back(static_cast<Bytef>(bits >> (have -= 8)));
    }
    z_stream stream{};
    WM_CHECK(inflateInit2(&stream, -15) == Z_OK);
    stream.next_in = packed.data();
    stream.avail_in = static_cast<uInt>(packed.size());
    std::string out;
    std::array<char, 1 << 16> piece{};
    for (int status = Z_OK; status == Z_OK;) {
        stream.next_out = reinterpret_cast<Bytef*>(piece.data());
        stream.avail_out = static_cast<uInt>(piece.size());
        status = inflate(&stream, Z_NO_FLUSH);
        out.append(piece.data(), piece.size() - stream.avail_out);
    }
    inflateEnd(&stream);
    return out;
}

/// The data of a page, by the name of the part.
std::map<std::string, json> page_of(const Answers& answers) {
    report::ReportOptions options;
    options.page = "<title>Waymark report</title>\n<script type=\"text/plain\" id=\"waymark-data\"></script>\n";
    ByteCollector sink;
    const auto written = report::write_report(answers, options, sink);
    WM_CHECK(written.has_value());
    const std::string page = text_of(sink.take());
    std::map<std::string, json> out;
    constexpr std::string_view begin = "id=\"waymark-";
    for (std::size_t at = 0; (at = page.find(begin, at)) != page.npos;) {
        at += begin.size();
        const std::size_t quote = page.find('"', at), end = page.find('<', quote);
        out[page.substr(at, quote - at)] =
            json::parse(unpacked(std::string_view(page).substr(quote + 2, end - quote - 2)));
    }
    return out;
}

/// A column of addresses of the page: differences, or addresses that are too large for one.
std::vector<std::uint64_t> addresses_of(const json& column) {
    std::vector<std::uint64_t> out;
    std::uint64_t last = 0;
    for (const json& value : column) {
        last = value.is_string() ? std::strtoull(value.get<std::string>().c_str(), nullptr, 16)
                                 : last + static_cast<std::uint64_t>(value.get<std::int64_t>());
        out.push_back(last);
    }
    return out;
}

constexpr std::array<std::string_view, answers::account_states> state_words{"observed", "not traced", "lost",
                                                                            "not decoded", "uncertain"};
constexpr std::array<std::string_view, 3> seen_words{"executed", "not executed", "not observed"};

/// Judges the statements of one output, and keeps the first that claims too much.
class Judge {
public:
    /// `word`: the output's own word for its counts; without a word, a count may not be above the truth. `nested`:
    /// whether "not executed" can be said of code that may be reached from where flow was lost.
    Judge(std::string form, std::string_view word, const RunCounts& ran, bool judges_unseen)
        : form_(std::move(form)), word_(word), ran_(ran), judges_unseen_(judges_unseen) {}

    void count(const std::string& of, std::uint64_t shown, std::uint64_t ran) {
        if (word_ == "exact" ? shown == ran : shown <= ran || word_ == "estimate") return;
        say(fmt::format("{} is {}, and was {}", of, shown, ran));
    }
    void instruction(std::uint64_t address, std::string_view seen, std::uint64_t times) {
        const std::uint64_t ran = ran_.of(address);
        count(fmt::format("{:#x}", address), times, ran);
        if (seen == "executed" && ran == 0 && word_ != "estimate")
            say(fmt::format("{:#x} did not run and is executed", address));
        if (seen == "not executed" && ran != 0 && judges_unseen_)
            say(fmt::format("{:#x} ran and is not executed", address));
        sum_ += times;
    }
    void branch(std::uint64_t address, std::uint64_t taken, std::uint64_t not_taken, std::string_view seen_taken,
                std::string_view seen_not_taken) {
        const auto ran = ran_.directions_of(address);
        count(fmt::format("{:#x} taken", address), taken, ran[0]);
        count(fmt::format("{:#x} not taken", address), not_taken, ran[1]);
        if (!judges_unseen_) return;
        if (seen_taken == "not executed" && taken == 0 && ran[0] != 0)
            say(fmt::format("{:#x} was taken and that is not executed", address));
        if (seen_not_taken == "not executed" && not_taken == 0 && ran[1] != 0)
            say(fmt::format("{:#x} was not taken and that is not executed", address));
    }
    /// All instructions were listed: the sum is the whole run.
    void all() { count("the sum of instructions", sum_, ran_.instructions); }
    /// Whether counts may be of other code than what ran.
    [[nodiscard]] bool is_estimate() const { return word_ == "estimate"; }
    void say(const std::string& what) {
        if (wrong_.empty()) wrong_ = fmt::format("{} ({}): {}", form_, word_.empty() ? "no word" : word_, what);
    }
    [[nodiscard]] const std::string& wrong() const { return wrong_; }

private:
    std::string form_;
    std::string word_;
    const RunCounts& ran_;
    bool judges_unseen_;
    std::uint64_t sum_ = 0;
    std::string wrong_;
};

/// Instructions that ran in a function, by its address and length.
std::uint64_t ran_in(const RunCounts& ran, std::uint64_t address, std::uint64_t bytes) {
    std::uint64_t out = 0;
    for (auto at = ran.times.lower_bound(address); at != ran.times.end() && at->first - address < bytes; ++at)
        out += at->second;
    return out;
}

bool judges_unseen(const Answers& answers) {
    return answers::completeness(answers.account).hides != answers::Hides::reachable;
}

std::string wrong_in_page(const Answers& answers, const KnownRun& run) {
    const std::map<std::string, json> page = page_of(answers);
    const json& head = page.at("head");
    if (head["metrics"].empty()) return {};
    const bool unseen = judges_unseen(answers);
    Judge judge("page", head["metrics"][0]["figures"].get<std::string>(), run.counts, unseen);
    // A block belongs to the function that it begins in, and blocks of random code go on into the next: their sum
    // holds.
    std::uint64_t sum = 0;
    for (const json& self : head["functions"]["self"][0]) sum += self.get<std::uint64_t>();
    judge.count("the sum of functions", sum, run.counts.instructions);
    const json& code = page.at("code")["instructions"];
    const auto at = addresses_of(code["address"]);
    for (std::size_t i = 0; i < at.size(); ++i)
        judge.instruction(at[i], seen_words.at(code["seen"][i].get<std::size_t>()),
                          code["times"][i].get<std::uint64_t>());
    judge.all();
    const json& branches = page.at("branches")["branches"];
    const auto from = addresses_of(branches["address"]);
    constexpr int conditional = 0;
    for (std::size_t i = 0; i < from.size(); ++i)
        if (branches["kind"][i] == conditional)
            judge.branch(from[i], branches["taken"][i].get<std::uint64_t>(),
                         branches["notTaken"][i].get<std::uint64_t>(),
                         seen_words.at(branches["seenTaken"][i].get<std::size_t>()),
                         seen_words.at(branches["seenNotTaken"][i].get<std::size_t>()));
    const json& coverage = page.at("coverage");
    if (!coverage.empty()) {
        std::uint64_t listed_and_ran = 0, listed = 0;
        for (const answers::Instruction& i : answers.instructions) {
            ++listed;
            listed_and_ran += run.counts.of(i.address) != 0 ? 1 : 0;
        }
        const json& classes = coverage["files"]["instructions"];
        judge.count("covered instructions", classes[0].back().get<std::uint64_t>(), listed_and_ran);
        if (unseen && classes[1].back().get<std::uint64_t>() > listed - listed_and_ran)
            judge.say(
                fmt::format("{} instructions did not run, of {}", classes[1].back().dump(), listed - listed_and_ran));
    }
    return judge.wrong();
}

std::string wrong_in_tables(const Answers& answers, const KnownRun& run, const std::string& form, const Tables& table) {
    const Rows metrics = table("metrics");
    if (metrics.empty()) return {};
    Judge judge(form, metrics.front().at("figures"), run.counts, judges_unseen(answers));
    std::uint64_t sum = 0;
    for (const auto& row : table("functions")) sum += number_of(row.at("self"));
    judge.count("the sum of functions", sum, run.counts.instructions);
    for (const auto& row : table("instructions"))
        judge.instruction(number_of(row.at("address")), row.at("seen"), number_of(row.at("times")));
    judge.all();
    for (const auto& row : table("branches"))
        if (row.at("kind") == "conditional")
            judge.branch(number_of(row.at("address")), number_of(row.at("taken")), number_of(row.at("not_taken")),
                         row.at("seen_taken"), row.at("seen_not_taken"));
    // Where code is also entered in its middle, blocks overlap, and an execution is one of only one of them.
    for (const auto& row : table("blocks"))
        if (number_of(row.at("times")) > run.counts.of(number_of(row.at("address"))) && !judge.is_estimate())
            judge.say("block " + row.at("address") + " ran " + row.at("times") + " times");
    return judge.wrong();
}

std::string written(const Answers& answers, std::string_view format) {
    ByteCollector sink;
    const auto report = exports::write(*exports::find_format(format), answers, {}, sink);
    return report ? text_of(sink.take()) : std::string();
}

/// Own costs by instruction, and their sum; the word is in the description of the event.
std::string wrong_in_callgrind(const Answers& answers, const KnownRun& run) {
    std::istringstream lines(written(answers, "callgrind"));
    std::string word = "exact", wrong;
    std::map<std::uint64_t, std::uint64_t> costs;
    std::uint64_t total = 0;
    bool passed = false;  // this line contains the costs of a call
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("event: Ir"))
            for (const std::string_view each : {"lower bound", "estimate"})
                if (line.find(each) != line.npos) word = each;
        if (line.starts_with("totals:")) total = number_of(line.substr(line.find(' ') + 1));
        if (line.starts_with("0x") && !std::exchange(passed, false)) {
            std::istringstream fields(line);
            std::string address, source_line, cost;
            fields >> address >> source_line >> cost;
            costs[number_of(address)] += number_of(cost);
        }
        passed = line.starts_with("calls=");
    }
    Judge judge("callgrind", word, run.counts, true);
    for (const auto& [address, cost] : costs) judge.count(fmt::format("{:#x}", address), cost, run.counts.of(address));
    judge.count("totals", total, run.counts.instructions);
    return judge.wrong();
}

/// Formats with one number a line and no word: their counts are not above the truth.
std::string wrong_in_profiles(const Answers& answers, const KnownRun& run) {
    const std::string_view word = answers::completeness(answers.account).estimates ? "estimate" : "";
    Judge folded("folded", word, run.counts, true);
    std::istringstream stacks(written(answers, "folded"));
    std::uint64_t sum = 0;
    for (std::string line; std::getline(stacks, line);) sum += number_of(line.substr(line.rfind(' ') + 1));
    folded.count("the sum", sum, run.counts.instructions);
    Judge bolt("bolt", word, run.counts, true);
    std::istringstream ranges(written(answers, "bolt"));
    // A branch instruction that was not taken is a range of its own, besides the one that it ends.
    std::map<std::uint64_t, std::uint64_t> begun;
    for (std::string line; std::getline(ranges, line);) {
        std::istringstream fields(line);
        std::string kind, first, last, times;
        fields >> kind >> first >> last >> times;
        if (kind != "F") continue;
        bolt.count("range at " + first, number_of(times), run.counts.of(number_of("0x" + first)));
    }
    return folded.wrong().empty() ? bolt.wrong() : folded.wrong();
}

/// Lines that the comments of lcov and Cobertura name.
std::set<std::uint64_t> lines_in(std::string_view list) {
    std::set<std::uint64_t> out;
    std::istringstream words{std::string(list)};
    for (std::string word; std::getline(words, word, ',');) {
        const std::size_t dash = word.find('-', 1);
        const std::uint64_t first = std::strtoull(word.c_str(), nullptr, 10);
        const std::uint64_t last = dash == word.npos ? first : std::strtoull(word.c_str() + dash + 1, nullptr, 10);
        for (std::uint64_t line = first; line != 0 && line <= last; ++line) out.insert(line);
    }
    return out;
}

/// Each instruction is a line: counts are executions, and an unnamed line with count 0 did not run.
std::string wrong_in_lines(const Answers& answers, const KnownRun& run, bool cobertura) {
    const bool whole = !answers::is_part_of_run(answers.account), unseen = judges_unseen(answers);
    const std::string_view trust = answers::completeness(answers.account).estimates ? "estimate"
                                   : whole                                          ? "exact"
                                                                                    : "lower bound";
    Judge judge(cobertura ? "cobertura" : "lcov", trust, run.counts, unseen);
    std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> ran;  // by line: address, executions
    for (const answers::Instruction& i : answers.instructions)
        ran[run.line_of(i.address)] = {i.address, run.counts.of(i.address)};
    std::set<std::uint64_t> not_observed;
    std::set<std::string> unseen_directions;
    const auto line_count = [&](std::uint64_t line, std::uint64_t hits) {
        const auto found = ran.find(line);
        if (found == ran.end()) return judge.say(fmt::format("line {} has no code", line));
        judge.count(fmt::format("line {}", line), hits, found->second.second);
        if (unseen && hits == 0 && found->second.second != 0 && !not_observed.contains(line))
            judge.say(fmt::format("line {} ran, has a count of 0, and is not called not observed", line));
    };
    std::istringstream lines(written(answers, cobertura ? "cobertura" : "lcov"));
    for (std::string line; std::getline(lines, line);) {
        constexpr std::string_view lcov_comment = "# not observed: ", comment = "<!-- not observed: ",
                                   directions = "# branches not observed:";
        if (line.starts_with(lcov_comment)) not_observed = lines_in(line.substr(lcov_comment.size()));
        if (const auto at = line.find(comment); at != line.npos)
            not_observed = lines_in(line.substr(at + comment.size(), line.find(" -->") - at - comment.size()));
        if (line.starts_with(directions)) {
            std::istringstream words(line.substr(directions.size()));
            for (std::string word; words >> word;) unseen_directions.insert(word);
        }
        if (line.starts_with("DA:"))
            line_count(std::strtoull(line.c_str() + 3, nullptr, 10), number_of(line.substr(line.find(',') + 1)));
        // Methods have lines of their own, 16 blanks in.
        if (line.starts_with("            <line number=\"")) {
            const std::size_t hits = line.find("hits=\"") + 6;
            line_count(std::strtoull(line.c_str() + line.find('"') + 1, nullptr, 10),
                       std::strtoull(line.c_str() + hits, nullptr, 10));
        }
        if (line.starts_with("BRDA:") && !line.ends_with(",-")) {
            const std::string key = line.substr(5, line.rfind(',') - 5);
            const auto branch = run.counts.directions_of(ran[std::strtoull(key.c_str(), nullptr, 10)].first);
            const std::uint64_t times = number_of(line.substr(line.rfind(',') + 1)),
                                truth = branch[key.ends_with('0') ? 0 : 1];
            judge.count("direction " + key, times, truth);
            if (unseen && times == 0 && truth != 0 && !unseen_directions.contains(key))
                judge.say("direction " + key + " happened, has a count of 0, and is not called not observed");
        }
    }
    return judge.wrong();
}

std::string differs(const std::string& where, const std::string& said, std::string_view expected) {
    return said == expected ? std::string() : fmt::format("{} says '{}', not '{}'", where, said, expected);
}

/// The first that is not empty.
std::string first_of(std::initializer_list<std::function<std::string()>> checks) {
    for (const auto& check : checks)
        if (std::string wrong = check(); !wrong.empty()) return wrong;
    return {};
}

std::string wrong_words_of_tables(const Answers& answers, const std::string& form, const Tables& table) {
    const Rows capture = table("capture"), metrics = table("metrics");
    if (capture.size() != 1) return form + " is not of one capture";
    if (std::string wrong = differs(form, capture.front().at("run"), answers::account_sentence(answers.account));
        !wrong.empty())
        return wrong;
    for (std::size_t i = 0; i < answers.metrics.size(); ++i) {
        const std::string_view word = answers::word_of(answers.account, answers.metrics[i].exact);
        const std::string of = form + ": " + answers.metrics[i].name;
        if (std::string wrong = differs(of, metrics.at(i).at("figures"), word); !wrong.empty()) return wrong;
    }
    return {};
}

/// A command's document, and its rows.
json document_of(const CommandResult& done) {
    const json out = json::parse(done.out, nullptr, false);
    return out.is_discarded() ? json::object() : out;
}

/// An input that cannot be read to its end comes before all else (docs/exit-status.md).
int status_under_strict(const Account& account) {
    const bool cut = std::any_of(account.begin(), account.end(),
                                 [](const answers::AccountRow& row) { return row.reason == AccountReason::cut; });
    return cut ? 3 : answers::completeness(account).strict ? 1 : 0;
}

std::string wrong_status(const std::string& command, const CommandResult& done, int expected) {
    if (done.status == expected) return {};
    return fmt::format("{}: status {} instead of {}: {}", command, done.status, expected, done.errors);
}

}  // namespace

std::string wrong_words_in(const Answers& answers, const std::filesystem::path& folder) {
    const std::string sentence = answers::account_sentence(answers.account);
    return first_of(
        {[&] {
             const json head = page_of(answers).at("head");
             std::string wrong = differs("page", head["run"].get<std::string>(), sentence);
             for (std::size_t i = 0; wrong.empty() && i < answers.metrics.size(); ++i)
                 wrong = differs("page: " + answers.metrics[i].name, head["metrics"][i]["figures"].get<std::string>(),
                                 answers::word_of(answers.account, answers.metrics[i].exact));
             return wrong;
         },
         [&] { return wrong_words_of_tables(answers, "csv", exported(answers, true)); },
         [&] { return wrong_words_of_tables(answers, "jsonl", exported(answers, false)); },
         [&]() -> std::string {
             const auto path = folder / "words.sqlite";
             std::filesystem::remove(path);
             if (!exports::write_sqlite(answers, path)) return "no database was written";
             const auto database = exports::Database::open(path.string());
             if (!database) return database.error().message;
             return wrong_words_of_tables(answers, "sqlite",
                                          [&](const char* table) { return rows_of_database(*database, table); });
         },
         [&]() -> std::string {
             ByteCollector sink;
             answers::write_answers(answers, sink);
             const auto read = answers::read_answers(sink.bytes(), "answers");
             if (!read) return read.error().message;
             return read->account == answers.account ? std::string() : "the answers file has another account";
         }});
}

std::string wrong_figure_in(const Answers& answers, const KnownRun& run, const std::filesystem::path& folder,
                            std::uint64_t turn) {
    return first_of({[&] { return wrong_in_page(answers, run); },
                     [&] {
                         const bool csv = turn % 2 == 0;
                         return wrong_in_tables(answers, run, csv ? "csv" : "jsonl", exported(answers, csv));
                     },
                     [&]() -> std::string {
                         constexpr std::uint64_t one_in = 10;
                         if (turn % one_in != 0) return {};
                         const auto path = folder / "figures.sqlite";
                         std::filesystem::remove(path);
                         if (!exports::write_sqlite(answers, path)) return "no database was written";
                         const auto database = exports::Database::open(path.string());
                         if (!database) return database.error().message;
                         return wrong_in_tables(answers, run, "sqlite",
                                                [&](const char* table) { return rows_of_database(*database, table); });
                     },
                     [&] { return wrong_in_callgrind(answers, run); }, [&] { return wrong_in_profiles(answers, run); },
                     [&] { return run.line_of ? wrong_in_lines(answers, run, false) : std::string(); },
                     [&] { return run.line_of ? wrong_in_lines(answers, run, true) : std::string(); }});
}

std::string wrong_in_commands(const Answers& answers, const KnownRun& run, const std::filesystem::path& folder,
                              std::uint64_t turn) {
    const std::string file = (folder / "run.answers").string();
    {
        ByteCollector sink;
        answers::write_answers(answers, sink);
        std::ofstream(file, std::ios::binary)
            .write(reinterpret_cast<const char*>(sink.bytes().data()),
                   static_cast<std::streamsize>(sink.bytes().size()));
    }
    const std::string sentence = answers::account_sentence(answers.account);
    const int strict = status_under_strict(answers.account);
    const bool unseen = judges_unseen(answers), part = answers::is_part_of_run(answers.account);
    // A command whose results have no place for the sentence says it of captures that are a part of a run.
    const auto without_note = [&](const std::string& command, const CommandResult& done) -> std::string {
        return part && done.errors.find("of the run: " + sentence) == done.errors.npos
                   ? command + " does not say " + sentence
                   : std::string();
    };
    const auto document = [&](const std::string& name, const std::vector<std::string>& command, int status,
                              const std::function<void(const json&, Judge&)>& rows) -> std::string {
        const CommandResult done = run_command(command);
        if (std::string wrong = wrong_status(name, done, status); !wrong.empty()) return wrong;
        const json all = document_of(done);
        if (all.empty()) return name + " has no document";
        if (std::string wrong = differs(name, all["run"].get<std::string>(), sentence); !wrong.empty()) return wrong;
        Judge judge(name, all["metrics"][0]["figures"].get<std::string>(), run.counts, unseen);
        rows(all, judge);
        return judge.wrong();
    };
    const std::array<std::function<std::string()>, 8> commands{
        [&] {
            return document("profile", {"profile", file, "--by", "instruction", "--format", "json", "--strict"}, strict,
                            [&](const json& all, Judge& judge) {
                                for (const json& row : all["rows"])
                                    judge.instruction(number_of(field_of(row["address"])), "executed",
                                                      row["instructions"].get<std::uint64_t>());
                                judge.all();
                            });
        },
        [&] {
            return document("coverage", {"coverage", file, "--by", "function", "--format", "json", "--strict"}, strict,
                            [&](const json& all, Judge& judge) {
                                std::uint64_t executed = 0, not_executed = 0, ran = 0, did_not = 0;
                                for (const json& row : all["rows"]) {
                                    if (row["function"] == "all") continue;
                                    executed += row["instructions executed"].get<std::uint64_t>();
                                    not_executed += row["instructions not executed"].get<std::uint64_t>();
                                }
                                for (const answers::Instruction& i : answers.instructions)
                                    ++(run.counts.of(i.address) != 0 ? ran : did_not);
                                judge.count("executed instructions", executed, ran);
                                if (unseen && not_executed > did_not)
                                    judge.say(fmt::format("{} instructions did not run, of {}", not_executed, did_not));
                            });
        },
        [&]() -> std::string {
            const CommandResult done = run_command({"coverage", file, "--uncovered", "--format", "tsv"});
            if (std::string wrong = without_note("coverage", done); !wrong.empty()) return wrong;
            Judge judge("coverage --uncovered", "lower bound", run.counts, unseen);
            for (const auto& row : rows_of_lines(done.out, '\t', false)) {
                if (row.at("class") != "not executed" || row.at("what") != "code" || !unseen) continue;
                const std::uint64_t begin = number_of(row.at("begin")), end = number_of(row.at("end"));
                if (const std::uint64_t ran = ran_in(run.counts, begin, end - begin); ran != 0)
                    judge.say(
                        fmt::format("{:#x} to {:#x} did not run, and {} instructions ran there", begin, end, ran));
            }
            return judge.wrong();
        },
        [&]() -> std::string {
            // Code that was not observed counts as not run, so a limit for all code is met only by what ran.
            const CommandResult done = run_command({"coverage", file, "--fail-under", "100", "--format", "tsv"});
            const bool all_ran = std::all_of(answers.instructions.begin(), answers.instructions.end(),
                                             [&](const auto& i) { return run.counts.of(i.address) != 0; });
            const bool uncertain = answers::completeness(answers.account).estimates;
            return done.status == 0 && !all_ran && !uncertain ? "coverage --fail-under 100 passes, and not all ran"
                                                              : std::string();
        },
        [&]() -> std::string {
            if (answers.branches.empty()) return {};
            const CommandResult done = run_command({"branches", file, "--format", "json", "--strict"});
            const json all = document_of(done);
            if (all.empty()) return done.status != 0 ? std::string() : wrong_status("branches", done, 1);
            if (std::string wrong = wrong_status("branches", done, strict); !wrong.empty()) return wrong;
            Judge judge("branches", all["metrics"][0]["figures"].get<std::string>(), run.counts, unseen);
            for (const json& row : all["rows"])
                if (row["kind"] == "conditional")
                    judge.branch(number_of(field_of(row["address"])), row["taken"].get<std::uint64_t>(),
                                 row["not_taken"].get<std::uint64_t>(), "", "");
            return judge.wrong();
        },
        [&]() -> std::string {
            // A gate must not pass where a side lacks a part that --strict requires.
            const CommandResult done =
                run_command({"diff", file, file, "--threshold", "1", "--strict", "--format", "json"});
            if (std::string wrong = wrong_status("diff", done, strict); !wrong.empty()) return wrong;
            const json all = document_of(done);
            const bool exact = answers::word_of(answers.account, answers.metrics.front().exact) == "exact";
            return all["exact"].get<bool>() == exact ? std::string() : "diff has another word";
        },
        [&]() -> std::string {
            const CommandResult done =
                run_command({"pgo", file, "--for", "branch-list", "-o", (folder / "run.bl").string()});
            if (done.status != 0) return {};
            if (std::string wrong = without_note("pgo", done); !wrong.empty()) return wrong;
            constexpr std::string_view covers = "the profile covers ";
            const std::size_t at = done.errors.find(covers);
            if (at == done.errors.npos) return "pgo does not say what the profile covers";
            const std::string said = done.errors.substr(at + covers.size());
            std::uint64_t in_files = 0;
            for (const answers::ImageRange& r : answers.ranges) in_files += r.times * r.instructions;
            const double truth = 100.0 * static_cast<double>(in_files) / static_cast<double>(run.counts.instructions);
            const bool open = said.starts_with("at most "), about = said.find("about ") < said.find('%');
            const double share = std::strtod(said.c_str() + said.find_first_of("0123456789"), nullptr);
            constexpr double rounding = 0.051;
            const bool of_run = said.find("of the run") < said.find(';');
            if (!of_run)
                return said.find("of everything that was decoded") < said.find(';') ? "" : "pgo covers " + said;
            // A figure that is computed from the mean length of ranges is no bound.
            if (!about && (open ? share + rounding < truth : share > truth + rounding))
                return fmt::format("pgo covers {}, and it is {:.1f}%", said.substr(0, said.find(';')), truth);
            return {};
        },
        [&]() -> std::string {
            const CommandResult done = run_command({"loops", file, "--format", "json", "--strict"});
            if (document_of(done).empty()) return done.status != 0 ? std::string() : wrong_status("loops", done, 1);
            return wrong_status("loops", done, strict);
        }};
    return commands[turn % commands.size()]();
}

std::string wrong_in_capture(const Account& account, const KnownRun& run, const std::filesystem::path& capture,
                             const std::filesystem::path& image, std::uint64_t turn) {
    const answers::Completeness completeness = answers::completeness(account);
    const std::string sentence = answers::account_sentence(account);
    const int strict = status_under_strict(account);
    const auto command = [&](std::vector<std::string> words) {
        words.insert(words.begin() + 1, {capture.string(), "--image", image.string()});
        return run_command(words);
    };
    const auto document = [&](const std::string& name, const std::vector<std::string>& words,
                              const std::function<void(const json&, Judge&)>& rows) -> std::string {
        const CommandResult done = command(words);
        const json all = document_of(done);
        if (all.empty()) return done.status != 0 ? std::string() : wrong_status(name, done, 1);
        if (std::string wrong = differs(name, all["run"].get<std::string>(), sentence); !wrong.empty()) return wrong;
        if (std::string wrong = wrong_status(name, done, strict); !wrong.empty()) return wrong;
        Judge judge(name, all["metrics"][0]["figures"].get<std::string>(), run.counts, true);
        rows(all, judge);
        return judge.wrong();
    };
    const std::array<std::function<std::string()>, 5> commands{
        [&]() -> std::string {
            const CommandResult done = command({"flow", "--format", "summary", "--strict"});
            std::istringstream lines(done.out);
            std::string said;
            bool here = false;
            for (std::string line; std::getline(lines, line);) {
                const std::size_t text = line.find_first_not_of(' ');
                if (text == line.npos) continue;
                const bool begins = line.substr(text).starts_with("run ");
                const std::string clause =
                    begins ? line.substr(line.find_first_not_of(' ', text + 3)) : line.substr(text);
                const bool is_clause = std::any_of(std::begin(state_words), std::end(state_words),
                                                   [&](std::string_view state) { return clause.starts_with(state); });
                here = begins || (here && is_clause);
                if (here) said += (said.empty() ? "" : "; ") + clause;
            }
            if (std::string wrong = differs("flow", said, sentence); !wrong.empty()) return wrong;
            return wrong_status("flow", done, strict);
        },
        [&] {
            const json all = document_of(command({"info", "--format", "json", "--sample", "0"}));
            return all.empty() ? "info gives nothing" : differs("info", all["run"].get<std::string>(), sentence);
        },
        [&] {
            return document("coverage", {"coverage", "--by", "function", "--format", "json", "--strict"},
                            [&](const json& all, Judge& judge) {
                                std::uint64_t executed = 0;
                                for (const json& row : all["rows"])
                                    if (row["function"] != "all")
                                        executed += row["instructions executed"].get<std::uint64_t>();
                                if (executed > run.counts.times.size() && !judge.is_estimate())
                                    judge.say(fmt::format("{} instructions were executed, of {}", executed,
                                                          run.counts.times.size()));
                            });
        },
        [&] {
            return document("profile", {"profile", "--format", "json", "--strict"}, [&](const json& all, Judge& judge) {
                std::uint64_t sum = 0;
                for (const json& row : all["rows"]) sum += row["instructions"].get<std::uint64_t>();
                judge.count("the sum of functions", sum, run.counts.instructions);
            });
        },
        [&]() -> std::string {
            // doctor's sentence is compared over real captures (golden.account): short traces prove no image to it.
            const CommandResult done = command({"doctor", "--format", "json"});
            return completeness.strict && done.out.find("othing is wrong") != done.out.npos
                       ? "doctor says that nothing is wrong of " + sentence
                       : std::string();
        }};
    return commands[turn % commands.size()]();
}

answers::Account without(answers::Account account, const std::vector<answers::AccountReason>& reasons) {
    std::erase_if(account, [&](const answers::AccountRow& row) {
        return std::find(reasons.begin(), reasons.end(), row.reason) != reasons.end();
    });
    return account;
}

}  // namespace waymark::account_test
