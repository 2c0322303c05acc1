#include "waymark/mtb/listing.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string>
#include <utility>

namespace waymark::mtb {

namespace {

using namespace std::string_view_literals;

/// A piece of a line: a word in small letters, a number, or a sign.
struct Token {
    std::string_view text{};
    std::uint32_t value{};
    bool number = false, prefixed = false;  ///< prefixed: 0x stands before it
    [[nodiscard]] bool is_address() const {
        constexpr std::size_t least_digits = 4, all_digits = 8;
        return number && (prefixed || (text.size() >= least_digits && text.size() <= all_digits));
    }
    [[nodiscard]] bool is_bit() const { return number && value <= 1; }
};

bool is_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

Token token_of(std::string_view text) {
    Token out{.text = text};
    std::string_view digits = text;
    out.prefixed = digits.starts_with("0x");
    if (out.prefixed) digits.remove_prefix(2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.value, 16);
    out.number = error == std::errc{} && end == digits.data() + digits.size();
    return out;
}

std::vector<Token> tokens_of(std::string_view line) {
    std::vector<Token> out;
    while (!line.empty()) {
        if (is_part(line.front())) {
            const auto end = std::find_if_not(line.begin(), line.end(), is_part);
            const auto size = static_cast<std::size_t>(end - line.begin());
            out.push_back(token_of(line.substr(0, size)));
            line.remove_prefix(size);
            continue;
        }
        constexpr std::array arrows{"->"sv, "=>"sv, "\xe2\x86\x92"sv};
        const auto arrow = std::find_if(arrows.begin(), arrows.end(), [&](auto a) { return line.starts_with(a); });
        if (arrow != arrows.end()) out.push_back({.text = "->"});
        line.remove_prefix(arrow != arrows.end() ? arrow->size() : 1);
    }
    return out;
}

bool one_of(std::string_view word, const auto& words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// Reads lines, and keeps the packet that they describe until it is complete.
class Reader {
public:
    void line(std::string_view text) {
        std::string small(text);
        std::transform(small.begin(), small.end(), small.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        const std::string_view line = small;
        const auto first = line.find_first_not_of(" \t\r");
        if (first == line.npos) return;
        on_this_line_ = false;
        if (const auto dots = line.substr(first); dots.starts_with("...") || dots.starts_with("\xe2\x80\xa6"))
            return leave_out();
        if (line.find("begin trace") != line.npos) {
            starts_ = true;
            return;
        }
        const std::vector<Token> tokens = tokens_of(line);
        if (take_head(line, tokens) || take_row(line, tokens) || take_columns(line.substr(first), tokens) ||
            take_arrow(tokens))
            return;
        // gdb scripts write `>S:` and ` D:`; the letters alone have no other meaning than these signs. The sign `>` is
        // gone where the text was taken for a quotation.
        auto sign = line.substr(first);
        if (sign.front() == '>') sign.remove_prefix(1);
        const bool source = sign.starts_with("s:"), letters = source || sign.starts_with("d:");
        for (std::size_t i = 0; i < tokens.size(); ++i) i += take(tokens, i, letters);
        // The scripts that write a packet in two lines name exceptions by words.
        marked_ |= source && !on_this_line_;
    }
    std::optional<Listing> finish() && {
        out_.unreadable += source_ ? 1 : 0;
        constexpr std::size_t least = 2;
        if (out_.jumps < least || out_.unreadable * 4 > out_.jumps) return std::nullopt;
        while (!out_.packets.empty() && out_.packets.back() == JumpPacket{}) out_.packets.pop_back();
        for (JumpPacket& p : out_.packets) {
            marked_ |= p.starts() || p.atomic();
            // Code never executes at such an address, so this is the second packet of a return.
            p.source.flag |= p.source.address >= first_return_value;
        }
        out_.marks_known = marked_;
        std::vector<JumpPacket> turned(out_.packets.rbegin(), out_.packets.rend());
        const std::size_t as_written = breaks(out_.packets), from_the_end = breaks(turned);
        out_.newest_first = from_the_end < as_written;
        if (out_.newest_first) out_.packets = std::move(turned);
        if (std::min(as_written, from_the_end) * 4 > out_.jumps || implausible() * 4 > out_.jumps) return std::nullopt;
        return std::move(out_);
    }

private:
    static std::size_t breaks(const std::vector<JumpPacket>& packets) {
        std::size_t n = 0;
        for (std::size_t i = 1; i < packets.size(); ++i)
            n += packets[i - 1] != JumpPacket{} && packets[i] != JumpPacket{} && !can_follow(packets[i - 1], packets[i])
                     ? 1
                     : 0;
        return n;
    }
    /// The number of jumps that begin where an M profile core never executes code, and of starts of tracing after the
    /// first: they are words with another meaning.
    [[nodiscard]] std::size_t implausible() const {
        constexpr std::uint32_t first_device = 0xa0000000;
        std::size_t n = 0, starts = 0;
        for (const JumpPacket& p : out_.packets) {
            n += !p.atomic() && p.source.address >= first_device ? 1U : 0U;
            starts += p.starts() ? 1U : 0U;
        }
        return std::max(n, starts - std::min<std::size_t>(starts, 1));
    }
    void leave_out() {
        if (!out_.packets.empty() && out_.packets.back() != JumpPacket{}) out_.packets.emplace_back();
    }
    static FlaggedAddress address_of(const Token& token) {
        return {.address = token.value & ~std::uint32_t{1}, .flag = (token.value & 1) != 0};
    }
    void begin(FlaggedAddress source) {
        out_.unreadable += source_ ? 1 : 0;
        source_ = source;
        on_this_line_ = false;
    }
    void end(FlaggedAddress destination) {
        if (!source_) {
            ++out_.unreadable;
            return;
        }
        destination.flag |= std::exchange(starts_, false);
        const JumpPacket packet{*std::exchange(source_, std::nullopt), destination};
        if (packet == JumpPacket{}) return;  // memory that the unit has not written
        out_.packets.push_back(packet);
        ++out_.jumps;
        on_this_line_ = true;
    }
    void mark_atomic() {
        if (source_)
            source_->flag = true;
        else if (on_this_line_)
            out_.packets.back().source.flag = true;
    }
    void mark_start() {
        if (on_this_line_)
            out_.packets.back().destination.flag = true;
        else
            starts_ = true;
    }

    /// `A 0x000000f6 - 0x00000070`: a mark or a dash before each address.
    bool take_columns(std::string_view line, const std::vector<Token>& tokens) {
        std::vector<const Token*> addresses;
        bool a = false, s = false;
        for (const Token& token : tokens) {
            if (token.is_address())
                addresses.push_back(&token);
            else if (token.text == "a" && addresses.empty())
                a = true;
            else if (token.text == "s" && addresses.size() == 1)
                s = true;
            else
                return false;
        }
        if (addresses.size() != 2 || (line.front() != '-' && line.front() != 'a')) return false;
        marked_ = true;
        begin(address_of(*addresses[0]));
        source_->flag |= a;
        end(address_of(*addresses[1]));
        if (s) mark_start();
        return true;
    }
    enum class Column : std::uint8_t { other, source, destination, atomic, start };
    static Column column_of(const Token& word) {
        return one_of(word.text, source_words) || word.text == "from"      ? Column::source
               : one_of(word.text, destination_words) || word.text == "to" ? Column::destination
               : one_of(word.text, atomic_words)                           ? Column::atomic
               : one_of(word.text, start_words)                            ? Column::start
                                                                           : Column::other;
    }
    /// The head of a table: names of columns, two of them for the addresses.
    bool take_head(std::string_view line, const std::vector<Token>& words) {
        if (std::any_of(words.begin(), words.end(),
                        [](const Token& t) { return t.number && !one_of(t.text, atomic_words); }))
            return false;
        const auto separator = line.find_first_of(",;\t");
        const char before = std::exchange(separator_, separator == line.npos ? '\0' : line[separator]);
        std::vector<Column> found;
        if (separator_ != '\0')
            for (const std::vector<Token>& field : fields_of(line)) {
                const auto known = std::find_if(field.begin(), field.end(),
                                                [](const Token& t) { return column_of(t) != Column::other; });
                found.push_back(known == field.end() ? Column::other : column_of(*known));
            }
        else
            for (const Token& word : words)
                if (!one_of(word.text, fillers)) found.push_back(column_of(word));
        for (const Column column : {Column::source, Column::destination})
            if (std::count(found.begin(), found.end(), column) != 1) {
                separator_ = before;
                return false;
            }
        columns_ = std::move(found);
        return true;
    }
    /// The tokens of each field of a row.
    [[nodiscard]] std::vector<std::vector<Token>> fields_of(std::string_view line) const {
        std::vector<std::vector<Token>> out;
        for (auto end = line.find(separator_); end != line.npos; end = line.find(separator_)) {
            out.push_back(tokens_of(line.substr(0, end)));
            line.remove_prefix(end + 1);
        }
        out.push_back(tokens_of(line));
        return out;
    }
    /// A row of the table whose head came before. What follows the last named column is ignored. If a row of a table
    /// with separators lacks an address, the packet is left out.
    bool take_row(std::string_view line, const std::vector<Token>& words) {
        if (columns_.empty()) return false;
        const bool separated = separator_ != '\0' && line.find(separator_) != line.npos;
        if (!separated) return words.size() >= columns_.size() && take_fields(words);
        std::vector<Token> firsts;
        for (const std::vector<Token>& field : fields_of(line))
            firsts.push_back(field.empty() ? Token{} : field.front());
        if (firsts.size() >= columns_.size() && take_fields(firsts)) return true;
        if (std::none_of(words.begin(), words.end(), [](const Token& t) { return t.is_address(); })) return false;
        ++out_.unreadable;
        leave_out();
        return true;
    }
    /// The packet of a row with a token for each column.
    bool take_fields(const std::vector<Token>& tokens) {
        const auto at = [&](Column column) {
            const auto found = std::find(columns_.begin(), columns_.end(), column);
            return found == columns_.end() ? nullptr : &tokens[static_cast<std::size_t>(found - columns_.begin())];
        };
        const Token &source = *at(Column::source), &destination = *at(Column::destination);
        if (!source.is_address() || !destination.is_address()) return false;
        for (const Column column : {Column::atomic, Column::start})
            if (at(column) != nullptr && !at(column)->is_bit()) return false;
        begin(address_of(source));
        end(address_of(destination));
        if (const Token* const a = at(Column::atomic); a != nullptr) {
            marked_ = true;
            if (a->value != 0) mark_atomic();
        }
        if (const Token* const s = at(Column::start); s != nullptr) {
            marked_ = true;
            if (s->value != 0) mark_start();
        }
        return true;
    }
    /// `0x146 -> 0xd8`, with words before and after.
    bool take_arrow(const std::vector<Token>& tokens) {
        for (std::size_t i = 1; i + 1 < tokens.size(); ++i) {
            if ((tokens[i].text != "->" && tokens[i].text != "to") || !tokens[i - 1].is_address() ||
                !tokens[i + 1].is_address())
                continue;
            begin(address_of(tokens[i - 1]));
            end(address_of(tokens[i + 1]));
            for (std::size_t k = i + 2; k < tokens.size(); ++k) k += take(tokens, k, false);
            return true;
        }
        return false;
    }
    /// Interprets the word at `i`. Returns the number of further tokens it took.
    std::size_t take(const std::vector<Token>& tokens, std::size_t i, bool letters) {
        const std::string_view word = tokens[i].text;
        std::size_t at = i + 1;
        if (at < tokens.size() && one_of(tokens[at].text, fillers)) ++at;
        const Token* const next = at < tokens.size() ? &tokens[at] : nullptr;
        if (next != nullptr && next->is_bit() && !letters) {
            if (one_of(word, atomic_words) || word == "exception") {
                marked_ = true;
                if (next->value != 0) mark_atomic();
                return at - i;
            }
            if (one_of(word, start_words)) {
                marked_ = true;
                if (next->value != 0) mark_start();
                return at - i;
            }
        }
        if (next != nullptr && next->is_address()) {
            const bool is_source = one_of(word, source_words) || (letters && word == "s" && i == 0);
            const bool is_destination = one_of(word, destination_words) || (letters && word == "d");
            if (is_source) begin(address_of(*next));
            if (is_destination) end(address_of(*next));
            if (is_source || is_destination) return at - i;
        }
        // The word occurs in `0x20000e9a - Exception (or debug) Entry from …`; in a line with a destination it is the
        // name of a function.
        if (word == "exception" && i != 0 && tokens[i - 1].number && (source_ || !letters)) {
            marked_ = true;
            mark_atomic();
        } else if ((word == "a" || word == "s") && !letters && i != 0 && (next == nullptr || !next->number)) {
            marked_ = true;
            word == "a" ? mark_atomic() : mark_start();
        }
        return 0;
    }

    static constexpr std::array source_words{"source"sv, "src"sv};
    static constexpr std::array destination_words{"destination"sv, "dest"sv, "dst"sv};
    static constexpr std::array atomic_words{"a"sv, "a_bit"sv, "abit"sv, "atomic"sv};
    static constexpr std::array start_words{"s"sv, "s_bit"sv, "sbit"sv, "start"sv};
    static constexpr std::array fillers{"address"sv, "addr"sv, "pc"sv, "bit"sv};

    Listing out_;
    std::vector<Column> columns_{};  ///< of the table whose rows follow
    char separator_ = '\0';          ///< between its fields; 0: blanks
    std::optional<FlaggedAddress> source_{};
    bool starts_ = false, marked_ = false, on_this_line_ = false;
};

}  // namespace

std::optional<Listing> read_listing(std::string_view text) {
    Reader reader;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        reader.line(line);
    }
    return std::move(reader).finish();
}

}  // namespace waymark::mtb
