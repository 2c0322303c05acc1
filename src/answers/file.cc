#include "waymark/answers/file.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <concepts>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "waymark/answers/schema.h"

namespace waymark::answers {

namespace {

constexpr std::array<std::uint8_t, 8> magic{0x89, 'W', 'M', 'A', 'N', 'S', '\r', '\n'};
constexpr int compression = 3;
constexpr std::uint8_t needed = 1;  // flag of a section: who does not know it cannot read the file
constexpr std::size_t longest_name = 255;

enum class Type : std::uint8_t { number, address, text, real, index, choice, maybe, list };
constexpr std::array<std::string_view, 8> types{"number", "address", "text",  "real",
                                                "index",  "choice",  "maybe", "list"};

using Buffer = std::vector<std::uint8_t>;

std::uint32_t checksum(Bytes bytes, std::uint32_t before = 0) {
    // zlib counts in 32 bits.
    auto sum = static_cast<uLong>(before);
    while (!bytes.empty()) {
        const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
        sum = crc32(sum, piece.data(), static_cast<uInt>(piece.size()));
        bytes = bytes.subspan(piece.size());
    }
    return static_cast<std::uint32_t>(sum);
}

void put_le(Buffer& out, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}
void put_number(Buffer& out, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::uint8_t>(value | 0x80));
    out.push_back(static_cast<std::uint8_t>(value));
}
void put_text(Buffer& out, std::string_view text) {
    put_number(out, text.size());
    out.insert(out.end(), text.begin(), text.end());
}
/// Small distances in either direction are small numbers.
std::uint64_t zigzag(std::uint64_t distance) { return (distance << 1) ^ (0 - (distance >> 63)); }
std::uint64_t unzigzag(std::uint64_t number) { return (number >> 1) ^ (0 - (number & 1)); }

template <class T>
concept Scalar = std::integral<T> || std::same_as<T, std::string>;

/// A list of numbers or texts is a table of one column.
template <class W, class T>
void item_fields(W& w, T& value) {
    constexpr std::string_view what = "of the list";
    if constexpr (std::same_as<std::remove_const_t<T>, std::string>)
        w.text("value", value, what);
    else
        w.number("value", value, what);
}
template <class W, class Row>
void row_fields(W& w, Row& row) {
    if constexpr (Scalar<std::remove_const_t<Row>>)
        item_fields(w, row);
    else
        schema::fields(w, row);
}

// ---- writing

class TableWriter {
public:
    template <class Row>
    void add(const Row& row) {
        at_ = 0;
        row_fields(*this, row);
    }
    void number(std::string_view name, std::integral auto value, std::string_view) {
        put_number(column(name, Type::number).bytes, static_cast<std::uint64_t>(value));
    }
    void address(std::string_view name, std::integral auto value, std::string_view) {
        Field& field = column(name, Type::address);
        put_number(field.bytes, zigzag(std::uint64_t{value} - std::exchange(field.before, value)));
    }
    void text(std::string_view name, const std::string& value, std::string_view) {
        put_text(column(name, Type::text).bytes, value);
    }
    void real(std::string_view name, double value, std::string_view) {
        put_le(column(name, Type::real).bytes, std::bit_cast<std::uint64_t>(value), 8);
    }
    void index(std::string_view name, Index value, IndexedTable, std::string_view) {
        put_number(column(name, Type::index).bytes, static_cast<Index>(value + 1));  // none: 0
    }
    void choice(std::string_view name, auto value, const auto&, std::string_view) {
        put_number(column(name, Type::choice).bytes, static_cast<std::uint64_t>(value));
    }
    template <class T>
    void maybe(std::string_view name, const std::optional<T>& value, std::string_view) {
        Buffer& out = column(name, Type::maybe).bytes;
        out.push_back(value ? 1 : 0);
        if (value) put_number(out, static_cast<std::uint64_t>(*value));
    }
    template <class T>
    void list(std::string_view name, const std::vector<T>& values, std::string_view) {
        Field& field = column(name, Type::list);
        put_number(field.bytes, values.size());
        if (field.rows == nullptr) field.rows = std::make_unique<TableWriter>();
        for (const T& value : values) field.rows->add(value);
    }
    /// The columns, one after another.
    void write(Buffer& out) const {
        put_number(out, fields_.size());
        for (const Field& field : fields_) {
            Buffer list;
            if (field.rows != nullptr) {
                put_number(list, field.bytes.size());
                list.insert(list.end(), field.bytes.begin(), field.bytes.end());
                field.rows->write(list);
            }
            const Buffer& data = field.rows != nullptr ? list : field.bytes;
            put_text(out, field.name);
            out.push_back(static_cast<std::uint8_t>(field.type));
            put_number(out, data.size());
            out.insert(out.end(), data.begin(), data.end());
        }
    }

private:
    struct Field {
        std::string_view name;
        Type type{};
        Buffer bytes{};
        std::uint64_t before = 0;
        std::unique_ptr<TableWriter> rows{};
    };
    Field& column(std::string_view name, Type type) {
        if (at_ == fields_.size()) fields_.push_back({name, type});
        return fields_[at_++];
    }
    std::vector<Field> fields_;
    std::size_t at_ = 0;
};

class FileWriter {
public:
    explicit FileWriter(ByteSink& sink) : sink_(sink) {
        Buffer head(magic.begin(), magic.end());
        put_le(head, file_version, 4);
        put_le(head, 0, 4);
        put(head);
    }
    template <class Row>
    void table(std::string_view name, const std::vector<Row>& rows) {
        if (rows.empty()) return;
        TableWriter writer;
        for (const Row& row : rows) writer.add(row);
        Buffer plain;
        writer.write(plain);
        Buffer stored(ZSTD_compressBound(plain.size()));
        const std::size_t size = ZSTD_compress(stored.data(), stored.size(), plain.data(), plain.size(), compression);
        WM_CHECK(ZSTD_isError(size) == 0);
        stored.resize(size);
        Buffer section{static_cast<std::uint8_t>(name.size())};
        section.insert(section.end(), name.begin(), name.end());
        section.push_back(0);  // no flags: what version 1 has, later ones may leave out
        put_le(section, rows.size(), 8);
        put_le(section, plain.size(), 8);
        put_le(section, stored.size(), 8);
        section.insert(section.end(), stored.begin(), stored.end());
        put_le(section, checksum(section), 4);
        put(section);
        ++sections_;
    }
    void finish() {
        Buffer end{0};
        put_le(end, sections_, 4);
        put_le(end, checksum(end, sum_), 4);
        sink_.write(end);
    }

private:
    void put(const Buffer& bytes) {
        sum_ = checksum(bytes, sum_);
        sink_.write(bytes);
    }
    ByteSink& sink_;
    std::uint32_t sum_ = 0, sections_ = 0;
};

// ---- reading

/// What reading may still take of memory, and what was wrong first.
struct Reading {
    std::uint64_t left{};
    std::string wrong{};

    bool fail(std::string what) {
        if (wrong.empty()) wrong = std::move(what);
        return false;
    }
    bool take(std::uint64_t rows, std::uint64_t bytes) {
        if (bytes != 0 && rows > left / bytes) return fail("it would need more memory than a file of its size may");
        left -= rows * bytes;
        return true;
    }
};

class Pull {
public:
    explicit Pull(Bytes bytes) : bytes_(bytes) {}
    [[nodiscard]] bool empty() const { return bytes_.empty(); }
    [[nodiscard]] std::size_t left() const { return bytes_.size(); }
    std::optional<std::uint64_t> number() {
        std::uint64_t value = 0;
        for (unsigned shift = 0, at = 0; at < bytes_.size() && shift < 64; shift += 7, ++at) {
            const std::uint64_t bits = bytes_[at] & 0x7fU;
            if (shift == 63 && bits > 1) return std::nullopt;
            value |= bits << shift;
            if (bytes_[at] < 0x80) {
                bytes_ = bytes_.subspan(at + 1);
                return value;
            }
        }
        return std::nullopt;
    }
    std::optional<std::uint64_t> le(unsigned count) {
        const auto raw = bytes(count);
        if (!raw) return std::nullopt;
        std::uint64_t value = 0;
        for (unsigned i = 0; i < count; ++i) value |= std::uint64_t{(*raw)[i]} << (8 * i);
        return value;
    }
    std::optional<Bytes> bytes(std::uint64_t count) {
        if (count > bytes_.size()) return std::nullopt;
        const Bytes out = bytes_.first(static_cast<std::size_t>(count));
        bytes_ = bytes_.subspan(static_cast<std::size_t>(count));
        return out;
    }
    std::optional<Bytes> text() {
        const auto size = number();
        return size ? bytes(*size) : std::nullopt;
    }

private:
    Bytes bytes_;
};

std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

class TableReader {
public:
    TableReader(Bytes payload, std::string table, Reading& reading) : table_(std::move(table)), reading_(reading) {
        Pull pull(payload);
        const auto count = pull.number();
        if (!count || *count > payload.size()) {
            damaged("its columns");
            return;
        }
        for (std::uint64_t i = 0; i < *count; ++i) {
            const auto name = pull.text();
            const auto type = pull.bytes(1);
            const auto data = type ? pull.text() : std::nullopt;
            if (!name || name->size() > longest_name || !data) {
                damaged("its columns");
                return;
            }
            fields_.push_back({as_text(*name), (*type)[0], Pull(*data)});
            bytes_ = std::max<std::uint64_t>(bytes_, data->size());
        }
        if (!pull.empty()) damaged("its end");
    }
    /// Appends rows. A row has at least a byte in every column.
    template <class Row>
    bool read(std::vector<Row>& rows, std::uint64_t count) {
        if (!ok()) return false;
        if (count > bytes_) return damaged("its number of rows");
        if (!reading_.take(count, sizeof(Row))) return false;
        rows.reserve(rows.size() + static_cast<std::size_t>(count));
        for (std::uint64_t i = 0; i < count; ++i)
            if (!read_row(rows.emplace_back())) return false;
        return true;
    }
    template <class Row>
    bool read_row(Row& row) {
        at_ = 0;
        row_fields(*this, row);
        return ok();
    }
    /// All rows were read: whether every column that is known ends here.
    bool finish() {
        if (!ok()) return false;
        for (Known* known : known_)
            if (known != nullptr && (!known->data.empty() || (known->rows && !known->rows->finish())))
                return damaged(fmt::format("the end of its column {}", known->name));
        return true;
    }

    void number(std::string_view name, std::integral auto& value, std::string_view) {
        if (Known* k = column(name, Type::number)) put_value(*k, k->data.number(), value);
    }
    void address(std::string_view name, std::integral auto& value, std::string_view) {
        Known* k = column(name, Type::address);
        if (k == nullptr) return;
        const auto distance = k->data.number();
        if (!distance) return void(damaged(fmt::format("its column {}", name)));
        k->before += unzigzag(*distance);
        put_value(*k, k->before, value);
    }
    void text(std::string_view name, std::string& value, std::string_view) {
        Known* k = column(name, Type::text);
        if (k == nullptr) return;
        const auto found = k->data.text();
        if (!found) return void(damaged(fmt::format("its column {}", name)));
        if (reading_.take(found->size(), 1)) value = as_text(*found);
    }
    void real(std::string_view name, double& value, std::string_view) {
        Known* k = column(name, Type::real);
        if (k == nullptr) return;
        const auto found = k->data.le(8);
        if (!found) return void(damaged(fmt::format("its column {}", name)));
        value = std::bit_cast<double>(*found);
    }
    void index(std::string_view name, Index& value, IndexedTable, std::string_view) {
        Known* k = column(name, Type::index);
        if (k == nullptr) return;
        put_value(*k, k->data.number(), value);
        --value;
    }
    template <class T>
    void choice(std::string_view name, T& value, const auto& words, std::string_view) {
        Known* k = column(name, Type::choice);
        if (k == nullptr) return;
        const auto found = k->data.number();
        if (!found || *found >= words.size()) return void(damaged(fmt::format("its column {}", name)));
        value = static_cast<T>(*found);
    }
    template <class T>
    void maybe(std::string_view name, std::optional<T>& value, std::string_view) {
        Known* k = column(name, Type::maybe);
        if (k == nullptr) return;
        const auto known = k->data.number();
        if (!known || *known > 1) return void(damaged(fmt::format("its column {}", name)));
        if (*known == 1) put_value(*k, k->data.number(), value.emplace());
    }
    template <class T>
    void list(std::string_view name, std::vector<T>& values, std::string_view) {
        Known* k = column(name, Type::list);
        if (k == nullptr) return;
        if (k->rows == nullptr) {
            const auto counts = k->data.text();
            if (!counts) return void(damaged(fmt::format("its column {}", name)));
            k->rows = std::make_unique<TableReader>(*k->data.bytes(k->data.left()), fmt::format("{}.{}", table_, name),
                                                    reading_);
            k->data = Pull(*counts);
        }
        const auto count = k->data.number();
        if (!count) return void(damaged(fmt::format("its column {}", name)));
        if (*count != 0) k->rows->read(values, *count);
    }

private:
    struct Known {
        std::string_view name;
        std::uint8_t type{};
        Pull data;
        std::uint64_t before = 0;
        std::unique_ptr<TableReader> rows{};
    };
    [[nodiscard]] bool ok() const { return reading_.wrong.empty(); }
    bool damaged(const std::string& what) {
        return reading_.fail(fmt::format("its table {} is damaged: {}", table_, what));
    }
    /// Null: the file does not have it, so that the field stays what it is; or something is wrong already.
    Known* column(std::string_view name, Type type) {
        if (!ok()) return nullptr;
        if (at_ == known_.size()) {
            const auto found =
                std::find_if(fields_.begin(), fields_.end(), [&](const Known& k) { return k.name == name; });
            known_.push_back(found == fields_.end() ? nullptr : &*found);
            if (found != fields_.end() && found->type != static_cast<std::uint8_t>(type)) {
                damaged(fmt::format("its column {} is no {}", name, types[static_cast<std::size_t>(type)]));
                return nullptr;
            }
        }
        return known_[at_++];
    }
    template <class T>
    void put_value(Known& k, std::optional<std::uint64_t> found, T& value) {
        if (!found || *found > std::uint64_t{std::numeric_limits<T>::max()})
            return void(damaged(fmt::format("its column {}", k.name)));
        value = static_cast<T>(*found);
    }

    std::string table_;
    Reading& reading_;
    std::vector<Known> fields_;
    std::vector<Known*> known_;  // by field, in the order of the description
    std::size_t at_ = 0;
    std::uint64_t bytes_ = 0;  // of the longest column
};

/// Finds indices that lead nowhere.
class IndexCheck {
public:
    explicit IndexCheck(const Answers& a)
        : sizes_{a.images.size(),  a.sources.size(), a.functions.size(),
                 a.inlined.size(), a.calls.size(),   a.timeline.tracks.size()} {}
    [[nodiscard]] bool ok() const { return ok_; }
    void row(const auto& row) { row_fields(*this, row); }

    void index(std::string_view, Index value, IndexedTable place, std::string_view) {
        ok_ &= value == none || value < sizes_[static_cast<std::size_t>(place)];
    }
    void number(auto&&...) {}
    void address(auto&&...) {}
    void text(auto&&...) {}
    void real(auto&&...) {}
    void choice(auto&&...) {}
    void maybe(auto&&...) {}
    void list(auto&&...) {}  // no list has indices

private:
    std::array<std::size_t, place_count> sizes_;
    bool ok_ = true;
};

/// Whether every row's parent is an earlier one. `first`: the first row alone has none.
bool parents_first(const auto& rows, bool first) {
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i].parent == none ? first && i != 0 : rows[i].parent >= i) return false;
    return true;
}

class FileReader {
public:
    FileReader(Bytes file, std::string_view name) : file_(file), name_(name) {
        constexpr std::uint64_t least = std::uint64_t{512} << 20, each = 256;
        reading_.left = least + each * file.size();
    }

    Result<Answers> read() {
        if (!is_answers_file(file_)) return bad("it is no answers file");
        Pull pull(file_);
        static_cast<void>(pull.bytes(magic.size()));
        const auto version = pull.le(4), reserved = pull.le(4);
        if (!version || !reserved) return cut();
        if (*version == 0 || *version > file_version)
            return Error{Errc::unsupported,
                         fmt::format("{}: an answers file of version {}; this Waymark reads versions up to {}", name_,
                                     *version, file_version)};
        std::uint32_t sections = 0;
        for (;; ++sections) {
            const std::size_t begin = file_.size() - pull.left();
            const auto size = pull.le(1);
            if (!size) return cut();
            if (*size == 0) break;
            const auto name = pull.bytes(*size);
            const auto flags = pull.le(1), rows = pull.le(8), plain = pull.le(8), stored = pull.le(8);
            const auto data = stored ? pull.bytes(*stored) : std::nullopt;
            const std::size_t end = file_.size() - pull.left();
            const auto sum = data ? pull.le(4) : std::nullopt;
            if (!sum) return cut();
            if (*sum != checksum(file_.subspan(begin, end - begin)))
                return bad(fmt::format("the checksum of the section at {:#x} is wrong", begin), begin);
            if (auto status = section({as_text(*name), static_cast<std::uint8_t>(*flags), *rows, *plain, *data});
                !status)
                return status.error();
            if (!reading_.wrong.empty()) return bad(reading_.wrong, begin);
        }
        const auto count = pull.le(4);
        const std::size_t end = file_.size() - pull.left();
        const auto sum = pull.le(4);
        if (!sum) return cut();
        if (*count != sections || *sum != checksum(file_.first(end))) return bad("its checksum is wrong");
        if (!pull.empty()) return bad("there is something after its end", file_.size() - pull.left());
        return assemble();
    }

private:
    struct Section {
        std::string_view name;
        std::uint8_t flags;
        std::uint64_t rows, plain;
        Bytes data;
    };
    [[nodiscard]] Error bad(const std::string& what, std::optional<std::size_t> at = {}) const {
        return {Errc::bad_format, fmt::format("{}: {}", name_, what), at ? std::optional(Offset{*at}) : std::nullopt};
    }
    [[nodiscard]] Error cut() const {
        return bad(fmt::format("it is cut short after {} bytes; copy the whole file again", file_.size()));
    }

    waymark::Status section(const Section& s) {
        bool found = false;
        const auto take = [&](std::string_view name, auto& rows, std::string_view) {
            if (name != s.name || found) return;
            found = true;
            if (!rows.empty()) return void(reading_.fail(fmt::format("its table {} is there twice", name)));
            Buffer plain;
            if (!unpack(s, plain)) return;
            TableReader reader(plain, std::string(name), reading_);
            if (reader.read(rows, s.rows)) reader.finish();
            reading_.left += plain.size();
        };
        take("head", heads_, {});
        take("axis", axes_, {});
        take("tables", tables_, {});
        schema::tables(take, out_);
        if (!found && (s.flags & needed) != 0)
            return Error{Errc::unsupported,
                         fmt::format("{}: it has a table {}, which this Waymark does not know and cannot do without",
                                     name_, s.name)};
        return Nothing{};
    }
    bool unpack(const Section& s, Buffer& plain) {
        const auto says = ZSTD_getFrameContentSize(s.data.data(), s.data.size());
        if (says != s.plain) return reading_.fail(fmt::format("the size of its table {} is wrong", s.name));
        if (!reading_.take(s.plain, 1)) return false;
        plain.resize(static_cast<std::size_t>(s.plain));
        const std::size_t size = ZSTD_decompress(plain.data(), plain.size(), s.data.data(), s.data.size());
        if (ZSTD_isError(size) != 0 || size != plain.size())
            return reading_.fail(fmt::format("its table {} cannot be decompressed", s.name));
        return true;
    }

    Result<Answers> assemble() {
        if (heads_.size() != 1 || axes_.size() > 1) return bad("it does not say of which capture it is");
        schema::AnswersHead& head = heads_.front();
        out_.capture = std::move(head.capture);
        out_.unit = std::move(head.unit);
        out_.version = std::move(head.version);
        out_.trace_bytes = head.trace_bytes;
        out_.cut = head.cut;
        out_.timeline.resolution = head.resolution;
        if (!axes_.empty()) out_.timeline.axis = std::move(axes_.front());
        if (out_.metrics.empty()) return bad("it has no metric");
        for (schema::StoredTable& table : tables_) {
            Table& t = out_.tables.emplace_back();
            t.title = std::move(table.title);
            t.note = std::move(table.note);
            t.columns = std::move(table.columns);
            const std::size_t width = t.columns.size();
            if (width == 0 ? !table.cells.empty() : table.cells.size() % width != 0)
                return bad(fmt::format("its table '{}' has a row that is no row", t.title));
            for (std::size_t i = 0; i < table.cells.size(); ++i) {
                const auto cell = table.cells[i].cell();
                if (!cell) return bad(fmt::format("its table '{}' has a cell that is none", t.title));
                if (i % width == 0) t.rows.emplace_back();
                t.rows.back().push_back(*cell);
            }
        }
        IndexCheck check(out_);
        schema::tables(
            [&](std::string_view, const auto& rows, std::string_view) {
                for (const auto& row : rows) check.row(row);
            },
            std::as_const(out_));
        if (!check.ok() || !parents_first(out_.calls, true) || !parents_first(out_.inlined, false) ||
            !parents_first(out_.timeline.tracks, false))
            return bad("one of its rows names another that is not there");
        return std::move(out_);
    }

    Bytes file_;
    std::string_view name_;
    Reading reading_;
    Answers out_;
    std::vector<schema::AnswersHead> heads_;
    std::vector<TimeAxis> axes_;
    std::vector<schema::StoredTable> tables_;
};

// ---- the document

class Documenter {
public:
    std::string text_of{};

    template <class Row>
    void table(std::string_view name, std::string_view what) {
        text_of += fmt::format("### {}\n\n{}\n\n| column | type | meaning |\n|---|---|---|\n", name, sentence(what));
        rows<Row>({});
        text_of += "\n";
    }
    void number(std::string_view name, auto&&, std::string_view what) { line(name, "number", what); }
    void address(std::string_view name, auto&&, std::string_view what) { line(name, "address", what); }
    void text(std::string_view name, auto&&, std::string_view what) { line(name, "text", what); }
    void real(std::string_view name, auto&&, std::string_view what) { line(name, "real", what); }
    void maybe(std::string_view name, auto&&, std::string_view what) { line(name, "maybe", what); }
    void index(std::string_view name, auto&&, IndexedTable place, std::string_view what) {
        static constexpr std::array<std::string_view, place_count> names{"images",  "sources", "functions",
                                                                         "inlined", "calls",   "tracks"};
        line(name, fmt::format("index of {}", names[static_cast<std::size_t>(place)]), what);
    }
    void choice(std::string_view name, auto&&, const auto& words, std::string_view what) {
        std::string list;
        for (std::size_t i = 0; i < words.size(); ++i) list += fmt::format("{}{} {}", i == 0 ? "" : ", ", i, words[i]);
        line(name, "choice", fmt::format("{}: {}", what, list));
    }
    template <class T>
    void list(std::string_view name, const std::vector<T>&, std::string_view what) {
        if constexpr (Scalar<T>) {
            line(name, std::same_as<T, std::string> ? "list of texts" : "list of numbers", what);
        } else {
            line(name, "list", what);
            rows<T>(std::string(name));
        }
    }

private:
    template <class Row>
    void rows(const std::string& within) {
        const std::string before = std::exchange(within_, within.empty() ? within_ : within_ + within + ".");
        const Row row{};
        schema::fields(*this, row);
        within_ = before;
    }
    void line(std::string_view name, std::string_view type, std::string_view what) {
        text_of += fmt::format("| {}{} | {} | {} |\n", within_, name, type, what);
    }
    static std::string sentence(std::string_view what) {
        std::string out(what);
        if (!out.empty()) out[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[0])));
        return out + ".";
    }
    std::string within_;
};

}  // namespace

namespace schema {

StoredCell::StoredCell(const Cell& cell)
    : shown(cell.shown), kind(static_cast<std::uint32_t>(cell.value.get().index())), colour(cell.colour) {
    const Value::Variant& value = cell.value.get();
    if (const auto* flag = std::get_if<bool>(&value)) number = *flag ? 1 : 0;
    if (const auto* whole = std::get_if<std::uint64_t>(&value)) number = *whole;
    if (const auto* whole = std::get_if<std::int64_t>(&value)) number = static_cast<std::uint64_t>(*whole);
    if (const auto* fraction = std::get_if<double>(&value)) real = *fraction;
    if (const auto* word = std::get_if<std::string>(&value)) text = *word;
}

std::optional<Cell> StoredCell::cell() const {
    Cell out;
    out.shown = shown;
    out.colour = colour;
    switch (kind) {
        case 0: break;
        case 1:
            if (number > 1) return std::nullopt;
            out.value = number == 1;
            break;
        case 2: out.value = number; break;
        case 3: out.value = static_cast<std::int64_t>(number); break;
        case 4: out.value = real; break;
        case 5: out.value = text; break;
        default: return std::nullopt;
    }
    return out;
}

}  // namespace schema

bool is_answers_file(Bytes head) {
    return head.size() >= magic.size() && std::equal(magic.begin(), magic.end(), head.begin());
}

void write_answers(const Answers& answers, ByteSink& sink) {
    FileWriter file(sink);
    file.table("head",
               std::vector<schema::AnswersHead>{{answers.capture, answers.unit, answers.version, answers.trace_bytes,
                                                 answers.cut, answers.timeline.resolution}});
    file.table("axis", std::vector<TimeAxis>{answers.timeline.axis});
    schema::tables([&](std::string_view name, const auto& rows, std::string_view) { file.table(name, rows); }, answers);
    std::vector<schema::StoredTable> tables;
    for (const Table& table : answers.tables) {
        schema::StoredTable& stored = tables.emplace_back();
        stored.title = table.title;
        stored.note = table.note;
        stored.columns = table.columns;
        for (const auto& row : table.rows)
            for (const Cell& cell : row) stored.cells.emplace_back(cell);
    }
    file.table("tables", tables);
    file.finish();
}

Result<Answers> read_answers(Bytes file, std::string_view name) { return FileReader(file, name).read(); }

std::string answers_document() {
    Documenter out;
    out.text_of =
        "# The answers file\n"
        "\n"
        "`waymark answers CAPTURE -o FILE` writes what a capture says about its program into one file: "
        "`answers::Answers`\n"
        "(`include/waymark/answers/answers.h`), without the capture. Every command that shows answers takes it like a\n"
        "capture, and `waymark merge` adds any number of them up. This document is made from the description that "
        "reader\n"
        "and writer use (`include/waymark/answers/schema.h`).\n"
        "\n"
        "## Layout\n"
        "\n"
        "Numbers of fixed size are little-endian. A file is\n"
        "\n"
        "| bytes | content |\n"
        "|---|---|\n"
        "| 8 | 89 57 4d 41 4e 53 0d 0a |\n"
        "| 4 | version: 1 |\n"
        "| 4 | 0 |\n"
        "| … | sections, one for each table that has rows |\n"
        "| 1 | 0: there is no further section |\n"
        "| 4 | number of sections |\n"
        "| 4 | CRC-32 (as in zlib) of all bytes before |\n"
        "\n"
        "and a section is\n"
        "\n"
        "| bytes | content |\n"
        "|---|---|\n"
        "| 1 | length of the table's name, not 0 |\n"
        "| … | name |\n"
        "| 1 | flags: bit 0: a reader that does not know the table must refuse the file; the other bits are 0 |\n"
        "| 8 | number of rows |\n"
        "| 8 | size of the table |\n"
        "| 8 | size of the table as it is stored |\n"
        "| … | the table, one frame of zstd |\n"
        "| 4 | CRC-32 of the section before |\n"
        "\n"
        "A table is the number of its columns and then each column: its name (a text), its type (a byte), and the size "
        "of\n"
        "its values and the values (a text of bytes). Values of a column follow one another, one for each row:\n"
        "\n"
        "| type | value |\n"
        "|---|---|\n"
        "| 0 number | 7 bits a byte, the lowest first; bit 7 is set in all bytes but the last |\n"
        "| 1 address | the difference to the row before (to 0 in the first one) modulo 2^64, as a number: twice a "
        "positive one, twice the amount of a negative one less 1 |\n"
        "| 2 text | its length in bytes, a number, and the bytes |\n"
        "| 3 real | IEEE 754, 8 bytes |\n"
        "| 4 index | a number: 0 for no row, else 1 more than the place of the row in its table |\n"
        "| 5 choice | a number: the place of a word in the list that the column's meaning gives |\n"
        "| 6 maybe | a byte 0 for nothing, or a byte 1 and a number |\n"
        "| 7 list | the number of items. The column is a text of all these numbers, and then a table with the items "
        "of\n"
        "  all rows; items that are numbers or texts are its column `value` |\n";
    // A line of a table is one line.
    if (const std::size_t at = out.text_of.find("items of\n  all"); at != std::string::npos)
        out.text_of.replace(at, std::string_view("items of\n  all").size(), "items of all");
    out.text_of +=
        "\n"
        "## Versions\n"
        "\n"
        "Tables and columns are known by their names. A reader passes over those it does not know, and a column that "
        "is\n"
        "not there has its default: 0, an empty text, no row. The version changes only where the layout above does. "
        "What\n"
        "a name means never changes. A reader refuses a file with a later version, or with a table it does not know "
        "that\n"
        "has bit 0 of its flags set. Readers check both checksums, every index, and that a file does not take more "
        "memory\n"
        "than 512 MiB and 256 bytes for each of its own.\n"
        "\n"
        "The same answers give the same bytes, with the same version of zstd.\n"
        "\n"
        "## Merging\n"
        "\n"
        "`waymark merge` finds equal rows by what they are about: images by build ID, or by name where there is none;\n"
        "functions by image, linkage name and address in the file; instructions, branches, edges, blocks and loops by\n"
        "address in the file and function; lines by file and number; paths of calls by the functions on them. Their\n"
        "numbers add up, and stop at 2^64-1. Rows are then put in one order that depends on nothing but what they are\n"
        "about. So merging is commutative and associative: any number of files, in any order and by any tree of "
        "merges,\n"
        "give the same file, byte for byte. What has no sum is left out: timelines, for captures have no time in "
        "common,\n"
        "charts, and tables that only one unit has; `health` then says so. Figures that are no numbers and differ "
        "become\n"
        "`differs`. A tree of calls is kept only where every capture has one.\n"
        "\n"
        "## Tables\n"
        "\n";
    out.table<schema::AnswersHead>("head", "one row: what is no table");
    out.table<TimeAxis>("axis", "one row: what times of the timeline are");
    const Answers none_known;
    schema::tables([&]<class Row>(std::string_view name, const std::vector<Row>&,
                                  std::string_view what) { out.table<Row>(name, what); },
                   none_known);
    out.table<schema::StoredTable>("tables", "tables that only one unit has");
    while (out.text_of.ends_with("\n\n")) out.text_of.pop_back();
    return out.text_of;
}

}  // namespace waymark::answers
