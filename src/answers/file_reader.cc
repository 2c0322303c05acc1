#include <fmt/format.h>
#include <zstd.h>

#include <bit>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "file_format.h"
#include "waymark/answers/build_id.h"
#include "waymark/answers/file.h"

namespace waymark::answers {
namespace {

constexpr std::uint8_t needed = 1;  // section flag: readers that do not know the section must refuse the file
constexpr std::size_t longest_name = 255;

std::uint64_t unzigzag(std::uint64_t number) { return (number >> 1) ^ (0 - (number & 1)); }

/// Memory that reading may still use, and the first error.
struct Reading {
    std::uint64_t left{};
    std::string wrong{};

    bool fail(std::string what) {
        if (wrong.empty()) wrong = std::move(what);
        return false;
    }
    bool take(std::uint64_t rows, std::uint64_t bytes) {
        if (bytes != 0 && rows > left / bytes)
            return fail(
                "it needs more memory than allowed for its size; it is "
                "damaged");
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
    /// Appends rows. A row has at least one byte in every column.
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
    /// After the last row: whether every known column is used up.
    bool finish() {
        if (!ok()) return false;
        for (Known* known : known_)
            if (known != nullptr && (!known->data.empty() || (known->rows && !known->rows->finish())))
                return damaged(fmt::format("the end of its column {}", known->name));
        return true;
    }

    void number(std::string_view name, std::integral auto& value, std::string_view) {
        if (Known* k = column(name, ColumnType::number)) put_value(*k, k->data.number(), value);
    }
    void address(std::string_view name, std::integral auto& value, std::string_view) {
        Known* k = column(name, ColumnType::address);
        if (k == nullptr) return;
        const auto distance = k->data.number();
        if (!distance) return void(damaged(fmt::format("its column {}", name)));
        k->before += unzigzag(*distance);
        put_value(*k, k->before, value);
    }
    void text(std::string_view name, std::string& value, std::string_view) {
        Known* k = column(name, ColumnType::text);
        if (k == nullptr) return;
        const auto found = k->data.text();
        if (!found) return void(damaged(fmt::format("its column {}", name)));
        if (reading_.take(found->size(), 1)) value = as_text(*found);
    }
    void shared(std::string_view name, SharedText& value, std::string_view) {
        Known* k = column(name, ColumnType::shared);
        if (k == nullptr) return;
        const auto number = k->is_text ? std::optional<std::uint64_t>(0) : k->data.number();
        if (!number || *number > k->texts.size()) return void(damaged(fmt::format("its column {}", name)));
        if (*number != 0) {
            value = k->texts[static_cast<std::size_t>(*number - 1)];
            return;
        }
        const auto found = k->data.text();
        if (!found) return void(damaged(fmt::format("its column {}", name)));
        if (!reading_.take(found->size(), 1)) return;
        value = std::string(as_text(*found));
        if (!k->is_text) k->texts.push_back(value);
    }
    void real(std::string_view name, double& value, std::string_view) {
        Known* k = column(name, ColumnType::real);
        if (k == nullptr) return;
        const auto found = k->data.le(8);
        if (!found) return void(damaged(fmt::format("its column {}", name)));
        value = std::bit_cast<double>(*found);
    }
    void index(std::string_view name, Index& value, IndexedTable, std::string_view) {
        Known* k = column(name, ColumnType::index);
        if (k == nullptr) return;
        put_value(*k, k->data.number(), value);
        --value;
    }
    template <class T>
    void choice(std::string_view name, T& value, const auto& words, std::string_view) {
        Known* k = column(name, ColumnType::choice);
        if (k == nullptr) return;
        const auto found = k->data.number();
        if (!found || *found >= words.size()) return void(damaged(fmt::format("its column {}", name)));
        value = static_cast<T>(*found);
    }
    template <class T>
    void maybe(std::string_view name, std::optional<T>& value, std::string_view) {
        Known* k = column(name, ColumnType::maybe);
        if (k == nullptr) return;
        const auto known = k->data.number();
        if (!known || *known > 1) return void(damaged(fmt::format("its column {}", name)));
        if (*known == 1) put_value(*k, k->data.number(), value.emplace());
    }
    template <class T>
    void list(std::string_view name, std::vector<T>& values, std::string_view) {
        Known* k = column(name, ColumnType::list);
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
        bool is_text = false;  ///< earlier versions wrote texts one by one, without sharing
        std::vector<SharedText> texts{};
    };
    [[nodiscard]] bool ok() const { return reading_.wrong.empty(); }
    bool damaged(const std::string& what) {
        return reading_.fail(fmt::format("its table {} is damaged: {}", table_, what));
    }
    /// Null if the file lacks the column, so that the field keeps its default, or after an error.
    Known* column(std::string_view name, ColumnType type) {
        if (!ok()) return nullptr;
        if (at_ == known_.size()) {
            const auto found =
                std::find_if(fields_.begin(), fields_.end(), [&](const Known& k) { return k.name == name; });
            known_.push_back(found == fields_.end() ? nullptr : &*found);
            if (found != fields_.end() && type == ColumnType::shared)
                found->is_text = found->type == static_cast<std::uint8_t>(ColumnType::text);
            if (found != fields_.end() && !found->is_text && found->type != static_cast<std::uint8_t>(type)) {
                damaged(fmt::format("its column {} is no {}", name, column_types[static_cast<std::size_t>(type)]));
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
    std::uint64_t bytes_ = 0;  // bytes of the longest column
};

/// Finds indices that refer to no row.
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
    void shared(auto&&...) {}
    void real(auto&&...) {}
    void choice(auto&&...) {}
    void maybe(auto&&...) {}
    void list(auto&&...) {}  // no list has indices

private:
    std::array<std::size_t, place_count> sizes_;
    bool ok_ = true;
};

/// Whether every row's parent is an earlier row. `first`: only the first row may have no parent.
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
        if (!is_answers_file(file_)) return bad("it is not an answers file");
        Pull pull(file_);
        static_cast<void>(pull.bytes(file_magic.size()));
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
                return bad(fmt::format("the section at {:#x} is damaged; copy the file again", begin), begin);
            if (auto status = section({as_text(*name), static_cast<std::uint8_t>(*flags), *rows, *plain, *data});
                !status)
                return status.error();
            if (!reading_.wrong.empty()) return bad(reading_.wrong, begin);
        }
        const auto count = pull.le(4);
        const std::size_t end = file_.size() - pull.left();
        const auto sum = pull.le(4);
        if (!sum) return cut();
        if (*count != sections || *sum != checksum(file_.first(end)))
            return bad(
                "it is damaged (checksum); copy it "
                "again");
        if (!pull.empty()) return bad("extra bytes follow its end; copy it again", file_.size() - pull.left());
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
        return bad(fmt::format("it was cut after {} bytes; copy the whole file again", file_.size()));
    }

    waymark::Status section(const Section& s) {
        bool found = false;
        const auto take = [&](std::string_view name, auto& rows, std::string_view) {
            if (name != s.name || found) return;
            found = true;
            if (!rows.empty()) return void(reading_.fail(fmt::format("its table {} is there twice", name)));
            FileBuffer plain;
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
                         fmt::format("{}: it has a table {}, which this Waymark does not know and must not ignore",
                                     name_, s.name)};
        return Nothing{};
    }
    bool unpack(const Section& s, FileBuffer& plain) {
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
        if (heads_.size() != 1 || axes_.size() > 1) return bad("it does not name its capture");
        schema::AnswersHead& head = heads_.front();
        out_.capture = std::move(head.capture);
        out_.unit = std::move(head.unit);
        out_.version = std::move(head.version);
        out_.trace_bytes = head.trace_bytes;
        out_.cut = head.cut;
        out_.timeline.resolution = head.resolution;
        out_.hides_others = head.hides_others;
        if (!axes_.empty()) out_.timeline.axis = std::move(axes_.front());
        if (out_.metrics.empty()) return bad("it has no metric");
        for (schema::StoredTable& table : tables_) {
            Table& t = out_.tables.emplace_back();
            t.title = std::move(table.title);
            t.note = std::move(table.note);
            t.columns = std::move(table.columns);
            const std::size_t width = t.columns.size();
            if (width == 0 ? !table.cells.empty() : table.cells.size() % width != 0)
                return bad(fmt::format("its table '{}' has an invalid row", t.title));
            for (std::size_t i = 0; i < table.cells.size(); ++i) {
                const auto cell = table.cells[i].cell();
                if (!cell) return bad(fmt::format("its table '{}' has an invalid cell", t.title));
                if (i % width == 0) t.rows.emplace_back();
                t.rows.back().push_back(*cell);
            }
        }
        if (auto wrong = wrong_name()) return bad(*wrong);
        IndexCheck check(out_);
        schema::tables(
            [&](std::string_view, const auto& rows, std::string_view) {
                for (const auto& row : rows) check.row(row);
            },
            std::as_const(out_));
        if (!check.ok() || !parents_first(out_.calls, true) || !parents_first(out_.inlined, false) ||
            !parents_first(out_.timeline.tracks, false))
            return bad("one of its rows refers to a row that does not exist");
        return std::move(out_);
    }

    /// Finds a malformed build ID or path. Build IDs and paths are used to search for files and to name files.
    [[nodiscard]] std::optional<std::string> wrong_name() const {
        const auto no_path = [](std::string_view text) { return text.find('\0') != text.npos; };
        if (no_path(out_.capture)) return "the name of its capture has a NUL byte; it is damaged";
        for (std::size_t i = 0; i < out_.images.size(); ++i) {
            const Image& image = out_.images[i];
            if (!is_build_id(image.build_id))
                return fmt::format("the build ID of its image {} is no hexadecimal number; it is damaged", i);
            if (no_path(image.name) || no_path(image.path))
                return fmt::format("the name of its image {} has a NUL byte; it is damaged", i);
        }
        for (std::size_t i = 0; i < out_.sources.size(); ++i)
            if (no_path(out_.sources[i].path))
                return fmt::format("the name of its source {} has a NUL byte; it is damaged", i);
        return std::nullopt;
    }

    Bytes file_;
    std::string_view name_;
    Reading reading_;
    Answers out_;
    std::vector<schema::AnswersHead> heads_;
    std::vector<TimeAxis> axes_;
    std::vector<schema::StoredTable> tables_;
};

}  // namespace

namespace schema {

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
    return head.size() >= file_magic.size() && std::equal(file_magic.begin(), file_magic.end(), head.begin());
}

Result<Answers> read_answers(Bytes file, std::string_view name) { return FileReader(file, name).read(); }

}  // namespace waymark::answers
