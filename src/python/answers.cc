/// Answers and their tables.
#include <array>
#include <string>
#include <string_view>

#include "module.h"

namespace waymark::python {

namespace {

class AnswersHandle {
public:
    AnswersHandle(const Capture& capture, unsigned parts, unsigned jobs) {
        const std::shared_ptr<Opened> opened = capture.opened();
        const auto progress = [](std::uint64_t, std::uint64_t, void*) {
            const py::gil_scoped_acquire lock;
            return PyErr_CheckSignals();
        };
        wm_error* error = nullptr;
        wm_status status{};
        {
            const py::gil_scoped_release unlocked;
            status = wm_answers_of(opened->capture, parts, jobs, progress, nullptr, &answers_, &error);
        }
        if (PyErr_Occurred() != nullptr) {
            wm_error_free(error);
            throw py::error_already_set();
        }
        check(status, error);
    }
    ~AnswersHandle() { wm_answers_free(answers_); }
    AnswersHandle(const AnswersHandle&) = delete;
    AnswersHandle& operator=(const AnswersHandle&) = delete;

    void save(const std::string& path) const {
        unlocked_call([&](wm_error** error) { return wm_answers_save(answers_, path.c_str(), error); });
    }
    void write(const std::string& format, const std::string& path) const {
        unlocked_call(
            [&](wm_error** error) { return wm_answers_export(answers_, format.c_str(), path.c_str(), error); });
    }
    [[nodiscard]] const wm_answers* get() const { return answers_; }

private:
    wm_answers* answers_ = nullptr;
};

class TableHandle {
public:
    TableHandle(const AnswersHandle& answers, const std::string& name) {
        wm_table* table = nullptr;
        unlocked_call([&](wm_error** error) { return wm_answers_table(answers.get(), name.c_str(), &table, error); });
        table_ = std::shared_ptr<wm_table>(table, wm_table_free);
    }
    [[nodiscard]] std::size_t rows() const { return wm_table_rows(table_.get()); }
    /// A tuple (name, type, meaning, refers) for each column.
    [[nodiscard]] py::list columns() const {
        constexpr std::array types{"integer", "address", "real", "text"};
        py::list out;
        for (std::size_t i = 0; i < wm_table_columns(table_.get()); ++i)
            out.append(
                py::make_tuple(wm_table_column_name(table_.get(), i), types.at(wm_table_column_type(table_.get(), i)),
                               wm_table_column_meaning(table_.get(), i), wm_table_column_refers(table_.get(), i)));
        return out;
    }
    /// Numbers without copying, texts as objects.
    [[nodiscard]] py::object column(std::size_t index) const {
        if (index >= wm_table_columns(table_.get())) throw py::index_error();
        const std::size_t count = rows();
        switch (wm_table_column_type(table_.get(), index)) {
            case WM_COLUMN_REAL: return array_kept_by(wm_table_reals(table_.get(), index), count, table_);
            case WM_COLUMN_TEXT: {
                const char* const* texts = wm_table_texts(table_.get(), index);
                py::list out(count);
                for (std::size_t i = 0; i < count; ++i)
                    out[i] = texts[i] == nullptr ? py::object(py::none()) : text(texts[i]);
                return py::module_::import("numpy").attr("array")(out, py::arg("dtype") = py::str("object"));
            }
            default: return array_kept_by(wm_table_integers(table_.get(), index), count, table_);
        }
    }
    [[nodiscard]] py::array_t<bool> known(std::size_t index) const {
        if (index >= wm_table_columns(table_.get())) throw py::index_error();
        return array_kept_by(reinterpret_cast<const bool*>(wm_table_known(table_.get(), index)), rows(), table_);
    }

private:
    /// Text that need not be UTF-8, such as names in files.
    static py::object text(const char* bytes) {
        return py::reinterpret_steal<py::object>(
            PyUnicode_DecodeUTF8(bytes, static_cast<Py_ssize_t>(std::string_view(bytes).size()), "surrogateescape"));
    }
    std::shared_ptr<wm_table> table_;
};

}  // namespace

void add_answers(py::module_& m) {
    py::dict parts;
    parts["calls"] = static_cast<unsigned>(WM_ANSWERS_CALLS);
    parts["timeline"] = static_cast<unsigned>(WM_ANSWERS_TIMELINE);
    parts["instructions"] = static_cast<unsigned>(WM_ANSWERS_INSTRUCTIONS);
    parts["all_functions"] = static_cast<unsigned>(WM_ANSWERS_ALL_FUNCTIONS);
    parts["inlined"] = static_cast<unsigned>(WM_ANSWERS_INLINED);
    parts["ranges"] = static_cast<unsigned>(WM_ANSWERS_RANGES);
    parts["disassembly"] = static_cast<unsigned>(WM_ANSWERS_DISASSEMBLY);
    parts["sources"] = static_cast<unsigned>(WM_ANSWERS_SOURCES);
    m.attr("answer_parts") = parts;
    py::list names;
    for (std::size_t i = 0; wm_answers_table_name(i) != nullptr; ++i) names.append(wm_answers_table_name(i));
    m.attr("table_names") = py::tuple(names);
    py::class_<AnswersHandle>(m, "Answers")
        .def(py::init<const Capture&, unsigned, unsigned>())
        .def("save", &AnswersHandle::save)
        .def("export", &AnswersHandle::write);
    py::class_<TableHandle>(m, "Table")
        .def(py::init<const AnswersHandle&, const std::string&>())
        .def_property_readonly("rows", &TableHandle::rows)
        .def_property_readonly("columns", &TableHandle::columns)
        .def("column", &TableHandle::column)
        .def("known", &TableHandle::known);
}

}  // namespace waymark::python
