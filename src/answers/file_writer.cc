#include <zstd.h>

#include <bit>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "file_format.h"
#include "waymark/answers/file.h"

namespace waymark::answers {
namespace {

constexpr int compression = 3;

void put_le(FileBuffer& out, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}
void put_number(FileBuffer& out, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::uint8_t>(value | 0x80));
    out.push_back(static_cast<std::uint8_t>(value));
}
void put_text(FileBuffer& out, std::string_view text) {
    put_number(out, text.size());
    out.insert(out.end(), text.begin(), text.end());
}
/// Small distances in either direction are small numbers.
std::uint64_t zigzag(std::uint64_t distance) { return (distance << 1) ^ (0 - (distance >> 63)); }

class TableWriter {
public:
    template <class Row>
    void add(const Row& row) {
        at_ = 0;
        row_fields(*this, row);
    }
    void number(std::string_view name, std::integral auto value, std::string_view) {
        put_number(column(name, ColumnType::number).bytes, static_cast<std::uint64_t>(value));
    }
    void address(std::string_view name, std::integral auto value, std::string_view) {
        Field& field = column(name, ColumnType::address);
        put_number(field.bytes, zigzag(std::uint64_t{value} - std::exchange(field.before, value)));
    }
    void text(std::string_view name, const std::string& value, std::string_view) {
        put_text(column(name, ColumnType::text).bytes, value);
    }
    void shared(std::string_view name, const SharedText& value, std::string_view) {
        Field& field = column(name, ColumnType::shared);
        const auto [at, fresh] = field.texts.try_emplace(value.view(), field.texts.size() + 1);
        put_number(field.bytes, fresh ? 0 : at->second);
        if (fresh) put_text(field.bytes, value.view());
    }
    void real(std::string_view name, double value, std::string_view) {
        put_le(column(name, ColumnType::real).bytes, std::bit_cast<std::uint64_t>(value), 8);
    }
    void index(std::string_view name, Index value, IndexedTable, std::string_view) {
        put_number(column(name, ColumnType::index).bytes, static_cast<Index>(value + 1));  // none: 0
    }
    void choice(std::string_view name, auto value, const auto&, std::string_view) {
        put_number(column(name, ColumnType::choice).bytes, static_cast<std::uint64_t>(value));
    }
    template <class T>
    void maybe(std::string_view name, const std::optional<T>& value, std::string_view) {
        FileBuffer& out = column(name, ColumnType::maybe).bytes;
        out.push_back(value ? 1 : 0);
        if (value) put_number(out, static_cast<std::uint64_t>(*value));
    }
    template <class T>
    void list(std::string_view name, const std::vector<T>& values, std::string_view) {
        Field& field = column(name, ColumnType::list);
        put_number(field.bytes, values.size());
        if (field.rows == nullptr) field.rows = std::make_unique<TableWriter>();
        for (const T& value : values) field.rows->add(value);
    }
    /// The columns, one after another.
    void write(FileBuffer& out) const {
        put_number(out, fields_.size());
        for (const Field& field : fields_) {
            FileBuffer list;
            if (field.rows != nullptr) {
                put_number(list, field.bytes.size());
                list.insert(list.end(), field.bytes.begin(), field.bytes.end());
                field.rows->write(list);
            }
            const FileBuffer& data = field.rows != nullptr ? list : field.bytes;
            put_text(out, field.name);
            out.push_back(static_cast<std::uint8_t>(field.type));
            put_number(out, data.size());
            out.insert(out.end(), data.begin(), data.end());
        }
    }

private:
    struct Field {
        std::string_view name;
        ColumnType type{};
        FileBuffer bytes{};
        std::uint64_t before = 0;
        std::unique_ptr<TableWriter> rows{};
        std::unordered_map<std::string_view, std::size_t> texts{};  // the rows own them
    };
    Field& column(std::string_view name, ColumnType type) {
        if (at_ == fields_.size()) fields_.push_back({name, type});
        return fields_[at_++];
    }
    std::vector<Field> fields_;
    std::size_t at_ = 0;
};

class FileWriter {
public:
    explicit FileWriter(ByteSink& sink) : sink_(sink) {
        FileBuffer head(file_magic.begin(), file_magic.end());
        put_le(head, file_version, 4);
        put_le(head, 0, 4);
        put(head);
    }
    template <class Row>
    void table(std::string_view name, const std::vector<Row>& rows) {
        if (rows.empty()) return;
        TableWriter writer;
        for (const Row& row : rows) writer.add(row);
        FileBuffer plain;
        writer.write(plain);
        FileBuffer stored(ZSTD_compressBound(plain.size()));
        const std::size_t size = ZSTD_compress(stored.data(), stored.size(), plain.data(), plain.size(), compression);
        WM_CHECK(ZSTD_isError(size) == 0);
        stored.resize(size);
        FileBuffer section{static_cast<std::uint8_t>(name.size())};
        section.insert(section.end(), name.begin(), name.end());
        section.push_back(0);  // no flags: all of this is in version 1, and later versions may omit it
        put_le(section, rows.size(), 8);
        put_le(section, plain.size(), 8);
        put_le(section, stored.size(), 8);
        section.insert(section.end(), stored.begin(), stored.end());
        put_le(section, checksum(section), 4);
        put(section);
        ++sections_;
    }
    void finish() {
        FileBuffer end{0};
        put_le(end, sections_, 4);
        put_le(end, checksum(end, sum_), 4);
        sink_.write(end);
    }

private:
    void put(const FileBuffer& bytes) {
        sum_ = checksum(bytes, sum_);
        sink_.write(bytes);
    }
    ByteSink& sink_;
    std::uint32_t sum_ = 0, sections_ = 0;
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

}  // namespace schema

void write_answers(const Answers& answers, ByteSink& sink) {
    FileWriter file(sink);
    file.table("head",
               std::vector<schema::AnswersHead>{{answers.capture, answers.unit, answers.version, answers.trace_bytes,
                                                 answers.cut, answers.timeline.resolution, answers.hides_others}});
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

}  // namespace waymark::answers
