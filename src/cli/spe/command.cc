/// `waymark spe`: samples of the Statistical Profiling Extension.
#include <memory>
#include <utility>

#include "commands.h"

namespace waymark::cli {

Run add_spe(CLI::App& app) {
    CLI::App& spe = *app.add_subcommand("spe", "Samples of the Statistical Profiling Extension (SPE)");
    spe.require_subcommand(1);
    auto commands = std::make_shared<std::vector<std::pair<CLI::App*, Run>>>();
    const auto add = [&](Run command) { commands->emplace_back(spe.get_subcommands({}).back(), std::move(command)); };
    add(add_spe_report(spe));
    add(add_spe_sharing(spe));
    add(add_spe_branches(spe));
    add(add_spe_quality(spe));
    add(add_spe_records(spe));
    add(add_spe_explain(spe));
    return [commands] {
        for (const auto& [command, go] : *commands)
            if (command->parsed()) return go();
        return usage;
    };
}

}  // namespace waymark::cli
