#include "selection.h"

#include "waymark/pipeline/selection_texts.h"

namespace waymark::cli {

void SelectionOptions::add_to(const Command& command) {
    command.option("--process", processes);
    command.option("--exclude-process", excluded);
    command.flag("--exclude-recorder", without_recorder);
    command.option("--thread", threads);
    command.option("--only-image", images);
    command.option("--cpu", cpus);
    const Option of_kernel = command.flag("--kernel", kernel);
    command.flag("--user", user)->excludes(of_kernel);
    command.option("--time", time);
}

const char* SelectionOptions::given() const {
    return !processes.empty()  ? "--process"
           : !excluded.empty() ? "--exclude-process"
           : without_recorder  ? "--exclude-recorder"
           : !threads.empty()  ? "--thread"
           : !images.empty()   ? "--only-image"
           : !cpus.empty()     ? "--cpu"
           : kernel            ? "--kernel"
           : user              ? "--user"
           : !time.empty()     ? "--time"
                               : nullptr;
}

Result<pipeline::FlowSelection> SelectionOptions::read() const {
    pipeline::FlowSelection out;
    out.processes = processes;
    out.excluded = excluded;
    out.without_recorder = without_recorder;
    out.threads = threads;
    out.images = images;
    WM_ASSIGN_OR_RETURN(out.cpus, pipeline::read_cpus(cpus));
    if (kernel || user) out.kernel = kernel;
    if (!time.empty()) {
        WM_ASSIGN_OR_RETURN(out.time, pipeline::read_time(time));
    }
    return out;
}

}  // namespace waymark::cli
