#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "commands.h"

namespace waymark::cli {

int run(int argc, char** argv) {
    CLI::App app{
        "Waymark reads what processors write down about their own execution: which code ran, when, and what was lost.",
        "waymark"};
    app.require_subcommand(1);
    app.set_version_flag("--version", WAYMARK_VERSION);
    app.footer(
        "Exit status: 0 decoded; 1 nothing decoded, or something lost under --strict; 2 usage; 3 an input cannot be "
        "read.\n"
        "waymark COMMAND --help tells more about each.");
    std::vector<std::pair<CLI::App*, Run>> commands;
    const auto add = [&](Run command) { commands.emplace_back(app.get_subcommands({}).back(), std::move(command)); };
    add(add_info(app));
    add(add_packets(app));
    add(add_flow(app));
    add(add_record(app));
    add(add_verify(app));
    try {
        app.parse(argc, argv);
        for (const auto& [command, go] : commands)
            if (command->parsed()) return go();
    } catch (const CLI::ParseError& error) {
        // Help and version are no errors, and come this way too.
        return app.exit(error) == 0 ? decoded : usage;
    } catch (const std::bad_alloc&) {
        say("error", "out of memory");
        return unreadable;
    } catch (const std::exception& error) {
        say("error", error.what());
        return unreadable;
    }
    return usage;
}

}  // namespace waymark::cli
