/// The Python module waymark._waymark: the C interface (waymark.h) as classes of Python. src/python/waymark/__init__.py
/// adds more convenient interfaces on top.
#include "module.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace waymark::python {

void check(wm_status status, wm_error* error) {
    if (status == WM_OK) return;
    Failure failure{status, wm_error_message(error), {}};
    std::uint64_t offset = 0;
    if (wm_error_offset(error, &offset) != 0) failure.offset = offset;
    wm_error_free(error);
    throw failure;
}

namespace {

/// An option is a text, or a list of texts; numbers are converted.
void set_option(wm_options* options, const std::string& name, const py::handle& value) {
    if (value.is_none()) return;
    if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
        for (const py::handle& each : value) set_option(options, name, each);
        return;
    }
    // Paths and numbers in Python's notation.
    const std::string text = py::str(value);
    call([&](wm_error** error) { return wm_options_set(options, name.c_str(), text.c_str(), error); });
}

/// Called without the interpreter's lock.
std::size_t ask_python(std::uint64_t address, unsigned space, void* into, std::size_t bytes, void* user) {
    const py::gil_scoped_acquire lock;
    try {
        const py::object got = (*static_cast<py::function*>(user))(address, bytes, space);
        if (got.is_none()) return 0;
        const py::buffer_info info = py::buffer(got).request();
        const auto count = std::min<std::size_t>(bytes, static_cast<std::size_t>(info.size * info.itemsize));
        std::memcpy(into, info.ptr, count);
        return count;
    } catch (py::error_already_set& e) {
        e.discard_as_unraisable("waymark: code callback");
        return 0;
    }
}

}  // namespace

Options::Options(const py::dict& given) : options_(wm_options_new()) {
    if (options_ == nullptr) throw std::bad_alloc();
    for (const auto& [key, value] : given) {
        std::string name = py::str(key);
        std::replace(name.begin(), name.end(), '_', '-');
        if (name == "code") {
            for (const auto& item : py::cast<py::dict>(value)) {
                const py::buffer_info info = py::buffer(py::reinterpret_borrow<py::object>(item.second)).request();
                call([&](wm_error** error) {
                    return wm_options_add_code(options_, py::cast<std::uint64_t>(item.first), info.ptr,
                                               static_cast<std::size_t>(info.size * info.itemsize), error);
                });
            }
        } else if (name == "ask") {
            ask_ = std::make_unique<py::function>(py::cast<py::function>(value));
            wm_options_set_code_callback(options_, ask_python, ask_.get());
        } else {
            set_option(options_, name, value);
        }
    }
}

Options::~Options() { wm_options_free(options_); }

Capture Capture::open(const std::string& path, const py::dict& options) {
    auto out = std::make_shared<Opened>(options);
    unlocked_call([&](wm_error** error) { return wm_open(path.c_str(), out->options.get(), &out->capture, error); });
    return Capture(std::move(out));
}
Capture Capture::of_memory(const py::buffer& bytes, const std::string& name, const py::dict& options) {
    auto out = std::make_shared<Opened>(options);
    const py::buffer_info info = bytes.request();
    unlocked_call([&](wm_error** error) {
        return wm_open_memory(info.ptr, static_cast<std::size_t>(info.size * info.itemsize), name.c_str(),
                              out->options.get(), &out->capture, error);
    });
    return Capture(std::move(out));
}
Capture Capture::live(const py::dict& options) {
    auto out = std::make_shared<Opened>(options);
    unlocked_call([&](wm_error** error) { return wm_open_live(out->options.get(), &out->capture, error); });
    return Capture(std::move(out));
}

namespace {

std::string kind_of(const Capture& capture) {
    constexpr std::array names{"flow", "samples", "counters", "answers"};
    return names.at(wm_capture_get_kind(capture.get()));
}

py::list problems_of(const Capture& capture) {
    py::list out;
    for (std::size_t i = 0; i < wm_capture_problem_count(capture.get()); ++i)
        out.append(wm_capture_problem(capture.get(), i));
    return out;
}

py::list sources_of(const Capture& capture) {
    py::list out;
    for (std::size_t i = 0; i < wm_source_count(capture.get()); ++i) {
        const wm_source* s = wm_source_at(capture.get(), i);
        const int id = wm_source_trace_id(s);
        out.append(py::make_tuple(wm_source_name(s), wm_source_type(s), wm_source_unit(s), wm_source_core_type(s),
                                  id < 0 ? py::object(py::none()) : py::object(py::int_(id)),
                                  wm_source_has_flow(s) != 0));
    }
    return out;
}

const wm_source* source_of(const Capture& capture, std::size_t index) {
    const wm_source* source = wm_source_at(capture.get(), index);
    if (source == nullptr) throw Failure{WM_NOT_FOUND, "the capture has no such source", {}};
    return source;
}

py::object symbol_at(const Capture& capture, std::size_t source, std::uint64_t address) {
    wm_symbol symbol{};
    symbol.struct_bytes = sizeof symbol;
    wm_error* error = nullptr;
    const wm_status status = wm_symbol_at(source_of(capture, source), address, &symbol, &error);
    if (status == WM_NOT_FOUND) {
        wm_error_free(error);
        return py::none();
    }
    check(status, error);
    return py::make_tuple(symbol.name, symbol.linkage_name, symbol.address, symbol.bytes, symbol.offset);
}

std::uint64_t symbol_address(const Capture& capture, std::size_t source, const std::string& name) {
    std::uint64_t out = 0;
    call([&](wm_error** error) { return wm_symbol_address(source_of(capture, source), name.c_str(), &out, error); });
    return out;
}

/// Raises the class of waymark.errors for a status.
void raise(const Failure& failure) {
    constexpr std::array names{"Error",           "UsageError",  "NotFoundError",
                               "UnreadableError", "FormatError", "UnsupportedError",
                               "CancelledError",  "Error",       "Error"};
    const py::module_ errors = py::module_::import("waymark.errors");
    const py::object type = errors.attr(names.at(failure.status));
    const py::object offset = failure.offset ? py::object(py::int_(*failure.offset)) : py::object(py::none());
    // Names of files need not be UTF-8; Python uses surrogate escapes.
    const auto message = py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(
        failure.message.data(), static_cast<py::ssize_t>(failure.message.size()), "surrogateescape"));
    const py::object error = type(message, py::int_(static_cast<int>(failure.status)), offset);
    PyErr_SetObject(type.ptr(), error.ptr());
}

}  // namespace

/// The module. Other files of this folder add decoders, answers, models.
PYBIND11_MODULE(_waymark, m) {
    m.doc() = "The C interface of Waymark; use the package waymark.";
    m.attr("version") = wm_version();
    py::register_exception_translator([](std::exception_ptr p) {
        try {
            if (p) std::rethrow_exception(p);
        } catch (const Failure& failure) {
            raise(failure);
        }
    });
    py::class_<Capture>(m, "Capture")
        .def_static("open", &Capture::open)
        .def_static("memory", &Capture::of_memory)
        .def_static("live", &Capture::live)
        .def("close", &Capture::close)
        .def_property_readonly("kind", kind_of)
        .def_property_readonly("problems", problems_of)
        .def_property_readonly("sources", sources_of)
        .def("symbol_at", symbol_at)
        .def("symbol_address", symbol_address);
    add_decoders(m);
    add_answers(m);
    add_models(m);
}

}  // namespace waymark::python
