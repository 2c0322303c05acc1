#include "waymark/pft/parallel_decoder.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "decoder_machine.h"

namespace waymark::pft {

namespace {

using Batches = std::vector<std::unique_ptr<flow::BatchWriter::Owned>>;

/// A place where a stream can be cut.
struct Cut {
    std::size_t at{};  ///< behind the I-sync
    CoreState state;   ///< that it gives, but for the VMID
};

/// From an A-sync on, whether packets follow up to an I-sync. `from`: behind the A-sync.
std::optional<Cut> isync_behind(Bytes bytes, std::size_t from, const Config& config) {
    // As far as an I-sync may stay behind its A-sync.
    constexpr std::size_t most_bytes = 4096;
    const std::size_t end = std::min(bytes.size(), from + most_bytes);
    std::optional<Cut> cut;
    while (from < end && bytes[from] != 0 && !cut) {
        const Parsed parsed =
            parse_one(bytes.subspan(from, end - from), config, [&]<class P>(const P& packet, std::size_t size) {
                if constexpr (std::is_same_v<P, ISync>) cut = Cut{from + size, isync_state(packet, {}, config)};
            });
        if (parsed.step != Step::ok) return {};
        from += parsed.bytes;
    }
    return cut;
}

/// The first place to cut whose A-sync lies in [from, end).
std::optional<Cut> find_cut(Bytes bytes, std::size_t from, std::size_t end, const Config& config) {
    static constexpr std::array<std::uint8_t, 6> async{0, 0, 0, 0, 0, 0x80};
    static const std::boyer_moore_horspool_searcher searcher(async.begin(), async.end());
    const auto place = [&](std::size_t i) {
        return bytes.begin() + static_cast<std::ptrdiff_t>(std::min(i, bytes.size()));
    };
    auto at = place(from);
    while ((at = std::search(at, place(end), searcher)) != place(end)) {
        at += async.size();
        if (auto cut = isync_behind(bytes, static_cast<std::size_t>(at - bytes.begin()), config)) return cut;
    }
    return {};
}

/// A decoder and where it writes.
template <class Out>
struct Worker;
template <>
struct Worker<flow::BatchWriter> {
    Worker(const Config& config, const isa::CodeReader& code, flow::BlockTable& table, std::shared_ptr<BlockLogs> logs)
        : out(table), machine(config, code, out, std::move(logs)) {}
    [[nodiscard]] flow::BatchWriter& batches() { return out; }
    static void take_back(bool) {}
    flow::BatchWriter out;
    Machine<flow::BatchWriter> machine;
    std::unique_ptr<flow::Sink> fork;  ///< Split::per_worker
};
template <>
struct Worker<flow::CountWriter> {
    Worker(const Config& config, const isa::CodeReader& code, flow::BlockTable& table, std::shared_ptr<BlockLogs> logs)
        : out(table), machine(config, code, out, std::move(logs)) {}
    [[nodiscard]] flow::BatchWriter& batches() { return out.events(); }
    void take_back(bool on) { out.take_back(on); }
    flow::CountWriter out;
    Machine<flow::CountWriter> machine;
    std::unique_ptr<flow::Sink> fork;
};

}  // namespace

class ParallelDecoder::Core {
public:
    virtual ~Core() = default;
    virtual void feed(Bytes bytes) = 0;
    virtual void reset() = 0;
    virtual void finish() = 0;
    virtual void flush() = 0;
    [[nodiscard]] virtual std::uint64_t packets() const = 0;
    [[nodiscard]] virtual std::array<Offset, 2> pending() const = 0;
    [[nodiscard]] virtual bool amid_packet() const = 0;
    [[nodiscard]] virtual std::vector<std::uint64_t> counts() const = 0;
    [[nodiscard]] virtual std::uint64_t cycles() const = 0;
    [[nodiscard]] virtual std::uint64_t repeated() const = 0;
};

template <class Out>
class ParallelDecoder::CoreTo final : public Core {
public:
    CoreTo(const Config& config, const isa::CodeReader& code, flow::BlockTable& table, flow::Sink& sink,
           const Options& options)
        : config_(config),
          table_(table),
          sink_(sink),
          split_(options.ranges == Ranges::counted ? flow::Split::none : sink.split()),
          piece_bytes_(std::max<std::size_t>(1, options.piece_bytes)) {
        const unsigned workers = std::max(1U, options.workers);
        const auto logs = workers > 1 ? std::make_shared<BlockLogs>() : nullptr;
        for (unsigned i = 0; i < workers; ++i)
            workers_.push_back(std::make_unique<Worker<Out>>(config_, code, table, logs));
        slots_.resize(2 * workers + 2);
        for (unsigned i = 1; i < workers; ++i) threads_.emplace_back([this, i] { stand_by(*workers_[i]); });
    }
    ~CoreTo() override {
        {
            const std::scoped_lock lock(mutex_);
            ending_ = true;
        }
        changed_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

    void feed(Bytes bytes) override {
        if (threads_.empty() || bytes.size() < 2 * piece_bytes_) return feed_home(bytes);
        deliver_home();
        std::unique_lock lock(mutex_);
        bytes_ = bytes;
        first_ = home().machine.offset();
        committed_state_ = home().machine.snapshot();
        vmid_ = Machine<Out>::vmid(committed_state_);
        next_ = 0;
        next_cut_.reset();
        claimed_ = committed_ = joined_ = 0;
        all_claimed_ = false;
        fed_ = true;
        ++active_;
        lock.unlock();
        changed_.notify_all();
        work(*workers_.front());
        lock.lock();
        --active_;
        fed_ = false;
        // Nobody may still look at what belongs to this call.
        changed_.wait(lock, [&] { return active_ == 0; });
        home().machine.resume(committed_state_);
    }
    void reset() override {
        home().machine.reset();
        deliver_home();
    }
    void finish() override {
        home().machine.finish();
        deliver_home();
        for (const auto& worker : workers_)
            if (worker->fork) sink_.join(*std::exchange(worker->fork, nullptr));
    }
    void flush() override { deliver_home(); }
    [[nodiscard]] std::uint64_t packets() const override { return packets_; }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return workers_.front()->machine.pending(); }
    [[nodiscard]] bool amid_packet() const override { return workers_.front()->machine.amid_packet(); }
    [[nodiscard]] std::vector<std::uint64_t> counts() const override {
        std::vector<std::uint64_t> sum;
        if constexpr (std::is_same_v<Out, flow::CountWriter>)
            for (const auto& worker : workers_) {
                const auto counts = worker->out.counts();
                if (sum.size() < counts.size()) sum.resize(counts.size());
                for (std::size_t i = 0; i < counts.size(); ++i) sum[i] += counts[i];
            }
        return sum;
    }
    [[nodiscard]] std::uint64_t cycles() const override {
        std::uint64_t sum = 0;
        if constexpr (std::is_same_v<Out, flow::CountWriter>)
            for (const auto& worker : workers_) sum += worker->out.cycles();
        return sum;
    }
    [[nodiscard]] std::uint64_t repeated() const override { return repeated_; }

private:
    enum class Stage : std::uint8_t { decoding, decoded, committed, consuming, consumed };
    /// A piece on its way.
    struct Slot {
        Stage stage{};
        std::size_t from{}, to{};
        CoreState assumed;  ///< at its beginning; of the first piece all is known
        bool assumes{};     ///< it is not the first piece
        bool put_off{};     ///< nothing is known of its beginning until the piece before has ended
        bool in_order{};    ///< the sink itself must take it: no fork knows what came before
        Batches batches;
        typename Machine<Out>::Snapshot end;
        std::uint64_t packets{};
        bool begun_inside{};  ///< no timestamp in it is complete without the one before it
        std::vector<TimestampValue> early;
        std::unique_ptr<flow::Sink> fork;
    };

    static constexpr std::size_t most_pieces = 4, spare_batches = 64;
    Worker<Out>& home() { return *workers_.front(); }
    [[nodiscard]] Slot& slot(std::uint64_t piece) { return slots_[piece % slots_.size()]; }
    [[nodiscard]] bool all_joined() const { return all_claimed_ && joined_ == claimed_; }

    void deliver(const Batches& batches, flow::Sink& sink) const {
        for (const auto& batch : batches) sink.consume(batch->batch(table_.blocks()));
    }
    /// Without other threads' help.
    void feed_home(Bytes bytes) {
        const std::uint64_t before = home().machine.packets();
        while (!bytes.empty()) {
            const Bytes now = bytes.first(std::min(bytes.size(), piece_bytes_));
            home().machine.feed(now);
            deliver_home();
            bytes = bytes.subspan(now.size());
        }
        packets_ += home().machine.packets() - before;
    }
    /// What the caller's own decoder has written outside pieces.
    void deliver_home() {
        Batches batches = home().batches().take();
        deliver(batches, sink_);
        home().batches().recycle(std::move(batches));
    }

    /// For whichever worker decodes next. Frees surplus batches.
    void give_back(Batches batches) {
        for (auto& batch : batches)
            if (spare_.size() < spare_batches * workers_.size()) spare_.push_back(std::move(batch));
    }
    Batches take_spare() {
        Batches some;
        while (!spare_.empty() && some.size() < spare_batches) {
            some.push_back(std::move(spare_.back()));
            spare_.pop_back();
        }
        return some;
    }

    void stand_by(Worker<Out>& worker) {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return ending_ || (fed_ && !all_joined()); });
            if (ending_) return;
            ++active_;
            lock.unlock();
            work(worker);
            lock.lock();
            --active_;
            changed_.notify_all();
        }
    }

    /// Whatever can be done now, until all pieces of the chunk are delivered.
    void work(Worker<Out>& worker) {
        std::unique_lock lock(mutex_);
        while (!all_joined()) {
            if (!committing_ && committed_ < claimed_ && slot(committed_).stage == Stage::decoded) {
                commit(worker, lock);
            } else if (!joining_ && joined_ < committed_ && can_join(slot(joined_))) {
                join(lock);
            } else if (Slot* ready = find_ready()) {
                consume(worker, *ready, lock);
            } else if (!claiming_ && !all_claimed_ && claimed_ < joined_ + slots_.size()) {
                decode(worker, lock);
            } else {
                changed_.wait(lock);
                continue;
            }
            changed_.notify_all();
        }
    }

    /// Takes the next piece and decodes it.
    void decode(Worker<Out>& worker, std::unique_lock<std::mutex>& lock) {
        claiming_ = true;
        Slot& s = slot(claimed_);
        s.from = next_;
        s.assumes = next_cut_.has_value();
        s.put_off = s.from != 0 && !s.assumes;
        if (s.assumes) s.assumed = next_cut_->state;
        lock.unlock();
        // Where no place to cut is found, a piece ends all the same: memory is bounded.
        const std::size_t most = std::min(bytes_.size(), s.from + most_pieces * piece_bytes_);
        std::optional<Cut> end = find_cut(bytes_, s.from + piece_bytes_, most, config_);
        lock.lock();
        s.stage = s.put_off ? Stage::decoded : Stage::decoding;
        s.assumed.vmid = vmid_;
        s.to = end ? end->at : most;
        next_ = s.to;
        next_cut_ = std::move(end);
        all_claimed_ = next_ == bytes_.size();
        ++claimed_;
        claiming_ = false;
        if (s.put_off) return;
        worker.batches().recycle(take_spare());
        lock.unlock();
        changed_.notify_all();

        if (s.assumes)
            worker.machine.begin_behind_isync(first_ + s.from, s.assumed);
        else
            worker.machine.resume(committed_state_);
        run(worker, s);
        lock.lock();
        give_back(worker.batches().take_spare());
        s.stage = Stage::decoded;
    }

    /// The bytes of a piece, from the state its machine is in.
    void run(Worker<Out>& worker, Slot& s) const {
        const std::uint64_t before = worker.machine.packets();
        worker.machine.feed(bytes_.subspan(s.from, s.to - s.from));
        s.packets = worker.machine.packets() - before;
        s.batches = worker.batches().take();
        s.end = worker.machine.snapshot();
        s.begun_inside = worker.machine.elements().begun_inside();
        s.early = worker.machine.elements().early();
    }

    /// The end of the piece before is known: so is the beginning of this one.
    void commit(Worker<Out>& worker, std::unique_lock<std::mutex>& lock) {
        committing_ = true;
        Slot& s = slot(committed_);
        lock.unlock();
        s.in_order = !s.assumes;
        if (s.put_off || (s.assumes && !Machine<Out>::is_behind_isync(committed_state_, first_ + s.from, s.assumed)))
            again(worker, s);
        else
            complete_timestamps(s);
        lock.lock();
        committed_state_ = s.end;
        vmid_ = Machine<Out>::vmid(s.end);
        packets_ += s.packets;
        s.stage = Stage::committed;
        ++committed_;
        if (split_ == flow::Split::per_chunk && !s.in_order) {
            s.fork = sink_.fork();
            s.fork->begin_at(s.assumed.context());
        }
        committing_ = false;
    }

    /// The piece was put off, or did not begin as was assumed.
    void again(Worker<Out>& worker, Slot& s) {
        if constexpr (std::is_same_v<Out, flow::CountWriter>)
            if (s.assumes) {
                worker.take_back(true);
                worker.machine.begin_behind_isync(first_ + s.from, s.assumed);
                worker.machine.feed(bytes_.subspan(s.from, s.to - s.from));
                worker.batches().recycle(worker.batches().take());
                worker.take_back(false);
            }
        worker.batches().recycle(std::move(s.batches));
        worker.machine.resume(committed_state_);
        run(worker, s);
        s.in_order = true;
        ++repeated_;
    }

    /// Timestamps told before the first complete one of the piece.
    void complete_timestamps(Slot& s) const {
        if (!s.assumes) return;
        TimestampState now = committed_state_.elements.timestamps;
        auto sent = s.early.begin();
        for (const auto& batch : s.batches) {
            for (flow::Event& event : batch->events) {
                if (sent == s.early.end()) break;
                auto* told = std::get_if<flow::Timestamp>(&event.what);
                if (told == nullptr) continue;
                now.update(*sent++, config_);
                told->value = now.value(config_);
                told->known = now.known();
            }
        }
        if (s.begun_inside) s.end.elements.timestamps = now;
    }

    [[nodiscard]] bool can_join(const Slot& s) const {
        return s.stage == Stage::consumed ||
               (s.stage == Stage::committed && (split_ == flow::Split::none || s.in_order));
    }

    /// A piece that a fork can take, beside others.
    [[nodiscard]] Slot* find_ready() {
        if (split_ == flow::Split::none) return nullptr;
        for (std::uint64_t piece = joined_; piece < committed_; ++piece)
            if (Slot& s = slot(piece); s.stage == Stage::committed && !s.in_order) return &s;
        return nullptr;
    }
    void consume(Worker<Out>& worker, Slot& s, std::unique_lock<std::mutex>& lock) {
        s.stage = Stage::consuming;
        if (split_ == flow::Split::per_worker && !worker.fork) worker.fork = sink_.fork();
        flow::Sink& fork = split_ == flow::Split::per_worker ? *worker.fork : *s.fork;
        lock.unlock();
        deliver(s.batches, fork);
        lock.lock();
        s.stage = Stage::consumed;
    }

    /// The next piece in order goes to the sink.
    void join(std::unique_lock<std::mutex>& lock) {
        joining_ = true;
        Slot& s = slot(joined_);
        const bool consumed = s.stage == Stage::consumed;
        lock.unlock();
        if (!consumed)
            deliver(s.batches, sink_);
        else if (s.fork)
            sink_.join(*std::exchange(s.fork, nullptr));
        lock.lock();
        give_back(std::exchange(s.batches, {}));
        ++joined_;
        joining_ = false;
    }

    const Config config_;
    flow::BlockTable& table_;
    flow::Sink& sink_;
    const flow::Split split_;
    const std::size_t piece_bytes_;
    std::vector<std::unique_ptr<Worker<Out>>> workers_;  // the first is the caller's
    std::vector<std::thread> threads_;

    // Guards all below, but what belongs to a piece while one thread has it in hand.
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ending_ = false, fed_ = false;
    unsigned active_ = 0;          // threads that work
    Bytes bytes_;                  // of the chunk
    Offset first_{};               // its place in the stream
    std::size_t next_ = 0;         // where the next piece begins
    std::optional<Cut> next_cut_;  // if that is a place to cut
    bool all_claimed_ = false;
    bool claiming_ = false, committing_ = false, joining_ = false;
    std::uint64_t claimed_ = 0, committed_ = 0, joined_ = 0;  // pieces so far
    std::vector<Slot> slots_;
    Batches spare_;
    typename Machine<Out>::Snapshot committed_state_;
    std::optional<std::uint32_t> vmid_;
    std::uint64_t packets_ = 0, repeated_ = 0;
};

ParallelDecoder::ParallelDecoder(const Config& config, const isa::CodeReader& code, flow::BlockTable& table,
                                 flow::Sink& sink, const Options& options) {
    if (options.ranges == Ranges::counted)
        core_ = std::make_unique<CoreTo<flow::CountWriter>>(config, code, table, sink, options);
    else
        core_ = std::make_unique<CoreTo<flow::BatchWriter>>(config, code, table, sink, options);
}
ParallelDecoder::~ParallelDecoder() = default;
void ParallelDecoder::feed(Bytes bytes) { core_->feed(bytes); }
void ParallelDecoder::reset() { core_->reset(); }
void ParallelDecoder::finish() { core_->finish(); }
void ParallelDecoder::flush() { core_->flush(); }
std::uint64_t ParallelDecoder::packets() const { return core_->packets(); }
std::array<Offset, 2> ParallelDecoder::pending() const { return core_->pending(); }
bool ParallelDecoder::amid_packet() const { return core_->amid_packet(); }
std::vector<std::uint64_t> ParallelDecoder::counts() const { return core_->counts(); }
std::uint64_t ParallelDecoder::cycles() const { return core_->cycles(); }
std::uint64_t ParallelDecoder::repeated() const { return core_->repeated(); }

}  // namespace waymark::pft
