/// Shared declarations of the Python module's sources.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "waymark.h"

namespace waymark::python {

namespace py = pybind11;

/// An error of waymark.h that becomes a Python exception.
struct Failure {
    wm_status status{};
    std::string message;
    std::optional<std::uint64_t> offset{};
};
/// Throws if a call failed, and frees its error.
void check(wm_status status, wm_error* error);
/// Calls a function of waymark.h: `call([&](wm_error** error) { return wm_…(…, error); })`.
template <class F>
void call(F&& f) {
    wm_error* error = nullptr;
    const wm_status status = f(&error);
    check(status, error);
}
/// The same without the interpreter's lock, so that other threads of Python run meanwhile.
template <class F>
void unlocked_call(F&& f) {
    wm_error* error = nullptr;
    wm_status status{};
    {
        const py::gil_scoped_release unlocked;
        status = f(&error);
    }
    check(status, error);
}

class Options {
public:
    /// Options with the names of wm_options_set, with `_` for `-`; also `code`: {address: bytes}, and `ask`: a function
    /// of address, number of bytes and space that returns bytes or None.
    explicit Options(const py::dict& given);
    ~Options();
    Options(const Options&) = delete;
    Options& operator=(const Options&) = delete;
    [[nodiscard]] wm_options* get() const { return options_; }

private:
    wm_options* options_;
    std::unique_ptr<py::function> ask_;
};

/// An open capture, with the function that provides code. Every object that needs it keeps a reference.
struct Opened {
    explicit Opened(const py::dict& given) : options(given) {}
    ~Opened() { wm_close(capture); }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    Options options;
    wm_capture* capture = nullptr;
};

/// A capture; after it is closed, all calls fail.
class Capture {
public:
    explicit Capture(std::shared_ptr<Opened> opened) : opened_(std::move(opened)) {}
    static Capture open(const std::string& path, const py::dict& options);
    static Capture of_memory(const py::buffer& bytes, const std::string& name, const py::dict& options);
    static Capture live(const py::dict& options);
    /// The capture stays open for objects that still use it.
    void close() { opened_.reset(); }
    [[nodiscard]] const std::shared_ptr<Opened>& opened() const {
        if (!opened_) throw Failure{WM_USAGE, "the capture is closed", {}};
        return opened_;
    }
    [[nodiscard]] const wm_capture* get() const { return opened()->capture; }

private:
    std::shared_ptr<Opened> opened_;
};

/// An array over foreign memory, which `owner` keeps alive. Not writable.
template <class T>
py::array_t<T> array_of(const T* data, std::size_t count, py::object owner) {
    py::array_t<T> out({static_cast<py::ssize_t>(count)}, {static_cast<py::ssize_t>(sizeof(T))}, data,
                       std::move(owner));
    py::detail::array_proxy(out.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
    return out;
}
/// The same with an owner that is not a Python object.
template <class T, class Owner>
py::array_t<T> array_kept_by(const T* data, std::size_t count, const std::shared_ptr<Owner>& owner) {
    py::capsule keeps(new std::shared_ptr<Owner>(owner),
                      [](void* p) { delete static_cast<std::shared_ptr<Owner>*>(p); });
    return array_of(data, count, std::move(keeps));
}

void add_decoders(py::module_& m);
void add_answers(py::module_& m);
void add_models(py::module_& m);

}  // namespace waymark::python
