/// Answers with random values in every field, made from the description of their tables, so that no field is forgotten.
#pragma once

#include <algorithm>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "support/random.h"
#include "waymark/answers/schema.h"

namespace waymark::support {

/// Gives every field of a row a value, from few different values, so that rows of several answers coincide.
class AnyRow {
public:
    AnyRow(synthetic::Random& random, const answers::Answers& a) : random_(random), a_(a) {}

    void number(std::string_view, std::integral auto& value, std::string_view) { any(value); }
    void address(std::string_view, std::integral auto& value, std::string_view) {
        using T = std::remove_reference_t<decltype(value)>;
        value = static_cast<T>(0x1000 + 4 * random_.below(6));
    }
    void text(std::string_view name, std::string& value, std::string_view) {
        constexpr const char* words[] = {
            "",   "main",         "lib.so", "a; b",       "(no symbol) in lib.so", "lib.so+0x10?",
            "17", "instructions", "cycles", "caf\xc3\xa9"};
        value = words[random_.below(10)];
        if (name == "build_id") value = random_.half() ? "" : random_.half() ? "17" : "cafe";
    }
    void shared(std::string_view name, SharedText& value, std::string_view what) {
        std::string any_text;
        text(name, any_text, what);
        value = any_text;
    }
    void real(std::string_view, double& value, std::string_view) { value = random_.below(100) / 8.0; }
    void index(std::string_view name, answers::Index& value, answers::IndexedTable place, std::string_view) {
        const std::size_t size[answers::place_count] = {a_.images.size(),    a_.sources.size(),
                                                        a_.functions.size(), a_.inlined.size(),
                                                        a_.calls.size(),     a_.timeline.tracks.size()};
        // A parent is an earlier row; the first row has none, since only the present row exists.
        std::size_t most = size[static_cast<std::size_t>(place)];
        if (name == "parent") most -= 1;
        value = most == 0 || (random_.below(4) == 0 && place != answers::IndexedTable::calls)
                    ? answers::none
                    : random_.below(static_cast<std::uint32_t>(most));
    }
    template <class T>
    void choice(std::string_view, T& value, const auto& words, std::string_view) {
        value = static_cast<T>(random_.below(static_cast<std::uint32_t>(words.size())));
    }
    template <class T>
    void maybe(std::string_view, std::optional<T>& value, std::string_view) {
        value.reset();
        if (random_.half()) any(value.emplace());
    }
    template <class T>
    void list(std::string_view, std::vector<T>& values, std::string_view) {
        // Costs are by metric, or not there.
        const std::size_t size = !std::same_as<T, std::uint64_t> ? random_.below(3)
                                 : random_.half()                ? a_.metrics.size()
                                                                 : 0;
        values.resize(size);
        for (T& value : values)
            if constexpr (std::same_as<T, std::uint64_t>)
                any(value);
            else if constexpr (std::same_as<T, std::string>)
                text({}, value, {});
            else
                answers::schema::fields(*this, value);
    }

private:
    void any(std::integral auto& value) {
        using T = std::remove_reference_t<decltype(value)>;
        value = static_cast<T>(random_.below(5));
        if (random_.below(20) == 0) value = std::numeric_limits<T>::max();
    }
    synthetic::Random& random_;
    const answers::Answers& a_;
};

inline answers::Answers any_answers(std::uint64_t seed, std::uint32_t most_rows = 8) {
    synthetic::Random random(seed);
    answers::Answers a;
    a.capture = "capture " + std::to_string(random.below(3));
    a.unit = "PTM";
    a.version = "0.1." + std::to_string(random.below(3));
    a.trace_bytes = random();
    a.cut = random.below(8) == 0;
    AnyRow any(random, a);
    answers::schema::tables(
        [&](std::string_view name, auto& rows, std::string_view) {
            // There is at least one metric.
            const std::uint32_t least = name == "metrics" ? 1 : 0;
            for (std::uint32_t i = random.below(most_rows) + least; i != 0; --i) {
                rows.emplace_back();
                answers::schema::fields(any, rows.back());
            }
        },
        a);
    // Only its own image gives code without symbols its name.
    for (answers::Image& image : a.images)
        if (image.name.empty() || image.name.find(' ') != std::string::npos) image.name = "lib.so";
    for (answers::Function& f : a.functions) {
        if (f.name.find("lib.so") == std::string::npos) continue;
        f.name = "f";
        if (f.image >= a.images.size() || f.synthetic || random.half()) continue;
        f.linkage_name.clear();
        f.name = random.half() ? a.images[f.image].name + "+0x10?" : "(no symbol) in " + a.images[f.image].name;
    }
    // The same code has as many instructions in each capture.
    for (answers::ImageRange& r : a.ranges) r.instructions = static_cast<std::uint32_t>(1 + (r.first ^ r.last) % 5);
    a.hides_others = random.below(4) == 0;
    answers::schema::fields(any, a.timeline.axis);
    // A hash distinguishes samples with the same name, so no two have the same hash by chance.
    if (random.half()) a.timeline.samples.clear();
    for (answers::TimelineSample& sample : a.timeline.samples) sample.contents = random();
    using answers::Column;
    for (std::uint32_t i = random.below(3); i != 0; --i) {
        answers::Table& table = a.tables.emplace_back();
        table.title = "table " + std::to_string(i);
        table.columns = {Column::text("task"), Column::count("n"), Column::real("share", "share"),
                         Column::flag("f", "f")};
        table.rows = {{"x", std::uint64_t{7}, {"1.5", 1.5}, {"yes", true}},
                      {"y", {"-3", std::int64_t{-3}, answers::Colour::red}, {}, {"-", nullptr}}};
    }
    return a;
}

}  // namespace waymark::support
