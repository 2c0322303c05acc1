#include "record.h"

#include <fmt/format.h>

#include "../commands.h"
#include "waymark/capture/text_file.h"
#include "waymark/record/recording_texts.h"
#include "waymark/record_spe/profile_recording.h"

namespace waymark::cli {

namespace {

waymark::Status read_machine(const SpeRecordOptions& options, record::MachineModel& model) {
    if (!options.machine_file.empty()) {
        WM_ASSIGN_OR_RETURN(const std::string text,
                            capture::read_text_file(options.machine_file, capture::most_settings_bytes));
        if (const auto status = record::set_from_json(model, text); !status)
            return Error{status.error().code, fmt::format("{}: {}", options.machine_file, status.error().message)};
    }
    return record::set_numbers(model, options.machine, "--machine-set", "l2.kib=512");
}

}  // namespace

bool SpeRecordOptions::shares(std::string_view option) {
    return option == "--system" || option == "--machine" || option == "--smp";
}

void SpeRecordOptions::add_to(const Command& command, std::vector<Option>& added) {
    const auto unit = [&](const Option& option) {
        option->group("--unit spe: how the unit is programmed");
        added.push_back(option);
    };
    const auto machine_option = [&](const Option& option) {
        option->group("--unit spe: the modelled machine");
        added.push_back(option);
    };
    std::string terms;
    record::SpeOptions defaults;
    record::SpeOptions::for_each(defaults, [&](const char* name, const auto& value, const char* what) {
        terms += fmt::format("{}{}={} ({})", terms.empty() ? "" : ", ", name, static_cast<std::uint64_t>(value), what);
    });
    unit(command.add_option("-e,--event", event, "As perf's event arm_spe/TERM=N,…/. Terms and defaults: " + terms)
             ->type_name("EVENT")
             ->capture_default_str());
    unit(command.option("--period", period));
    unit(command.option("--aux-buffer", buffer_kib));
    unit(command.option("--seed", seed));
    unit(command.option("--info-version", info_version)->check(one_of({"0", "1", "2"})));
    machine_option(command.option("--machine-model", machine_file));
    machine_option(command.option("--machine-set", machine));
    command.print("--machine-help", [] { return to_text(record::MachineModel{}); })
        ->group("--unit spe: the modelled machine");
}

Result<record::RecordOutcome> run_record_spe(const record::FlowRecording& common, const SpeRecordOptions& options,
                                             const record::ShowRecording& show) {
    record::ProfilerOptions to;
    to.file = common.folder;
    to.command = common.program;
    to.spe.period = options.period;
    WM_RETURN_IF_ERROR(record::set_from_event(to.spe, options.event));
    WM_RETURN_IF_ERROR(read_machine(options, to.machine));
    to.aux_bytes = options.buffer_kib << 10;
    to.seed = options.seed;
    to.info_version = options.info_version;
    to.limit_instructions = common.limit;
    WM_RETURN_IF_ERROR(record::set_system(common, to));
    return record::record_profile(to,
                                  {.sysroot = common.sysroot,
                                   .qemu_options = common.qemu_options,
                                   .machine = common.machine,
                                   .processors = common.processors},
                                  show);
}

}  // namespace waymark::cli
