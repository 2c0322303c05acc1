#include "waymark/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "pack.h"
#include "sections.h"
#include "waymark/core/quote.h"

namespace waymark::report {

namespace {

using answers::Answers;

// Placeholders in the page for data; web/vite.config.ts keeps them.
constexpr std::string_view title_place = "<title>Waymark report</title>";
constexpr std::string_view data_place = "<script type=\"text/plain\" id=\"waymark-data\"></script>";

Bytes as_bytes(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

/// A part of the data, and its limit.
struct Part {
    std::string_view id;
    std::function<PageSection(Limit)> make;
    Limit limit;
    std::string packed{}, left_out{};

    void remake() {
        PageSection section = make(limit);
        packed = pack(section.json);
        left_out = std::move(section.left_out);
    }
};

/// The limit with which `part` probably takes `excess` bytes less. It is at least half of the present limit, so that
/// another part can become the largest, unless `part` alone takes more than `room`.
Limit reduced(const Part& part, std::uint64_t excess, std::uint64_t room) {
    const double size = static_cast<double>(part.packed.size());
    const double least = std::min(0.5, static_cast<double>(room) / size);
    const double share = std::clamp((size - static_cast<double>(excess)) / size, least, 0.95);
    return std::max<Limit>(1, static_cast<Limit>(static_cast<double>(part.limit) * share));
}

std::string element(std::string_view id, std::string_view packed) {
    return fmt::format("<script type=\"text/plain\" id=\"waymark-{}\">{}</script>\n", id, packed);
}

}  // namespace

Result<ReportSize> write_report(const Answers& answers, const ReportOptions& options, ByteSink& sink) {
    if (options.page.empty()) return Error{Errc::unsupported, std::string(why_no_page())};
    const std::size_t title = options.page.find(title_place), data = options.page.find(data_place);
    if (title == options.page.npos || data == options.page.npos || data < title)
        return Error{Errc::usage, "the page has no place for its title and data; build web/ again"};
    if (options.page.size() >= options.most_bytes)
        return Error{Errc::usage, fmt::format("a report needs at least {} bytes, but at most {} were requested",
                                              options.page.size(), options.most_bytes)};

    std::vector<Part> parts{
        {"calls", [&](Limit limit) { return calls_section(answers, limit); }, options.most_calls},
        {"code", [&](Limit limit) { return code_section(answers, limit); }, options.most_instructions},
        {"coverage", [&](Limit limit) { return coverage_section(answers, limit, options.code); },
         options.most_instructions},
        {"branches", [&](Limit limit) { return branches_section(answers, limit); }, options.most_instructions},
        {"timeline", [&](Limit limit) { return timeline_section(answers, limit, options.is_window); },
         std::min<Limit>(options.most_slices, whole_timeline(answers.timeline))},
    };
    if (options.steps != nullptr)
        parts.push_back({"steps",
                         [&](Limit limit) { return steps_section(answers, *options.steps, limit, options.is_window); },
                         options.most_steps});
    if (const Against* against = options.against)
        parts.push_back({"against", [&, against](Limit limit) { return against_section(answers, *against, limit); },
                         options.most_rows});
    for (Part& part : parts) part.remake();
    Part head{"head",
              [&](Limit limit) {
                  std::vector<std::string> left_out;
                  for (const Part& part : parts)
                      if (!part.left_out.empty()) left_out.push_back(part.left_out);
                  return head_section(answers, limit, options.against, left_out, options.code, options.steps,
                                      options.served);
              },
              options.most_rows};
    head.remake();

    // The largest part is reduced, by at most half at a time, until all parts fit.
    const std::uint64_t frame = options.page.size() + xml_text(answers.capture).size() + 1000;
    const std::uint64_t room = options.most_bytes > frame ? options.most_bytes - frame : 0;
    const auto used = [&] {
        std::uint64_t sum = head.packed.size();
        for (const Part& part : parts) sum += part.packed.size();
        return sum;
    };
    while (used() > room) {
        Part* largest = head.limit > 1 ? &head : nullptr;
        for (Part& part : parts)
            if (part.limit > 1 && (largest == nullptr || part.packed.size() > largest->packed.size())) largest = &part;
        if (largest == nullptr)
            return Error{Errc::usage,
                         fmt::format("the names of functions alone need more than the {} bytes that were requested",
                                     options.most_bytes)};
        largest->limit = reduced(*largest, used() - room, room);
        largest->remake();
        // The head mentions the other parts only in a few sentences: it is written again when they fit.
        if (largest != &head && used() <= room) head.remake();
    }

    ReportSize size;
    for (const Part& part : parts) size.reductions += part.left_out.empty() ? 0 : 1;
    size.reductions += head.left_out.empty() ? 0 : 1;
    const auto write = [&](std::string_view text) {
        size.bytes += text.size();
        sink.write(as_bytes(text));
    };
    write(options.page.substr(0, title));
    write(fmt::format("<title>{} – Waymark report</title>", xml_text(answers.capture)));
    write(options.page.substr(title + title_place.size(), data - title - title_place.size()));
    write(element(head.id, head.packed));
    for (const Part& part : parts) write(element(part.id, part.packed));
    write(options.page.substr(data + data_place.size()));
    return size;
}

}  // namespace waymark::report
