#include "sample_sink.h"

namespace waymark::capi {

namespace {

using spe::RecordColumn;

constexpr unsigned bit_of(RecordColumn column) { return 1U << static_cast<unsigned>(column); }
static_assert(WM_SAMPLE_PC == bit_of(RecordColumn::pc) &&
              WM_SAMPLE_BRANCH_TARGET == bit_of(RecordColumn::branch_target) &&
              WM_SAMPLE_DATA_VIRTUAL == bit_of(RecordColumn::data_virtual) &&
              WM_SAMPLE_DATA_PHYSICAL == bit_of(RecordColumn::data_physical) &&
              WM_SAMPLE_PREVIOUS_TARGET == bit_of(RecordColumn::previous_target) &&
              WM_SAMPLE_TOTAL_LATENCY == bit_of(RecordColumn::total_latency) &&
              WM_SAMPLE_ISSUE_LATENCY == bit_of(RecordColumn::issue_latency) &&
              WM_SAMPLE_TRANSLATION_LATENCY == bit_of(RecordColumn::translation_latency) &&
              WM_SAMPLE_EVENTS == bit_of(RecordColumn::events) &&
              WM_SAMPLE_OPERATION == bit_of(RecordColumn::operation) &&
              WM_SAMPLE_DATA_SOURCE == bit_of(RecordColumn::data_source) &&
              WM_SAMPLE_CONTEXT_EL1 == bit_of(RecordColumn::context_el1) &&
              WM_SAMPLE_CONTEXT_EL2 == bit_of(RecordColumn::context_el2) &&
              WM_SAMPLE_TIMESTAMP == bit_of(RecordColumn::timestamp));

/// The selected rows of a column, as an array.
template <class T, class Take>
std::vector<T> column(std::span<const std::uint16_t> rows, Take&& take) {
    std::vector<T> out;
    out.reserve(rows.size());
    for (const std::uint16_t row : rows) out.push_back(take(row));
    return out;
}

}  // namespace

void CallbackSampleSink::consume(const analysis::SampleBatch& batch) {
    if (callbacks_.stopped) throw Stopped{};
    samples_ += batch.rows.size();
    if (callbacks_.samples == nullptr || batch.rows.empty()) return;
    const spe::RecordColumns& r = batch.records;
    const auto as_is = [&]<class T, std::size_t n>(const std::array<T, n>& of) {
        return column<T>(batch.rows, [&](std::size_t row) { return of[row]; });
    };
    const auto code = [&](const auto& of) {
        return column<std::uint64_t>(batch.rows,
                                     [&](std::size_t row) { return spe::program_address(of[row]).address.value; });
    };
    const auto pc = code(r.pc), target = code(r.branch_target), previous = code(r.previous_target);
    const auto data = column<std::uint64_t>(
        batch.rows, [&](std::size_t row) { return spe::data_address(r.data_virtual[row]).address.value; });
    const auto physical = column<std::uint64_t>(
        batch.rows, [&](std::size_t row) { return spe::physical_address(r.data_physical[row]).address.value; });
    const auto level = column<std::uint8_t>(
        batch.rows, [&](std::size_t row) { return spe::program_address(r.pc[row]).exception_level; });
    // Members by row of the batch, selected like the columns.
    const auto of_row = [&](std::span<const std::uint32_t> of) {
        return column<std::uint32_t>(batch.rows, [&](std::size_t row) { return of[row]; });
    };
    const auto pid = of_row(batch.pid), tid = of_row(batch.tid);
    const auto events = as_is(r.events), timestamp = as_is(r.timestamp);
    const auto el1 = as_is(r.context_el1), el2 = as_is(r.context_el2);
    const auto present = as_is(r.present), total = as_is(r.total_latency), issue = as_is(r.issue_latency),
               translation = as_is(r.translation_latency), source = as_is(r.data_source);
    const auto operation = as_is(r.operation_class), type = as_is(r.operation_type);

    wm_sample_batch out{};
    out.struct_bytes = sizeof out;
    out.count = batch.rows.size();
    out.cpu = batch.stream.cpu;
    out.midr = batch.stream.midr;
    out.pc = pc.data();
    out.branch_target = target.data();
    out.previous_target = previous.data();
    out.data_virtual = data.data();
    out.data_physical = physical.data();
    out.events = events.data();
    out.timestamp = timestamp.data();
    out.pid = pid.data();
    out.tid = tid.data();
    out.context_el1 = el1.data();
    out.context_el2 = el2.data();
    out.present = present.data();
    out.total_latency = total.data();
    out.issue_latency = issue.data();
    out.translation_latency = translation.data();
    out.data_source = source.data();
    out.exception_level = level.data();
    out.operation_class = operation.data();
    out.operation_type = type.data();
    callbacks_.call(callbacks_.samples, &out, callbacks_.samples_user);
    if (callbacks_.stopped) throw Stopped{};
}

}  // namespace waymark::capi
