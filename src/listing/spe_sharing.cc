#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "print.h"
#include "spe_quality.h"
#include "table_json.h"
#include "waymark/analysis/spe_tables.h"
#include "waymark/core/numbers.h"
#include "waymark/listing/profile.h"

namespace waymark::listing {

namespace {

namespace perf = capture::perf;
using analysis::SharedLine;
using nlohmann::ordered_json;

class SharingReport {
public:
    SharingReport(const SharingLayout& layout, const doctor::ProfileView& view,
                  const analysis::LineCandidates& candidates, const analysis::Sharing& sharing)
        : layout_(layout),
          view_(view),
          candidates_(candidates),
          sharing_(sharing),
          tables_(view.program(), [&view](std::uint32_t pid, std::uint32_t tid) { return view.thread_text(pid, tid); }),
          lines_(sharing.lines()) {
        if (!layout.all)
            std::erase_if(lines_, [](const SharedLine& l) { return l.kind == SharedLine::Kind::true_sharing; });
        const auto by = [&](auto value) {
            std::stable_sort(lines_.begin(), lines_.end(),
                             [&](const SharedLine& a, const SharedLine& b) { return value(a) > value(b); });
        };
        if (layout.sort == "samples") by([](const SharedLine& l) { return l.samples(); });
        if (layout.sort == "cycles") by([](const SharedLine& l) { return l.total; });
        if (layout.sort == "apart") by([](const SharedLine& l) { return l.apart; });
        if (layout.sort == "from-other") by([](const SharedLine& l) { return l.from_other; });
        found_ = lines_.size();
        if (layout.limit != 0 && lines_.size() > layout.limit) lines_.resize(layout.limit);
    }

    std::string print_all(TextSink& out) const {
        const std::string none =
            candidates_.accesses() == 0
                ? std::string("sample of an access has an address and a thread or CPU, so sharing is not known")
                : fmt::format("line of {} bytes is {} among the samples", candidates_.line_bytes(),
                              layout_.all ? "used by several threads and written" : "shared falsely");
        const std::string sentence = lines_.empty() ? "no " + none : std::string();
        if (layout_.format == LineFormat::tsv) print_tsv(out, tables_.accesses(lines_, true));
        if (layout_.format == LineFormat::json) out.write(json_text(json()) + "\n");
        if (layout_.format != LineFormat::text) return sentence;
        print_quality_head(out, view_);
        print(out, "accesses  {} with an address{}{}\n\n", grouped(candidates_.accesses()),
              candidates_.without_address() == 0
                  ? std::string()
                  : fmt::format("; {} without one are left out", grouped(candidates_.without_address())),
              candidates_.without_accessor() == 0
                  ? std::string()
                  : fmt::format("; of {} neither thread nor CPU is known", grouped(candidates_.without_accessor())));
        if (lines_.empty()) {
            print(out, "No {}.\n", none);
            if (!layout_.all && candidates_.accesses() != 0) print(out, "--all also shows true sharing.\n");
            return sentence;
        }
        print_text(out, tables_.summary(lines_));
        if (found_ > lines_.size())
            print(out, "… and {}; --limit 0 shows all\n", counted(found_ - lines_.size(), "more line", "more lines"));
        out.write(few_samples_note);
        print(out,
              "apart: samples of bytes that no other thread writes, while another thread writes other bytes of the "
              "line.\n"
              "Widths of accesses are not recorded: places of different offsets may overlap.\n");
        if (sharing_.left_out() != 0)
            print(out, "{} more had no room and are in no line.\n", counted(sharing_.left_out(), "sample"));
        for (const SharedLine& line : lines_) {
            const std::string variables = tables_.variables_of(line);
            print(out, "\n{}: {} sharing{}{}\n", analysis::line_text(line.key), name(line.kind),
                  variables.empty() ? "" : " of ", variables);
            print_text(out, tables_.places(line), 0, "  ");
        }
        return {};
    }

private:
    [[nodiscard]] ordered_json json() const {
        ordered_json lines = ordered_json::array();
        for (const SharedLine& l : lines_) {
            lines.push_back(
                {{"line", fmt::format("{:#x}", l.key.line)},
                 {"physical", l.key.physical},
                 {"pid", l.key.physical || l.key.pid == perf::nobody ? ordered_json() : ordered_json(l.key.pid)},
                 {"sharing", name(l.kind)},
                 {"samples", l.samples()},
                 {"loads", l.loads},
                 {"stores", l.stores},
                 {"apart", l.apart},
                 {"threads", l.accessors},
                 {"writers", l.writers},
                 {"from_other", l.from_other},
                 {"cycles", l.total},
                 {"accesses", to_json(tables_.accesses({l}, false))}});
        }
        return {{"quality", quality_json(view_)},
                {"line_bytes", candidates_.line_bytes()},
                {"accesses", candidates_.accesses()},
                {"without_address", candidates_.without_address()},
                {"without_accessor", candidates_.without_accessor()},
                {"without_room", sharing_.left_out()},
                {"lines_found", found_},
                {"lines", lines}};
    }

    const SharingLayout& layout_;
    const doctor::ProfileView& view_;
    const analysis::LineCandidates& candidates_;
    const analysis::Sharing& sharing_;
    analysis::SharingTables tables_;
    std::vector<SharedLine> lines_;
    std::size_t found_ = 0;
};

}  // namespace

std::string print_sharing(TextSink& out, const doctor::ProfileView& view, const analysis::LineCandidates& candidates,
                          const analysis::Sharing& sharing, const SharingLayout& layout) {
    return SharingReport(layout, view, candidates, sharing).print_all(out);
}

}  // namespace waymark::listing
