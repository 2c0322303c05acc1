/// `waymark spe branches`: sampled branches, for readers and for tools that lay out code.
#include <algorithm>
#include <memory>

#include "../options.h"
#include "answers.h"
#include "commands.h"
#include "waymark/analysis/file_branches.h"
#include "waymark/analysis/spe_answers.h"
#include "waymark/analysis/spe_tables.h"
#include "waymark/exports/write.h"

namespace waymark::cli {

namespace {

using analysis::BranchSum;
using nlohmann::ordered_json;

struct SpeBranchOptions : AnswerOptions {
    std::string by = "branch", sort = "mispredicts", file;
    std::size_t limit = 20;
};

class BranchReport {
public:
    BranchReport(const SpeBranchOptions& options, Answer& answer, const analysis::Branches& branches)
        : options_(options), answer_(answer), branches_(branches) {}

    /// `usage` if a named file contains no branch.
    ExitStatus print(Output& out) {
        if (options_.format == "bolt" || options_.format == "autofdo") return print_profile(out);
        const auto [table, left_out] = analysis::branch_table(branches_, answer_.program(), options_.by == "pair",
                                                              options_.sort == "samples", options_.limit);
        if (options_.format == "tsv") {
            print_tsv(out, table);
            return decoded;
        }
        if (options_.format == "json") {
            const BranchSum& all = branches_.all();
            out.write(json_text({{"quality", answer_.quality_json()},
                                 {"branches", all.samples},
                                 {"mispredicts", all.mispredicts},
                                 {"not_taken", all.not_taken},
                                 {"not_retired", all.not_retired},
                                 {"branches_in_no_row", branches_.rest().samples},
                                 {"by", options_.by},
                                 {"rows", to_json(table)},
                                 {"rows_left_out", left_out}}) +
                      "\n");
            return decoded;
        }
        answer_.print_quality(out, false);
        const BranchSum& all = branches_.all();
        out.print("branches  {}: {} mispredicted, {} not taken\n\n", grouped(all.samples),
                  analysis::share_with_interval(all.mispredicts, all.samples).shown,
                  analysis::share_with_interval(all.not_taken, all.samples).shown);
        if (all.samples == 0) {
            out.print("No sample is of a branch.\n");
            return decoded;
        }
        print_text(out, table);
        if (left_out != 0) out.print("… and {} more; --limit 0 shows all\n", counted(left_out, "row"));
        out.write(few_samples_note);
        if (branches_.rest().samples != 0)
            out.print("{} more had no room and are in no row.\n",
                      counted(branches_.rest().samples, "branch", "branches"));
        return decoded;
    }

private:
    /// The taken branches of one file, as `waymark export` writes them.
    ExitStatus print_profile(Output& out) {
        const auto file = analysis::file_of_branches(branches_, answer_.program(), options_.file);
        if (!file) return fail(file.error());
        analysis::GatheredSamples gathered({});
        answer_.run(gathered);
        const answers::Answers answers =
            analysis::answers_of_samples(answer_.capture(), answer_.totals(), gathered, nullptr, answer_.program(), {});
        const std::string_view name = options_.format == "bolt" ? "bolt" : "autofdo-text";
        const auto formats = exports::formats();
        const auto format =
            std::find_if(formats.begin(), formats.end(), [&](const auto& each) { return each.name == name; });
        exports::WriteOptions how;
        how.image = analysis::Program::short_name(*file);
        ByteCollector bytes;
        const auto report = exports::write(*format, answers, how, bytes);
        if (!report) return fail(report.error());
        out.write({reinterpret_cast<const char*>(bytes.bytes().data()), bytes.bytes().size()});
        for (const std::string& note : report->notes) say("note", note);
        if (const std::uint64_t not_retired = branches_.all().not_retired; not_retired != 0)
            say("note",
                fmt::format("{} were not retired, but are counted", counted(not_retired, "branch", "branches")));
        return decoded;
    }

    const SpeBranchOptions& options_;
    Answer& answer_;
    const analysis::Branches& branches_;
};

ExitStatus branches(const SpeBranchOptions& options) {
    auto answer = Answer::open(options);
    if (!answer) return fail(answer.error());
    analysis::Branches branches;
    answer->run(branches);
    auto out = Output::open(options.output, {options.capture});
    if (!out) return fail(out.error());
    ExitStatus status = decoded;
    if (answer->quality().selected != 0) status = BranchReport(options, *answer, branches).print(*out);
    const ExitStatus end = answer->finish(options, *out, true);
    return status != decoded ? status : end;
}

}  // namespace

Run add_spe_branches(const Command& spe) {
    auto options = std::make_shared<SpeBranchOptions>();
    const Command command = spe.add("branches");
    options->add_to(command,
                    {"bolt: pre-aggregated profile for perf2bolt --pa", "autofdo: text profile for create_llvm_prof"});
    command.option("--by", options->by);
    command.option("--sort", options->sort);
    command.option("--limit", options->limit);
    command.option("--file", options->file);
    return [options] { return branches(*options); };
}

}  // namespace waymark::cli
