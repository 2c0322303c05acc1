/// `waymark fleet`: any number of captures, decoded on many cores or machines.
#include <memory>
#include <utility>

#include "commands.h"

namespace waymark::cli {

Run add_fleet(CLI::App& app) {
    CLI::App& fleet =
        *app.add_subcommand("fleet", "Decode any number of captures, here or under Slurm, and add them up");
    fleet.require_subcommand(1);
    fleet.footer(
        "A job is a folder. All commands take it, on any machine that sees it:\n"
        "\n"
        "  waymark fleet plan captures/ -o JOB      what there is to do, in shards\n"
        "  waymark fleet local JOB                  decode and merge here; or, under Slurm:\n"
        "  waymark fleet submit JOB -- --partition=arm --time=30\n"
        "  waymark fleet status JOB\n"
        "  waymark report JOB/result.answers\n"
        "\n"
        "docs/fleet.md describes the files, and how other batch systems run shards.\n");
    auto commands = std::make_shared<std::vector<std::pair<CLI::App*, Run>>>();
    const auto add = [&](Run command) { commands->emplace_back(fleet.get_subcommands({}).back(), std::move(command)); };
    add(add_fleet_plan(fleet));
    add(add_fleet_local(fleet));
    add(add_fleet_submit(fleet));
    add(add_fleet_status(fleet));
    add(add_fleet_cancel(fleet));
    add(add_fleet_resume(fleet));
    add(add_fleet_add(fleet));
    add(add_fleet_run_shard(fleet));
    add(add_fleet_merge(fleet));
    return [commands] {
        for (const auto& [command, go] : *commands)
            if (command->parsed()) return go();
        return usage;
    };
}

void add_job_folder(CLI::App& command, std::string& folder) {
    command.add_option("JOB", folder, "Folder of the job, as waymark fleet plan made it")->required();
}

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
