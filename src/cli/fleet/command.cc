/// `waymark fleet`: any number of captures, decoded on many cores or machines.
#include <memory>
#include <utility>

#include "commands.h"

namespace waymark::cli {

Run add_fleet(const Command& app) {
    const Command fleet = app.add("fleet");
    return add_below(fleet, {add_fleet_plan, add_fleet_local, add_fleet_submit, add_fleet_status, add_fleet_cancel,
                             add_fleet_resume, add_fleet_add, add_fleet_run_shard, add_fleet_merge});
}

void add_job_folder(const Command& command, std::string& folder) { command.option("JOB", folder); }

}  // namespace waymark::cli
