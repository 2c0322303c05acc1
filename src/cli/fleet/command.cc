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

std::string elapsed_text(double seconds) {
    const auto whole = static_cast<std::uint64_t>(seconds + 0.5);
    if (whole < 100) return fmt::format("{} s", whole);
    const std::uint64_t minutes = (whole + 30) / 60;
    if (minutes < 100) return fmt::format("{} min", minutes);
    return fmt::format("{} h {} min", grouped(minutes / 60), minutes % 60);
}

void print_some(Output& out, std::size_t all, std::size_t most, const std::function<void(std::size_t)>& print_one) {
    for (std::size_t n = 0; n < all && n < most; ++n) print_one(n);
    if (all > most) out.print("  … and {} more\n", grouped(all - most));
}

}  // namespace waymark::cli
