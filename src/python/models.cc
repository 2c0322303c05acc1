/// Models of trace units.
#include <optional>
#include <string>
#include <string_view>
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
    /// Sets all signals, or none if one is refused.
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

class UnitHandle {
public:
    UnitHandle(const std::string& kind, const std::vector<std::string>& settings) {
        std::vector<const char*> texts;
        for (const std::string& setting : settings) texts.push_back(setting.c_str());
        texts.push_back(nullptr);
        call([&](wm_error** error) { return wm_unit_new(kind.c_str(), texts.data(), &unit_, error); });
    }
    ~UnitHandle() { wm_unit_free(unit_); }
    UnitHandle(const UnitHandle&) = delete;
    UnitHandle& operator=(const UnitHandle&) = delete;

    void write(const std::string& name, std::uint64_t value) {
        call([&](wm_error** error) { return wm_unit_write(unit_, name.c_str(), value, error); });
    }
    std::uint64_t read(const std::string& name) {
        std::uint64_t value = 0;
        call([&](wm_error** error) { return wm_unit_read(unit_, name.c_str(), &value, error); });
        return value;
    }
    void signal(const std::string& name, std::uint64_t value) {
        call([&](wm_error** error) { return wm_unit_signal(unit_, name.c_str(), value, error); });
    }
    bool line(const std::string& name) {
        int level = 0;
        call([&](wm_error** error) { return wm_unit_line(unit_, name.c_str(), &level, error); });
        return level != 0;
    }
    void send(std::uint8_t trace_id, const py::bytes& bytes) {
        const std::string_view view = bytes;
        call([&](wm_error** error) {
            return wm_unit_send(unit_, trace_id, reinterpret_cast<const std::uint8_t*>(view.data()), view.size(),
                                error);
        });
    }
    /// An array of operation_dtype.
    void retire(const py::array_t<wm_operation, py::array::c_style>& list) {
        const wm_operation* const first = list.data();
        const auto count = static_cast<std::size_t>(list.size());
        unlocked_call(
            [&](wm_error** error) { return wm_unit_retire(unit_, first, count, sizeof(wm_operation), error); });
    }
    std::pair<std::string, std::string> decide(
        const std::string& function, const std::optional<py::array_t<wm_operation, py::array::c_style>>& operation) {
        const char *answer = nullptr, *why = nullptr;
        call([&](wm_error** error) {
            return wm_unit_decide(unit_, function.c_str(), operation ? operation->data() : nullptr,
                                  sizeof(wm_operation), &answer, &why, error);
        });
        return {answer, why};
    }
    void run(std::uint64_t cycles, const std::vector<std::pair<std::string, std::uint64_t>>& events,
             const std::optional<std::string>& item, std::uint32_t source, std::uint32_t destination,
             std::uint32_t count, std::uint32_t extension, std::uint8_t channel, bool supervisor, std::uint8_t pid,
             std::uint8_t did) {
        std::vector<wm_event_count> list;
        for (const auto& [name, times] : events) list.push_back({name.c_str(), times});
        const wm_eonce_item one{item ? item->c_str() : nullptr,        source, destination, count, extension, channel,
                                static_cast<std::uint8_t>(supervisor), pid,    did,         {}};
        unlocked_call([&](wm_error** error) {
            return wm_unit_run(unit_, cycles, list.data(), list.size(), item ? &one : nullptr, error);
        });
    }
    py::bytes memory() {
        const std::uint8_t* bytes = nullptr;
        const std::size_t count = wm_unit_memory(unit_, &bytes);
        return {reinterpret_cast<const char*>(bytes), count};
    }
    py::bytes take() {
        const std::uint8_t* bytes = nullptr;
        const std::size_t count = wm_unit_take(unit_, &bytes);
        return {reinterpret_cast<const char*>(bytes), count};
    }

private:
    wm_unit* unit_ = nullptr;
};

}  // namespace

void add_models(py::module_& m) {
    PYBIND11_NUMPY_DTYPE(wm_executed, address, cycle, opcode, isa, flags, reserved);
    m.attr("executed_dtype") = py::dtype::of<wm_executed>();
    PYBIND11_NUMPY_DTYPE(wm_operation, pc, cycle, address, physical, events, total_latency, issue_latency,
                         translation_latency, data_source, kind, flags);
    m.attr("operation_dtype") = py::dtype::of<wm_operation>();
    using py::literals::operator""_a;
    m.attr("operation_kinds") = py::dict("other"_a = int{WM_OP_OTHER}, "load"_a = int{WM_OP_LOAD},
                                         "store"_a = int{WM_OP_STORE}, "branch"_a = int{WM_OP_BRANCH});
    // The flags `physical` and `data_source` mean that the column with this name is known.
    m.attr("operation_flags") =
        py::dict("conditional"_a = int{WM_OP_CONDITIONAL}, "indirect"_a = int{WM_OP_INDIRECT},
                 "atomic"_a = int{WM_OP_ATOMIC}, "simd_fp"_a = int{WM_OP_SIMD_FP}, "not_taken"_a = int{WM_OP_NOT_TAKEN},
                 "not_retired"_a = int{WM_OP_NOT_RETIRED}, "physical"_a = int{WM_OP_HAS_PHYSICAL},
                 "data_source"_a = int{WM_OP_HAS_DATA_SOURCE});
    py::class_<UnitHandle>(m, "Unit")
        .def(py::init<const std::string&, const std::vector<std::string>&>())
        .def("write", &UnitHandle::write)
        .def("read", &UnitHandle::read)
        .def("signal", &UnitHandle::signal)
        .def("line", &UnitHandle::line)
        .def("send", &UnitHandle::send)
        .def("retire", &UnitHandle::retire)
        .def("decide", &UnitHandle::decide)
        .def("run", &UnitHandle::run)
        .def("memory", &UnitHandle::memory)
        .def("take", &UnitHandle::take);
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
