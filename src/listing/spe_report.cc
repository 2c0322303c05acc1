#include <fmt/format.h>

#include "print.h"
#include "spe_quality.h"
#include "table_json.h"
#include "waymark/analysis/spe_tables.h"
#include "waymark/answers/interval.h"
#include "waymark/core/numbers.h"
#include "waymark/listing/profile.h"

namespace waymark::listing {

namespace {

using analysis::Measures;
using analysis::Profile;
using answers::Cell;
using answers::Table;
using nlohmann::ordered_json;

class ProfileReport {
public:
    ProfileReport(const ProfileLayout& layout, const doctor::ProfileView& view, const Profile& profile)
        : layout_(layout),
          view_(view),
          profile_(profile),
          tables_(profile, view.program(),
                  [&view](std::uint32_t pid, std::uint32_t tid) { return view.thread_text(pid, tid); }),
          all_(profile.all()) {}

    void print_all(TextSink& out) {
        const bool by_source = layout_.by == "source";
        const analysis::FirstRows rows =
            by_source ? tables_.sources(true, layout_.limit) : tables_.rows(layout_.by, layout_.sort, layout_.limit);
        if (layout_.format == LineFormat::tsv) return print_tsv(out, rows.table);
        if (layout_.format == LineFormat::json) return out.write(json_text(json(rows)) + "\n");
        print_quality_head(out, view_);
        out.write("\n");
        print_text(out, rows.table);
        if (!by_source && rows.left_out != 0)
            print(out, "… and {} more; --limit 0 shows all\n", counted(rows.left_out, "row"));
        out.write(few_samples_note);
        print(out, "Latency in cycles, means of samples: total is issue (waiting to begin) and execution.\n");
        if (profile_.rest().samples != 0)
            print(out, "{} at further addresses are counted in no row.\n", counted(profile_.rest().samples, "sample"));
        if (layout_.by != "source") print_sources(out);
        print_events(out);
        print_latency(out);
    }

private:
    void print_sources(TextSink& out) const {
        out.write("\nwhere loads got their data\n");
        const Table table = tables_.sources(false, 0).table;
        if (table.empty()) {
            print(out, "  not known: {}\n", all_.loads == 0 ? "there are no loads" : "no load has a data source");
            return;
        }
        print_text(out, table, 0, "  ");
        out.write("  waymark spe report --by source lists it by function\n");
    }

    void print_events(TextSink& out) const {
        out.write("\nwhat happened to them (a sample may count in several rows)\n");
        const Table table = tables_.event_table();
        if (table.empty())
            out.write("  no sample has such an event\n");
        else
            print_text(out, table, 0, "  ");
        const Measures& m = all_;
        if (m.walks != 0)
            print(out,
                  "  A table walk costs {} cycles of translation, other accesses {}; walks are {} of translation\n",
                  Cell::mean(m.walk_translation, m.walks).shown,
                  m.translated > m.walks ? Cell::mean(m.translation - m.walk_translation, m.translated - m.walks).shown
                                         : "-",
                  Cell::share(m.walk_translation, m.translation).shown);
        if (m.atomics != 0)
            print(out, "  Atomic and ordered accesses take {} cycles, samples in all {}\n",
                  Cell::mean(m.atomic_total, m.atomics).shown, Cell::mean(m.total, m.timed).shown);
        if (m.not_retired == 0)
            out.write(
                "  Every sample was retired: the core or a filter leaves out speculation that was thrown away, or none "
                "was\n");
        if (m.vector != 0) {
            std::string lengths;
            for (const auto& [bits, count] : profile_.vector_lengths())
                lengths += fmt::format("{}{}: {}", lengths.empty() ? "" : ", ",
                                       bits == 0 ? "unknown length" : fmt::format("{} bits", bits), grouped(count));
            print(out, "  Vector operations by length: {}\n", lengths);
        }
    }

    void print_latency(TextSink& out) const {
        out.write("\nhow long they took\n");
        const Table table = tables_.latency_table();
        if (table.empty())
            out.write("  not known: no sample has its total latency\n");
        else
            print_text(out, table, 0, "  ");
        if (profile_.saturated() != 0)
            print(out, "  {} of them took {} cycles or more: their counters stopped there\n",
                  grouped(profile_.saturated()), grouped(all_.longest));
    }

    [[nodiscard]] ordered_json json(const analysis::FirstRows& rows) const {
        ordered_json latency = ordered_json::array(), events = ordered_json::object(), lengths = ordered_json::object();
        for (unsigned b = 0; b < Profile::buckets; ++b) {
            const auto& kinds = profile_.latency();
            if (kinds[0][b] + kinds[1][b] + kinds[2][b] + kinds[3][b] == 0) continue;
            latency.push_back({{"from", b == 0 ? 0U : 1U << (b - 1)},
                               {"to", (1U << b) - 1},
                               {"loads", kinds[0][b]},
                               {"stores", kinds[1][b]},
                               {"branches", kinds[2][b]},
                               {"others", kinds[3][b]}});
        }
        for (const analysis::ProfileTables::Event& row : tables_.events()) {
            const answers::Interval i = answers::wilson_95(all_.*row.member, row.among);
            events[std::string(row.name)] = {{"samples", all_.*row.member},
                                             {"of", row.of},
                                             {"among", row.among},
                                             {"share_low", i.low},
                                             {"share_high", i.high}};
        }
        for (const auto& [bits, count] : profile_.vector_lengths()) lengths[std::to_string(bits)] = count;
        return {{"quality", quality_json(view_)},
                {"by", layout_.by},
                {"rows", to_json(rows.table)},
                {"rows_left_out", rows.left_out},
                {"samples_in_no_row", profile_.rest().samples},
                {"sources", to_json(tables_.sources(false, 0).table)},
                {"events", events},
                {"walk_translation_cycles", all_.walk_translation},
                {"translation_cycles", all_.translation},
                {"retired_always", all_.not_retired == 0},
                {"vector_lengths", lengths},
                {"latency", latency},
                {"saturated", profile_.saturated()}};
    }

    const ProfileLayout& layout_;
    const doctor::ProfileView& view_;
    const Profile& profile_;
    analysis::ProfileTables tables_;
    Measures all_;
};

}  // namespace

void print_profile(TextSink& out, const doctor::ProfileView& view, const Profile& profile,
                   const ProfileLayout& layout) {
    ProfileReport(layout, view, profile).print_all(out);
}

}  // namespace waymark::listing
