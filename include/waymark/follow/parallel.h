/// Decodes one stream on several threads: pieces between places where it can be cut are decoded concurrently, each by a
/// separate decoder, and delivered in order. The protocol (ParallelProtocol) determines where a stream can be cut, and
/// which parts of a piece can only be completed when the previous piece has ended.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "waymark/core/stream_reader.h"
#include "waymark/flow/blocks.h"
#include "waymark/follow/block_cache.h"

namespace waymark::follow {

/// How the sink receives ranges.
enum class Ranges : std::uint8_t {
    delivered,  ///< each, in batches
    counted     ///< none: `counts` has the execution count of each edge
};
struct ParallelOptions {
    unsigned workers = 1;  ///< number of threads that decode, including the caller's
    Ranges ranges = Ranges::delivered;
    /// Approximate size of a piece; 0: the usual one. With ranges, some 3 for each byte, several pieces should stay in
    /// the cache of a core until they are delivered. Counts take no room, and larger pieces take less time between
    /// them.
    std::size_t piece_bytes = 0;
    [[nodiscard]] constexpr std::size_t bytes_of_piece() const {
        if (piece_bytes != 0) return piece_bytes;
        return std::size_t{1} << (ranges == Ranges::counted ? 14 : 13);
    }
    bool ways = false;  ///< Ranges::counted: also count the targets of indirect branches
};

/// A stream that is decoded on several threads.
class Parallel : public StreamDecoder {
public:
    /// Delivers all elements of the bytes fed so far.
    virtual void flush() = 0;
    /// Ranges::counted: the execution count of each edge so far.
    [[nodiscard]] virtual std::vector<std::uint64_t> counts() const = 0;
    /// Ranges::counted: the sum of the cycles that came with ranges.
    [[nodiscard]] virtual std::uint64_t cycles() const = 0;
    /// ParallelOptions::ways: targets of indirect branches so far, and the number of ways for which there was no room.
    struct Ways {
        std::vector<flow::EdgeWay> ways{};
        std::uint64_t left_out{};
    };
    [[nodiscard]] virtual Ways ways() const = 0;
    /// Number of pieces decoded again, because a cut was wrong, or the state there differed.
    [[nodiscard]] virtual std::uint64_t repeated() const = 0;
};

using Batches = std::vector<std::unique_ptr<flow::BatchWriter::Owned>>;

/// The requirements on a protocol:
///
///     Config                                   the programming of its unit
///     Cut { at; state }                        a place to cut: an index into the bytes, and the Cut::State there
///     find_cut(bytes, from, end, config)       the first cut whose synchronisation point begins in [from, end)
///     Decoder<Out>(config, code, out, logs)    a decoder with feed, reset, finish, packets, pending, amid_packet,
///                                              offset, and the members below
///         Snapshot, snapshot(), resume(snapshot)   all state on which the meaning of later bytes depends
///         begin_at(offset, state)              begins at a cut, where nothing else is known
///         continues(snapshot, offset, state)   whether a decoder that has read everything before the cut would
///                                              continue like one that begins there
///         Carried, carried(snapshot)           rarely changing state that a cut does not give;
///                                              `state.carry(carried)` assumes it
///         Late, late()                         the delivered elements since begin_at that are not complete
///         late_contradicts(config, before, late)   whether a decoder that has read everything before the cut would
///                                              have reported a contradiction
///         complete_late(config, before, late, batches, end)
///                                              completes them in `batches` and in the snapshot `end`, from the
///                                              snapshot at the end of the previous piece
///
/// The state of a cut has context(), the context there.
template <class P>
concept ParallelProtocol = requires(const typename P::Config& config, Bytes bytes, std::size_t at,
                                    const typename P::Cut::State& state) {
    { P::find_cut(bytes, at, at, config) } -> std::same_as<std::optional<typename P::Cut>>;
    { state.context() } -> std::convertible_to<flow::Context>;
};

/// A decoder and where it writes.
template <class Protocol, class Out>
struct ParallelWorker {
    ParallelWorker(const typename Protocol::Config& config, const isa::CodeReader& code, flow::BlockTable& table,
                   std::shared_ptr<BlockLogs> logs)
        : out(table), decoder(config, code, out, std::move(logs)) {}
    static constexpr bool counts = std::is_same_v<Out, flow::CountWriter>;
    [[nodiscard]] flow::BatchWriter& batches() {
        if constexpr (counts)
            return out.events();
        else
            return out;
    }
    Out out;
    typename Protocol::template Decoder<Out> decoder;
    std::unique_ptr<flow::Sink> fork;  ///< Split::per_worker
    Batches spare;  ///< written last, mostly still in its core's cache; guarded by ParallelTo::mutex_
};

template <class Protocol, class Out>
class ParallelTo final : public Parallel {
    using Config = typename Protocol::Config;
    using Cut = typename Protocol::Cut;
    using Decoder = typename Protocol::template Decoder<Out>;
    using Snapshot = typename Decoder::Snapshot;
    using Worker = ParallelWorker<Protocol, Out>;

public:
    ParallelTo(const Config& config, const isa::CodeReader& code, flow::BlockTable& table, flow::Sink& sink,
               const ParallelOptions& options)
        : config_(config),
          table_(table),
          sink_(sink),
          split_(options.ranges == Ranges::counted ? flow::Split::none : sink.split()),
          piece_bytes_(options.bytes_of_piece()) {
        const unsigned workers = std::max(1U, options.workers);
        const auto logs = workers > 1 ? std::make_shared<BlockLogs>() : nullptr;
        for (unsigned i = 0; i < workers; ++i) workers_.push_back(std::make_unique<Worker>(config_, code, table, logs));
        if constexpr (Worker::counts)
            if (options.ways)
                for (const auto& worker : workers_) worker->out.count_ways();
        slots_.resize((split_ == flow::Split::when_behind ? 4 : 2) * workers + 2);
        for (unsigned i = 1; i < workers; ++i) threads_.emplace_back([this, i] { stand_by(*workers_[i]); });
    }
    ~ParallelTo() override {
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
        first_ = home().decoder.offset();
        committed_state_ = home().decoder.snapshot();
        if constexpr (Worker::counts) committed_way_ = home().out.way_state();
        carried_ = Decoder::carried(committed_state_);
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
        // No thread may still use the data of this call.
        changed_.wait(lock, [&] { return active_ == 0; });
        resume(home());
    }
    void reset(GapReason why) override {
        home().decoder.reset(why);
        deliver_home();
    }
    void finish() override {
        home().decoder.finish();
        deliver_home();
        for (const auto& worker : workers_)
            if (worker->fork) sink_.join(*std::exchange(worker->fork, nullptr));
    }
    void flush() override { deliver_home(); }
    [[nodiscard]] std::uint64_t packets() const override { return packets_; }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return workers_.front()->decoder.pending(); }
    [[nodiscard]] bool amid_packet() const override { return workers_.front()->decoder.amid_packet(); }
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
    [[nodiscard]] Ways ways() const override {
        Ways out;
        if constexpr (Worker::counts) {
            std::unordered_map<std::uint64_t, std::uint64_t> sums;
            for (const auto& worker : workers_) {
                for (const flow::EdgeWay& w : worker->out.ways().all())
                    sums[std::uint64_t{w.edge} << 32 | w.block] += w.times;
                out.left_out += worker->out.ways().left_out();
            }
            for (const auto& [key, times] : sums)
                if (times != 0)
                    out.ways.push_back({static_cast<std::uint32_t>(key >> 32), static_cast<std::uint32_t>(key), times});
        }
        return out;
    }
    [[nodiscard]] std::uint64_t repeated() const override { return repeated_; }

private:
    enum class Stage : std::uint8_t { decoding, decoded, committed, consuming, consumed };
    /// A piece that is being decoded or waits for delivery.
    struct Slot {
        Stage stage{};
        std::size_t from{}, to{};
        typename Cut::State assumed;  ///< assumed state at its beginning; for the first piece it is known
        bool assumes{};               ///< false for the first piece
        bool put_off{};               ///< its beginning is unknown until the previous piece has ended
        bool in_order{};              ///< only the sink itself can take it: a fork lacks earlier elements
        Worker* wrote{};              ///< wrote `batches`
        Batches batches;
        Snapshot end;
        flow::CountWriter::WayState way_end{};
        std::uint64_t packets{};
        typename Decoder::Late late;  ///< the parts that depend on the end of the previous piece
        std::unique_ptr<flow::Sink> fork;
    };

    static constexpr std::size_t most_pieces = 16, spare_batches = 64;
    /// Number of pieces that the sink takes while a fork of Split::when_behind takes one.
    static constexpr std::uint64_t fork_takes = 3;
    Worker& home() { return *workers_.front(); }
    [[nodiscard]] Slot& slot(std::uint64_t piece) { return slots_[piece % slots_.size()]; }
    [[nodiscard]] bool all_joined() const { return all_claimed_ && joined_ == claimed_; }

    /// Continues where the last committed piece ended.
    void resume(Worker& worker) const {
        worker.decoder.resume(committed_state_);
        if constexpr (Worker::counts) worker.out.resume(committed_way_);
    }
    void begin_at(Worker& worker, const Slot& s) const {
        worker.decoder.begin_at(first_ + s.from, s.assumed);
        if constexpr (Worker::counts) worker.out.begin(s.assumed.context());
    }

    void deliver(const Batches& batches, flow::Sink& sink) const {
        for (const auto& batch : batches) sink.consume(batch->batch(table_.blocks()));
    }
    /// Decodes without the help of other threads.
    void feed_home(Bytes bytes) {
        const std::uint64_t before = home().decoder.packets();
        while (!bytes.empty()) {
            const Bytes now = bytes.first(std::min(bytes.size(), piece_bytes_));
            home().decoder.feed(now);
            deliver_home();
            bytes = bytes.subspan(now.size());
        }
        packets_ += home().decoder.packets() - before;
    }
    /// Delivers what the caller's own decoder has written outside of pieces.
    void deliver_home() {
        Batches batches = home().batches().take();
        deliver(batches, sink_);
        home().batches().recycle(std::move(batches));
    }

    /// Returns batches to the worker that wrote them. Frees surplus batches.
    static void give_back(Worker& worker, Batches batches) {
        for (auto& batch : batches)
            if (worker.spare.size() < spare_batches) worker.spare.push_back(std::move(batch));
    }

    void stand_by(Worker& worker) {
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

    /// Works until all pieces of the chunk are delivered. A worker preferably delivers its own output, which is in its
    /// core's cache. But a sink with costly forks continues as soon as it can, and its forks wait until no piece can be
    /// decoded.
    void work(Worker& worker) {
        const bool forks_wait = split_ == flow::Split::when_behind;
        std::unique_lock lock(mutex_);
        while (!all_joined()) {
            if (!committing_ && committed_ < claimed_ && slot(committed_).stage == Stage::decoded) {
                commit(worker, lock);
            } else if (can_join(forks_wait ? nullptr : &worker)) {
                join(lock);
            } else if (Slot* own = forks_wait ? nullptr : find_ready(&worker)) {
                consume(worker, *own, lock);
            } else if (!claiming_ && !all_claimed_ && claimed_ < joined_ + slots_.size()) {
                decode(worker, lock);
            } else if (can_join(nullptr)) {
                join(lock);
            } else if (Slot* ready = find_ready(nullptr)) {
                consume(worker, *ready, lock);
            } else {
                changed_.wait(lock);
                continue;
            }
            changed_.notify_all();
        }
    }

    /// Takes the next piece and decodes it.
    void decode(Worker& worker, std::unique_lock<std::mutex>& lock) {
        claiming_ = true;
        Slot& s = slot(claimed_);
        s.from = next_;
        s.assumes = next_cut_.has_value();
        s.put_off = s.from != 0 && !s.assumes;
        if (s.assumes) s.assumed = next_cut_->state;
        lock.unlock();
        // A piece also ends if no cut is found, to bound memory.
        const std::size_t most = std::min(bytes_.size(), s.from + most_pieces * piece_bytes_);
        std::optional<Cut> end = Protocol::find_cut(bytes_, s.from + piece_bytes_, most, config_);
        lock.lock();
        s.stage = s.put_off ? Stage::decoded : Stage::decoding;
        s.assumed.carry(carried_);
        s.to = end ? end->at : most;
        next_ = s.to;
        next_cut_ = std::move(end);
        all_claimed_ = next_ == bytes_.size();
        ++claimed_;
        claiming_ = false;
        if (s.put_off) return;
        worker.batches().recycle(std::exchange(worker.spare, {}));
        lock.unlock();
        changed_.notify_all();

        if (s.assumes)
            begin_at(worker, s);
        else
            resume(worker);
        run(worker, s);
        lock.lock();
        give_back(worker, worker.batches().take_spare());
        s.stage = Stage::decoded;
    }

    /// Decodes the bytes of a piece, from its decoder's state on.
    void run(Worker& worker, Slot& s) const {
        const std::uint64_t before = worker.decoder.packets();
        worker.decoder.feed(bytes_.subspan(s.from, s.to - s.from));
        s.packets = worker.decoder.packets() - before;
        s.batches = worker.batches().take();
        s.wrote = &worker;
        s.end = worker.decoder.snapshot();
        if constexpr (Worker::counts) s.way_end = worker.out.way_state();
        s.late = worker.decoder.late();
    }

    /// Commits the next piece: the end of the previous piece is known, and so is the beginning of this one.
    void commit(Worker& worker, std::unique_lock<std::mutex>& lock) {
        committing_ = true;
        Slot& s = slot(committed_);
        lock.unlock();
        s.in_order = !s.assumes;
        if (s.put_off || (s.assumes && (!Decoder::continues(committed_state_, first_ + s.from, s.assumed) ||
                                        Decoder::late_contradicts(config_, committed_state_, s.late))))
            again(worker, s);
        else if (s.assumes)
            continue_with(worker, s);
        lock.lock();
        committed_state_ = s.end;
        committed_way_ = s.way_end;
        carried_ = Decoder::carried(s.end);
        packets_ += s.packets;
        s.stage = Stage::committed;
        ++committed_;
        committing_ = false;
    }

    /// The piece began in the assumed state.
    void continue_with(Worker& worker, Slot& s) const {
        Decoder::complete_late(config_, committed_state_, s.late, s.batches, s.end);
        if constexpr (Worker::counts) s.way_end = worker.out.then(committed_way_, s.way_end);
    }

    /// The piece was put off, or did not begin in the assumed state.
    void again(Worker& worker, Slot& s) {
        if constexpr (std::is_same_v<Out, flow::CountWriter>)
            if (s.assumes) {
                worker.out.take_back(true);
                begin_at(worker, s);
                worker.decoder.feed(bytes_.subspan(s.from, s.to - s.from));
                worker.batches().recycle(worker.batches().take());
                worker.out.take_back(false);
            }
        worker.batches().recycle(std::move(s.batches));
        resume(worker);
        run(worker, s);
        s.in_order = true;
        ++repeated_;
    }

    /// Whether the next piece in order can go to the sink. If `by` is given, a piece that the sink must read has to be
    /// written by it.
    [[nodiscard]] bool can_join(const Worker* by) {
        if (joining_ || joined_ == committed_) return false;
        const Slot& s = slot(joined_);
        if (s.stage == Stage::consumed) return true;
        return s.stage == Stage::committed &&
               (split_ == flow::Split::none || split_ == flow::Split::when_behind || s.in_order) &&
               (by == nullptr || s.wrote == by);
    }

    /// A piece that a fork can take, concurrently with others; if `by` is given, only one that `by` wrote.
    [[nodiscard]] Slot* find_ready(const Worker* by) {
        if (split_ == flow::Split::none) return nullptr;
        const auto ready = [&](std::uint64_t piece) {
            const Slot& s = slot(piece);
            return s.stage == Stage::committed && !s.in_order && (by == nullptr || s.wrote == by);
        };
        if (split_ == flow::Split::when_behind) {
            // There will be a piece to decode when another thread has found its beginning.
            if (claiming_) return nullptr;
            // The last one first, since the sink reaches it last; it would reach the first ones before a fork is done.
            for (std::uint64_t piece = committed_; piece-- > joined_ + fork_takes;)
                if (ready(piece)) return &slot(piece);
            return nullptr;
        }
        for (std::uint64_t piece = joined_; piece < committed_; ++piece)
            if (ready(piece)) return &slot(piece);
        return nullptr;
    }
    void consume(Worker& worker, Slot& s, std::unique_lock<std::mutex>& lock) {
        s.stage = Stage::consuming;
        std::unique_ptr<flow::Sink>& fork = split_ == flow::Split::per_worker ? worker.fork : s.fork;
        if (!fork) {
            fork = sink_.fork();
            if (split_ != flow::Split::per_worker) fork->begin_at(s.assumed.context());
        }
        lock.unlock();
        deliver(s.batches, *fork);
        lock.lock();
        s.stage = Stage::consumed;
    }

    /// Passes the next piece in order to the sink.
    void join(std::unique_lock<std::mutex>& lock) {
        joining_ = true;
        Slot& s = slot(joined_);
        const bool consumed = std::exchange(s.stage, Stage::consuming) == Stage::consumed;
        lock.unlock();
        if (!consumed)
            deliver(s.batches, sink_);
        else if (s.fork)
            sink_.join(*std::exchange(s.fork, nullptr));
        lock.lock();
        give_back(*s.wrote, std::exchange(s.batches, {}));
        ++joined_;
        joining_ = false;
    }

    const Config config_;
    flow::BlockTable& table_;
    flow::Sink& sink_;
    const flow::Split split_;
    const std::size_t piece_bytes_;
    std::vector<std::unique_ptr<Worker>> workers_;  // the first is the caller's
    std::vector<std::thread> threads_;

    // Protects all members below, except a piece while one thread works on it.
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ending_ = false, fed_ = false;
    unsigned active_ = 0;          // threads that work
    Bytes bytes_;                  // the chunk
    Offset first_{};               // offset of the chunk in the stream
    std::size_t next_ = 0;         // beginning of the next piece
    std::optional<Cut> next_cut_;  // set if the next piece begins at a cut
    bool all_claimed_ = false;
    bool claiming_ = false, committing_ = false, joining_ = false;
    std::uint64_t claimed_ = 0, committed_ = 0, joined_ = 0;  // pieces so far
    std::vector<Slot> slots_;
    Snapshot committed_state_;
    flow::CountWriter::WayState committed_way_{};
    typename Decoder::Carried carried_{};
    std::uint64_t packets_ = 0, repeated_ = 0;
};

/// Everything is borrowed and must outlive the decoder. `code` must be safe to call from several threads. `sink` is
/// called by one thread at a time, not always the same; if it splits, several threads call its forks.
template <ParallelProtocol Protocol>
[[nodiscard]] std::unique_ptr<Parallel> make_parallel(const typename Protocol::Config& config,
                                                      const isa::CodeReader& code, flow::BlockTable& table,
                                                      flow::Sink& sink, const ParallelOptions& options) {
    if (options.ranges == Ranges::counted)
        return std::make_unique<ParallelTo<Protocol, flow::CountWriter>>(config, code, table, sink, options);
    return std::make_unique<ParallelTo<Protocol, flow::BatchWriter>>(config, code, table, sink, options);
}

}  // namespace waymark::follow
