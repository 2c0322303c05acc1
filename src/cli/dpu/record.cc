#include "record.h"

#include <fmt/format.h>

#include <array>

#include "../commands.h"
#include "../trouble.h"
#include "input.h"
#include "waymark/record_dpu/dpu_recording.h"

namespace waymark::cli {

void DpuRecordOptions::add_program_to(const Command& command, std::vector<Option>& added) {
    const auto program = [&](const Option& option) {
        not_with_registers.push_back(option);
        added.push_back(option);
        option->group("--unit dpu: how the unit is programmed");
    };
    std::vector<std::string> modes;
    for (const auto& each : record::dpu_modes()) modes.push_back(each.first);
    program(command.option("--mode", mode)->transform(one_of(modes)));
    program(command.option("--events", events)->delimiter(','));
    program(command.option("--initial", initial));
    program(command.option("--buffer-mode", buffer_mode));
    program(command.option("--nexus", nexus));
    program(command.flag("--no-user-data", no_user_data));
}

void DpuRecordOptions::add_to(const Command& command, std::vector<Option>& added) {
    add_program_to(command, added);
    const auto add = [&](const Option& option) {
        added.push_back(option);
        return option->group("--unit dpu: how the unit is programmed");
    };
    add(command.option("--sample-every", sample_every));
    add(command.option("--loops", loops));
    add(command.option("--mark", marks));
    add(command.option("--edca", edca));
    constexpr std::array routine_texts{
        "What the service routine of interrupt line 0 writes to the unit's registers, as --registers has them: for "
        "DP_CR.DECA0=line-0, 'DP_TC ... SAMPLE=1', 'DP_CA0V 1000' and the DP_TAC line again take a sample each 1000 "
        "events of counter A0. Without a routine the system takes the interrupt and acknowledges it",
        "The same for interrupt line 1",
        "The same for debug requests, which are then debug exceptions. Without it, a debug request puts the core into "
        "debug state, and the recording ends there"};
    for (std::size_t i = 0; i < routines.size(); ++i)
        add(command.add_option(record::routine_options[i], routines[i], routine_texts[i])->type_name("FILE"));
    add(command.option("--core-set", core));
    add(command.option("--bus-cycles", bus_cycles)->check(range(1U, 1000000U)));
    constexpr const char* group = "--unit dpu: how the unit is programmed";
    command.print("--events-help", record::event_sets_text)->group(group);
    command.print("--core-help", [] { return record::to_text(record::CoreModel{}); })->group(group);
}

Result<record::RecordOutcome> run_record_dpu(const record::FlowRecording& common, const DpuRecordOptions& options,
                                             const record::ShowRecording& show) {
    if (!common.registers.empty())
        for (const Option& option : options.not_with_registers)
            if (option->count() != 0)
                return Error{Errc::usage, fmt::format("{} cannot be used with --registers: the program in {} sets it",
                                                      option->get_name(), common.registers)};
    WM_RETURN_IF_ERROR(record::check_dpu_program(common.program.front()));
    record::DpuOptions to;
    WM_RETURN_IF_ERROR(record::read_settings(common, options, to));
    say_gathered("warning", to.warnings);
    return record::record_dpu(to, common.sysroot, common.qemu_options, show, [&]() -> std::string {
        const auto input = DpuInput::open(common.folder);
        return input ? input->why_nothing() : std::string();
    });
}

}  // namespace waymark::cli
