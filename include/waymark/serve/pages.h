/// The pages of a capture that a server sends: a report of the part of the run that was read so far, and reports of
/// windows. Meanwhile two threads work: one makes the index, the other makes the report of the beginning of the trace
/// and then the report of the whole trace.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "waymark/analysis/flow_window.h"
#include "waymark/answers/answers.h"
#include "waymark/answers/steps.h"
#include "waymark/core/result.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"
#include "waymark/report/report.h"
#include "waymark/serve/index.h"
#include "waymark/serve/server.h"
#include "waymark/serve/window.h"

namespace waymark::serve {

struct PagesOptions {
    std::string capture, version;
    report::ReportOptions report;
    WindowOptions window;
    IndexOptions index;
    std::filesystem::path index_file;  ///< where the index is kept; empty: at usual_index_file()
    /// Makes the answers for a report of the run, or of its beginning if not `whole`. `open` returns the bytes of
    /// buffers; if it is empty, they are read unchanged. `stop` is called regularly; after it has returned true, any
    /// error is accepted. Called by one thread at a time.
    std::function<Result<answers::Answers>(const pipeline::OpenBuffer& open, bool whole,
                                           const std::function<bool()>& stop, answers::Steps& steps)>
        answers;
    /// Adds data that answers of any kind need to be shown, such as the text of sources. Called by several threads.
    std::function<void(answers::Answers&)> complete;
    /// A window of more instructions is refused.
    std::uint64_t most_instructions = 20'000'000;
    /// Number of bytes of each buffer in the first report; each further report uses eight times as many.
    std::uint64_t first_bytes = std::uint64_t{1} << 17;
};

class Pages final : public Replies {
public:
    /// `session` is borrowed; null: the answers have no flow, and there are no windows.
    Pages(const pipeline::Session* session, std::vector<const pipeline::Source*> selected, PagesOptions options);
    ~Pages() override;
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    /// Begins to read. `say` receives sentences for the user who started the server, from other threads.
    void start(std::function<void(const std::string&)> say);
    /// Ends reading, whether it is done or not.
    void stop() override;

    // These functions are thread-safe.

    /// The report of the run, or of its beginning; waits for the first report.
    [[nodiscard]] Reply report() override;
    /// The report of a window. Refused with a reason: an empty window, one that is too long, one that is not read yet,
    /// or a window of a capture that has changed.
    [[nodiscard]] Reply window(analysis::FlowWindow window);
    /// The same for a range of the timeline's axis in this unit: `instructions`, `cycles`, `ticks` or `ns`.
    [[nodiscard]] Reply window(std::string_view unit, std::uint64_t begin, std::uint64_t end) override;
    /// The progress of reading, as JSON: `complete` if it has ended, and then `failed`, the reason if it did not come
    /// to the end.
    [[nodiscard]] Reply status() override;

    /// The index, for tests; null if there are no windows.
    [[nodiscard]] std::shared_ptr<const Index> index() const;

private:
    struct Seen;
    void make_index();
    /// Reads the index, or makes it. Returns the reason if there is none.
    [[nodiscard]] Status take_index(const std::string& identity, const std::filesystem::path& file);
    [[nodiscard]] bool wait_for_rebuild();
    [[nodiscard]] bool wants_rebuild();
    void make_reports();
    [[nodiscard]] Result<std::shared_ptr<const std::string>> page(answers::Answers& answers,
                                                                  const answers::Steps& steps,
                                                                  std::optional<analysis::FlowWindow> window,
                                                                  bool part) const;
    [[nodiscard]] std::optional<std::string> changed() const;
    [[nodiscard]] Reply not_read(std::uint64_t known, const std::string& when) const;

    const pipeline::Session* session_;
    const std::vector<const pipeline::Source*> selected_;
    PagesOptions options_;
    std::string page_;        // the page without data, allowed to ask its server
    std::string no_windows_;  // why there are none
    std::vector<Seen> seen_;  // the files, when it began
    std::function<void(const std::string&)> say_;
    std::atomic<bool> stop_{false};

    mutable std::mutex mutex_;
    std::condition_variable changed_;  // of what follows
    std::shared_ptr<Index> index_;
    std::shared_ptr<const std::string> report_;
    std::optional<Error> failed_;
    bool whole_ = false;                    // `report_` is of all
    bool read_ = false;                     // reports are made no more
    bool from_file_ = false;                // the index is one that was kept
    bool rebuild_ = false;                  // the index does not fit the trace
    std::string index_failed_;              // why the index will not be complete
    std::vector<answers::Finding> health_;  // of the last report, without what pages of windows find themselves
    std::thread indexing_, reporting_;
};

}  // namespace waymark::serve
