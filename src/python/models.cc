/// Models of trace units.
#include <string>
#include <utility>
#include <vector>

#include "module.h"

namespace waymark::python {

namespace {

class ModelHandle {
public:
    ModelHandle(const std::string& unit, const std::vector<std::string>& settings) {
        std::vector<const char*> texts;
        for (const std::string& setting : settings) texts.push_back(setting.c_str());
        texts.push_back(nullptr);
        call([&](wm_error** error) { return wm_model_new(unit.c_str(), texts.data(), &model_, error); });
    }
    ~ModelHandle() { wm_model_free(model_); }
    ModelHandle(const ModelHandle&) = delete;
    ModelHandle& operator=(const ModelHandle&) = delete;

    /// An array of executed_dtype.
    void execute(const py::array_t<wm_executed, py::array::c_style>& list) {
        const wm_executed* const first = list.data();
        const auto count = static_cast<std::size_t>(list.size());
        unlocked_call(
            [&](wm_error** error) { return wm_model_execute(model_, first, count, sizeof(wm_executed), error); });
    }
    void exception(const std::string& kind, std::uint64_t preferred_return, std::optional<std::uint64_t> handler,
                   int isa, std::uint64_t cycle) {
        call([&](wm_error** error) {
            return wm_model_exception(model_, kind.c_str(), preferred_return, handler.value_or(WM_NOT_RECORDED),
                                      static_cast<wm_isa>(isa), cycle, error);
        });
    }
    void state(bool non_secure, bool hyp, bool nse, std::optional<unsigned> level,
               std::optional<std::uint32_t> context_id) {
        wm_core_state s{};
        s.struct_bytes = sizeof s;
        s.non_secure = non_secure;
        s.hyp = hyp;
        s.nse = nse;
        s.aarch64 = level.has_value();
        s.level = static_cast<std::uint8_t>(level.value_or(0));
        s.has_context_id = context_id.has_value();
        s.context_id = context_id.value_or(0);
        call([&](wm_error** error) { return wm_model_state(model_, &s, error); });
    }
    /// All of them, or none if one is refused.
    void signal(const std::vector<std::pair<std::string, bool>>& signals) {
        for (const auto& [name, value] : signals)
            call([&](wm_error** error) { return wm_model_signal(model_, name.c_str(), WM_SIGNAL_CHECK, error); });
        for (const auto& [name, value] : signals)
            call([&](wm_error** error) { return wm_model_signal(model_, name.c_str(), value ? 1 : 0, error); });
    }
    void finish() {
        call([&](wm_error** error) { return wm_model_finish(model_, error); });
    }
    py::bytes take() {
        const std::uint8_t* bytes = nullptr;
        const std::size_t count = wm_model_take(model_, &bytes);
        return {reinterpret_cast<const char*>(bytes), count};
    }
    /// A live capture of the trace that this unit sends.
    [[nodiscard]] Capture open(const py::dict& given) const {
        auto out = std::make_shared<Opened>(given);
        call([&](wm_error** error) { return wm_options_describe(out->options.get(), model_, error); });
        call([&](wm_error** error) { return wm_open_live(out->options.get(), &out->capture, error); });
        return Capture(std::move(out));
    }

private:
    wm_model* model_ = nullptr;
};

}  // namespace

void add_models(py::module_& m) {
    PYBIND11_NUMPY_DTYPE(wm_executed, address, cycle, opcode, isa, flags, reserved);
    m.attr("executed_dtype") = py::dtype::of<wm_executed>();
    py::list exceptions;
    for (std::size_t i = 0; wm_exception_name(i) != nullptr; ++i) exceptions.append(wm_exception_name(i));
    m.attr("exception_names") = py::tuple(exceptions);
    py::class_<ModelHandle>(m, "Model")
        .def(py::init<const std::string&, const std::vector<std::string>&>())
        .def("execute", &ModelHandle::execute)
        .def("exception", &ModelHandle::exception)
        .def("state", &ModelHandle::state)
        .def("signal", &ModelHandle::signal)
        .def("finish", &ModelHandle::finish)
        .def("take", &ModelHandle::take)
        .def("open", &ModelHandle::open);
}

}  // namespace waymark::python
