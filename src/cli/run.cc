#include <array>

#include "commands.h"
#include "version.h"

namespace waymark::cli {

namespace {

/// The commands in the order of --help and README.md; commands of a single unit follow.
constexpr std::array commands_for_all_units{
    NamedCommand{"record", add_record},     NamedCommand{"report", add_report},
    NamedCommand{"serve", add_serve},       NamedCommand{"info", add_info},
    NamedCommand{"doctor", add_doctor},     NamedCommand{"explain", add_explain},
    NamedCommand{"program", add_program},   NamedCommand{"packets", add_packets},
    NamedCommand{"flow", add_flow},         NamedCommand{"profile", add_profile},
    NamedCommand{"coverage", add_coverage}, NamedCommand{"branches", add_branches},
    NamedCommand{"loops", add_loops},       NamedCommand{"exceptions", add_exceptions},
    NamedCommand{"calls", add_calls},       NamedCommand{"diff", add_diff},
    NamedCommand{"export", add_export},     NamedCommand{"pgo", add_pgo},
    NamedCommand{"answers", add_answers},   NamedCommand{"merge", add_merge},
    NamedCommand{"fleet", add_fleet},       NamedCommand{"query", add_query},
    NamedCommand{"verify", add_verify}};

// The first matching row applies. Groups of options, and the paragraphs that explain them, begin with the same words.
constexpr std::array unit_topics{TopicStart{"--unit spe", "spe"}, TopicStart{"--unit dpu", "dpu"},
                                 TopicStart{"--unit mtb", "cortex-m"}, TopicStart{"--unit ", "unit"},
                                 TopicStart{"--as perf", "perf"}};
constexpr std::array group_topics{TopicStart{"A whole system", "system"}, TopicStart{"Names", "capture"},
                                  TopicStart{"Bare trace files", "capture"}, TopicStart{"Selection", "capture"}};
constexpr std::array paragraph_topics{TopicStart{"With --system everything", "system"},
                                      TopicStart{"Types of packets", "types"}};

template <class... Rows>
std::vector<TopicStart> joined(const Rows&... rows) {
    std::vector<TopicStart> out;
    (out.insert(out.end(), rows.begin(), rows.end()), ...);
    return out;
}

command_line::Program program() {
    command_line::Program out{.name = "waymark",
                              .versioned_name = "Waymark " WAYMARK_VERSION,
                              .version = version_text,
                              .texts = &all_texts(),
                              .commands = {commands_for_all_units.begin(), commands_for_all_units.end()},
                              .commands_of_text = {"verify", "status"},
                              .topics = {.groups = joined(unit_topics, group_topics),
                                         .paragraphs = joined(unit_topics, paragraph_topics),
                                         .shared = "capture",
                                         .shared_about = all_texts().sentence("waymark", "topic capture").value(),
                                         .shared_command = "flow"},
                              .lookups = lookups()};
    const auto units = unit_commands();
    out.commands.insert(out.commands.end(), units.begin(), units.end());
    return out;
}

}  // namespace

int run(int argc, char** argv) { return command_line::run(program(), argc, argv); }

}  // namespace waymark::cli
