#include "waymark/pipeline/continuations.h"

#include <fmt/format.h>

#include <algorithm>

#include "waymark/core/numbers.h"
#include "waymark/pipeline/problems.h"

namespace waymark::pipeline {

namespace {

/// `ETE_1` for `ETE_1_2`; empty if the name does not end in a number of 2 or more.
std::string before_number(const std::string& name) {
    const std::size_t at = name.rfind('_');
    const bool number = at != name.npos && at + 1 < name.size() &&
                        name.find_first_not_of("0123456789", at + 1) == name.npos && name[at + 1] != '0' &&
                        name.substr(at + 1) != "1";
    return number ? name.substr(0, at) : std::string();
}

}  // namespace

Continuations::Continuations(const Session& session, const std::vector<const Source*>& selected, const Report& report) {
    if (!session.capture.description.starts_with("recorded under QEMU")) return;
    std::set<std::string> names;
    for (const Source* s : selected) names.insert(s->name);
    for (const Source* s : selected) {
        const std::string before = s->continues.empty() ? before_number(s->name) : s->continues;
        if (!names.contains(before)) continue;
        sources_.insert(s->name);
        // Sources are in the order in which they traced.
        if (!sources_.contains(before)) firsts_.insert(before);
    }
    for (const BufferReport& b : report.buffers) {
        const std::vector<IdBytes> ids = b.framed ? ids_in(b, session) : std::vector<IdBytes>();
        const bool all = std::all_of(ids.begin(), ids.end(), [&](const IdBytes& of) {
            return of.source != nullptr && sources_.contains(of.source->name);
        });
        if (before_number(b.name).empty() || ids.empty() || !all) continue;
        buffers_.insert(b.name);
        bytes_ += b.bytes;
    }
}

std::string Continuations::text() const {
    if (sources_.empty()) return {};
    return fmt::format(
        "where code changed or trace IDs were used up, {} ({}) with {} continue {}; --format json lists each",
        counted(buffers_.size(), "more buffer"), counted(bytes_, "byte"), counted(sources_.size(), "source"),
        firsts_.size() == 1 ? *firsts_.begin() : counted(firsts_.size(), "source"));
}

}  // namespace waymark::pipeline
