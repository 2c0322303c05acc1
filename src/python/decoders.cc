/// Decoders: ranges and events in batches that own their memory, counts, packets, samples.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "module.h"

namespace waymark::python {

/// wm_event in a form for numpy: the name is a number (event_names).
struct EventRow {
    std::uint32_t kind, before;
    std::uint64_t offset, address, other, value;
    std::uint32_t cycles, detail, flags, name;
};

namespace {

/// Recycles memory of ranges, so that its pages stay mapped and cached.
class RangePool : public std::enable_shared_from_this<RangePool> {
public:
    explicit RangePool(std::size_t ranges) : ranges_(ranges) {}
    using Memory = std::shared_ptr<wm_range[]>;
    Memory take() {
        wm_range* memory = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if (!free_.empty()) {
                memory = free_.back().release();
                free_.pop_back();
            }
        }
        // The memory is not cleared.
        if (memory == nullptr) memory = new wm_range[ranges_];
        return Memory(memory, [pool = shared_from_this()](wm_range* p) { pool->give_back(p); });
    }

private:
    void give_back(wm_range* memory) {
        std::unique_ptr<wm_range[]> owned(memory);
        const std::lock_guard lock(mutex_);
        constexpr std::size_t most_kept = 8;
        if (free_.size() < most_kept) free_.push_back(std::move(owned));
    }
    const std::size_t ranges_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<wm_range[]>> free_;
};

/// Blocks of a stream. Rows are appended after those that batches use; a larger array replaces a full one.
struct BlockRows {
    std::shared_ptr<std::vector<wm_block>> rows = std::make_shared<std::vector<wm_block>>();
    void grow(const wm_block* blocks, std::size_t count) {
        if (count <= rows->size()) return;
        if (count > rows->capacity()) {
            auto larger = std::make_shared<std::vector<wm_block>>();
            larger->reserve(std::max(count, 2 * rows->capacity()));
            larger->assign(rows->begin(), rows->end());
            rows = std::move(larger);
        }
        rows->insert(rows->end(), blocks + rows->size(), blocks + count);
    }
};

/// Numbers for the names of events, by pointer, since names live as long as the program.
class EventNames {
public:
    std::uint32_t number(const char* name) {
        const auto [at, fresh] = numbers_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
        if (fresh) names_.emplace_back(name);
        return at->second;
    }
    [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

private:
    std::map<const void*, std::uint32_t> numbers_;
    std::vector<std::string> names_;
};

/// Consecutive elements of one stream.
struct FlowPart {
    std::size_t source = 0;
    std::string buffer;
    std::uint64_t base = 0;
    RangePool::Memory ranges;  ///< the first `range_count` ranges of this memory
    std::size_t range_count = 0;
    std::shared_ptr<std::vector<EventRow>> events = std::make_shared<std::vector<EventRow>>();
    std::shared_ptr<std::vector<wm_block>> blocks;
    std::size_t block_count = 0;

    /// A value from the block of each range.
    template <class Of>
    [[nodiscard]] auto of_blocks(Of of) const {
        py::array_t<decltype(of(wm_block{}))> out(static_cast<py::ssize_t>(range_count));
        auto* const to = out.mutable_data();
        for (std::size_t i = 0; i < range_count; ++i)
            to[i] = of((*blocks)[ranges[static_cast<std::ptrdiff_t>(i)].edge >> 1U]);
        return out;
    }
};

class DecoderHandle {
public:
    DecoderHandle(const Capture& capture, const std::vector<std::string>& sources, unsigned jobs)
        : opened_(capture.opened()) {
        call([&](wm_error** error) { return wm_decoder_new(opened_->capture, &decoder_, error); });
        for (const std::string& source : sources)
            call([&](wm_error** error) { return wm_decoder_select(decoder_, source.c_str(), error); });
        wm_decoder_set_jobs(decoder_, jobs);
        // Each thread needs a part of a piece.
        if (jobs != 1) piece_bytes_ *= 16;
    }
    ~DecoderHandle() { wm_decoder_free(decoder_); }
    DecoderHandle(const DecoderHandle&) = delete;
    DecoderHandle& operator=(const DecoderHandle&) = delete;

    [[nodiscard]] py::dict totals() const {
        wm_totals t{};
        t.struct_bytes = sizeof t;
        wm_decoder_get_totals(decoder_, &t);
        py::dict out;
        const auto put = [&](const char* name, std::uint64_t value) { out[name] = value; };
        put("bytes", t.bytes);
        put("packets", t.packets);
        put("ranges", t.ranges);
        put("instructions", t.instructions);
        put("cycles", t.cycles);
        put("exceptions", t.exceptions);
        put("exception_returns", t.exception_returns);
        put("contexts", t.contexts);
        put("timestamps", t.timestamps);
        put("gaps", t.gaps);
        put("gap_bytes", t.gap_bytes);
        put("overflows", t.overflows);
        put("no_memory", t.no_memory);
        put("inconsistencies", t.inconsistencies);
        put("samples", t.samples);
        return out;
    }
    [[nodiscard]] py::list damage() const {
        py::list out;
        for (std::size_t i = 0; i < wm_decoder_damage_count(decoder_); ++i)
            out.append(wm_decoder_damage(decoder_, i, nullptr));
        return out;
    }

protected:
    [[nodiscard]] std::size_t index_of(const wm_source* source) const {
        for (std::size_t i = 0;; ++i)
            if (wm_source_at(opened_->capture, i) == source) return i;
    }
    /// Decodes the next piece; between pieces Python checks signals (KeyboardInterrupt). Returns false if everything is
    /// decoded.
    bool step() {
        int more = 0;
        run_alone([&](wm_error** error) { return wm_decoder_step(decoder_, piece_bytes_, &more, error); });
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        return more != 0;
    }
    /// Runs without the interpreter's lock, and in one thread at a time.
    template <class F>
    void run_alone(F&& f) {
        if (busy_) throw Failure{WM_USAGE, "the decoder is in use by another thread", {}};
        busy_ = true;
        struct Leave {
            bool& busy;
            ~Leave() { busy = false; }
        } leave{busy_};
        unlocked_call(std::forward<F>(f));
    }

    std::size_t piece_bytes_ = std::size_t{1} << 16;
    bool busy_ = false;
    std::shared_ptr<Opened> opened_;
    wm_decoder* decoder_ = nullptr;
};

class FlowDecoder final : public DecoderHandle {
public:
    FlowDecoder(const Capture& capture, const std::vector<std::string>& sources, unsigned jobs, std::size_t batch)
        : DecoderHandle(capture, sources, jobs),
          batch_(std::max<std::size_t>(batch, least_batch)),
          pool_(std::make_shared<RangePool>(batch_)) {
        wm_decoder_on_flow(
            decoder_,
            [](const wm_flow_batch* b, void* user) {
                static_cast<FlowDecoder*>(user)->take(*b);
                return 0;
            },
            this);
        wm_decoder_set_room(
            decoder_,
            [](const wm_source* source, std::size_t* count, void* user) {
                return static_cast<FlowDecoder*>(user)->room(source, *count);
            },
            this);
    }

    /// The next batch; None at the end.
    py::object next() {
        while (ready_.empty() && !done_) {
            if (step()) continue;
            done_ = true;
            close_part();
        }
        // Ranges that wait have left the cache before they are used.
        constexpr std::size_t least_piece = 4096;
        if (ready_.size() > 2 && piece_bytes_ > least_piece) piece_bytes_ /= 2;
        return pop();
    }
    /// For a live capture.
    void feed(const py::buffer& bytes) {
        const py::buffer_info info = bytes.request();
        run_alone([&](wm_error** error) {
            return wm_decoder_feed(decoder_, info.ptr, static_cast<std::size_t>(info.size * info.itemsize), error);
        });
        close_part();
    }
    void finish() {
        run_alone([&](wm_error** error) { return wm_decoder_finish(decoder_, error); });
        close_part();
    }
    /// The next waiting batch; None if there is none.
    py::object pop() {
        if (ready_.empty()) return py::none();
        FlowPart part = std::move(ready_.front());
        ready_.pop_front();
        return py::cast(std::move(part));
    }
    [[nodiscard]] const std::vector<std::string>& names() const { return names_.names(); }

private:
    // More elements than a decoder delivers at once.
    static constexpr std::size_t least_batch = 4096;

    /// Room for a source's ranges; the previous memory is no longer written to.
    wm_range* room(const wm_source* source, std::size_t& count) {
        RangePool::Memory& memory = rooms_[source];
        if (count <= batch_) {
            memory = pool_->take();
            count = batch_;
        } else {
            memory = RangePool::Memory(new wm_range[count]);
        }
        return memory.get();
    }
    void take(const wm_flow_batch& b) {
        if (b.source != stream_.source || stream_.buffer != b.buffer) {
            close_part();
            stream_ = {b.source, b.buffer, index_of(b.source), nullptr};
            stream_.blocks = &blocks_[{stream_.number, stream_.buffer}];
        }
        const bool has_ranges = b.range_count != 0;
        if (now_.events->size() > batch_ || (now_.range_count != 0 && has_ranges &&
                                             (b.ranges != now_.ranges.get() + now_.range_count || b.base != now_.base)))
            close_part();
        if (has_ranges && now_.range_count == 0) {
            const RangePool::Memory& memory = rooms_[b.source];
            now_.ranges = RangePool::Memory(memory, memory.get() + (b.ranges - memory.get()));
            now_.base = b.base;
        }
        stream_.blocks->grow(b.blocks, b.block_count);
        now_.blocks = stream_.blocks->rows;
        now_.block_count = b.block_count;
        for (std::size_t i = 0; i < b.event_count; ++i) {
            const wm_event& e = b.events[i];
            now_.events->push_back({e.kind, e.before + static_cast<std::uint32_t>(now_.range_count), e.offset,
                                    e.address, e.other, e.value, e.cycles, e.detail, e.flags, names_.number(e.name)});
        }
        now_.range_count += b.range_count;
    }
    void close_part() {
        if (now_.range_count == 0 && now_.events->empty()) return;
        now_.source = stream_.number;
        now_.buffer = stream_.buffer;
        ready_.push_back(std::exchange(now_, {}));
    }

    struct Stream {
        const wm_source* source = nullptr;
        std::string buffer;
        std::size_t number = 0;  ///< of the source
        BlockRows* blocks = nullptr;
    };

    const std::size_t batch_;
    std::shared_ptr<RangePool> pool_;
    std::map<const wm_source*, RangePool::Memory> rooms_;
    Stream stream_;  ///< stream of the last batch
    std::map<std::pair<std::size_t, std::string>, BlockRows> blocks_;
    EventNames names_;
    FlowPart now_;
    std::deque<FlowPart> ready_;
    bool done_ = false;
};

class CountDecoder final : public DecoderHandle {
public:
    CountDecoder(const Capture& capture, const std::vector<std::string>& sources, unsigned jobs)
        : DecoderHandle(capture, sources, jobs) {}

    /// A tuple (source, buffer, blocks, times) for each stream; times[block, 1] counts how often the block's branch was
    /// taken.
    py::list run() {
        std::vector<Stream> streams;
        std::pair<CountDecoder*, std::vector<Stream>*> user{this, &streams};
        wm_decoder_on_counts(
            decoder_,
            [](const wm_counts* c, void* both) {
                auto& [self, out] = *static_cast<decltype(user)*>(both);
                Stream& s = out->emplace_back();
                s.source = self->index_of(c->source);
                s.buffer = c->buffer;
                s.blocks = std::make_shared<std::vector<wm_block>>(c->blocks, c->blocks + c->block_count);
                s.times = std::make_shared<std::vector<std::uint64_t>>(2 * c->block_count);
                std::copy_n(c->times, std::min(c->times_count, s.times->size()), s.times->begin());
                return 0;
            },
            &user);
        while (step()) {
        }
        py::list out;
        for (const Stream& s : streams) {
            py::array_t<std::uint64_t> times = array_kept_by(s.times->data(), s.times->size(), s.times);
            out.append(py::make_tuple(s.source, s.buffer, array_kept_by(s.blocks->data(), s.blocks->size(), s.blocks),
                                      times.reshape({static_cast<py::ssize_t>(s.blocks->size()), py::ssize_t{2}})));
        }
        return out;
    }

private:
    struct Stream {
        std::size_t source = 0;
        std::string buffer;
        std::shared_ptr<std::vector<wm_block>> blocks;
        std::shared_ptr<std::vector<std::uint64_t>> times;
    };
};

class PacketDecoder final : public DecoderHandle {
public:
    PacketDecoder(const Capture& capture, const std::vector<std::string>& sources)
        : DecoderHandle(capture, sources, 1) {
        piece_bytes_ = 4096;
        wm_decoder_on_packets(
            decoder_,
            [](const wm_packet_batch* b, void* user) {
                static_cast<PacketDecoder*>(user)->take(*b);
                return 0;
            },
            this);
    }
    /// A list of tuples (source, offset, bytes, is gap, name, fields, meaning); None at the end.
    py::object next() {
        bool more = true;
        while (waiting_.empty() && more && !done_) more = step();
        done_ = done_ || !more;
        if (waiting_.empty()) return py::none();
        py::list out;
        for (const Row& r : waiting_)
            out.append(py::make_tuple(r.source, r.offset, r.bytes, r.is_gap, r.name, r.fields, r.meaning));
        waiting_.clear();
        return out;
    }

private:
    struct Row {
        std::size_t source;
        std::uint64_t offset;
        std::uint32_t bytes;
        bool is_gap;
        std::string name, fields, meaning;
    };
    void take(const wm_packet_batch& b) {
        const std::size_t source = index_of(b.source);
        for (std::size_t i = 0; i < b.packet_count; ++i) {
            const wm_packet& p = b.packets[i];
            waiting_.push_back({source, p.offset, p.bytes, p.is_gap != 0, p.name, p.fields, p.meaning});
        }
    }
    std::vector<Row> waiting_;
    bool done_ = false;
};

class SampleDecoder final : public DecoderHandle {
public:
    explicit SampleDecoder(const Capture& capture) : DecoderHandle(capture, {}, 1) {}

    /// Columns of all samples, by name.
    py::dict run() {
        wm_decoder_on_samples(
            decoder_,
            [](const wm_sample_batch* b, void* user) {
                static_cast<SampleDecoder*>(user)->take(*b);
                return 0;
            },
            this);
        wm_decoder_on_progress(
            decoder_,
            [](std::uint64_t, std::uint64_t, void*) {
                const py::gil_scoped_acquire lock;
                return PyErr_CheckSignals();
            },
            nullptr);
        wm_error* error = nullptr;
        wm_status status{};
        {
            const py::gil_scoped_release unlocked;
            status = wm_decoder_run(decoder_, &error);
        }
        if (PyErr_Occurred() != nullptr) {
            wm_error_free(error);
            throw py::error_already_set();
        }
        check(status, error);
        py::dict out;
        for (auto& [name, column] : longs_) out[name] = kept(column);
        for (auto& [name, column] : words_) out[name] = kept(column);
        for (auto& [name, column] : halves_) out[name] = kept(column);
        for (auto& [name, column] : bytes_) out[name] = kept(column);
        return out;
    }

private:
    template <class T>
    using Columns = std::map<const char*, std::shared_ptr<std::vector<T>>>;
    template <class T>
    static py::array_t<T> kept(const std::shared_ptr<std::vector<T>>& column) {
        return array_kept_by(column->data(), column->size(), column);
    }
    template <class T>
    static void add(Columns<T>& columns, const char* name, const T* values, std::size_t count) {
        auto& column = columns[name];
        if (!column) column = std::make_shared<std::vector<T>>();
        column->insert(column->end(), values, values + count);
    }
    void take(const wm_sample_batch& b) {
        add(longs_, "pc", b.pc, b.count);
        add(longs_, "branch_target", b.branch_target, b.count);
        add(longs_, "previous_target", b.previous_target, b.count);
        add(longs_, "data_virtual", b.data_virtual, b.count);
        add(longs_, "data_physical", b.data_physical, b.count);
        add(longs_, "events", b.events, b.count);
        add(longs_, "timestamp", b.timestamp, b.count);
        add(words_, "pid", b.pid, b.count);
        add(words_, "tid", b.tid, b.count);
        add(words_, "context_el1", b.context_el1, b.count);
        add(words_, "context_el2", b.context_el2, b.count);
        const std::vector<std::uint32_t> cpu(b.count, b.cpu);
        add(words_, "cpu", cpu.data(), b.count);
        add(halves_, "present", b.present, b.count);
        add(halves_, "total_latency", b.total_latency, b.count);
        add(halves_, "issue_latency", b.issue_latency, b.count);
        add(halves_, "translation_latency", b.translation_latency, b.count);
        add(halves_, "data_source", b.data_source, b.count);
        add(bytes_, "exception_level", b.exception_level, b.count);
        add(bytes_, "operation_class", b.operation_class, b.count);
        add(bytes_, "operation_type", b.operation_type, b.count);
    }
    Columns<std::uint64_t> longs_;
    Columns<std::uint32_t> words_;
    Columns<std::uint16_t> halves_;
    Columns<std::uint8_t> bytes_;
};

template <class Decoder>
void add_common(py::class_<Decoder>& c) {
    c.def_property_readonly("totals", &Decoder::totals).def_property_readonly("damage", &Decoder::damage);
}

}  // namespace

void add_decoders(py::module_& m) {
    PYBIND11_NUMPY_DTYPE(wm_range, edge, offset, cycles, times);
    PYBIND11_NUMPY_DTYPE(wm_block, start, target, bytes, instructions, section, isa, end, last_bytes, flags);
    PYBIND11_NUMPY_DTYPE(EventRow, kind, before, offset, address, other, value, cycles, detail, flags, name);
    m.attr("range_dtype") = py::dtype::of<wm_range>();
    m.attr("block_dtype") = py::dtype::of<wm_block>();
    m.attr("event_dtype") = py::dtype::of<EventRow>();

    py::class_<FlowPart>(m, "FlowPart")
        .def_readonly("source", &FlowPart::source)
        .def_readonly("buffer", &FlowPart::buffer)
        .def_readonly("base", &FlowPart::base)
        .def_property_readonly(
            "ranges",
            // The memory returns to its pool when its last array is gone.
            [](const FlowPart& part) { return array_kept_by(part.ranges.get(), part.range_count, part.ranges); })
        .def_property_readonly(
            "events",
            [](const FlowPart& part) { return array_kept_by(part.events->data(), part.events->size(), part.events); })
        .def_property_readonly(
            "blocks",
            [](const FlowPart& part) { return array_kept_by(part.blocks->data(), part.block_count, part.blocks); })
        .def("start", [](const FlowPart& part) { return part.of_blocks([](const wm_block& b) { return b.start; }); })
        .def("end",
             [](const FlowPart& part) { return part.of_blocks([](const wm_block& b) { return b.start + b.bytes; }); })
        .def("instructions",
             [](const FlowPart& part) { return part.of_blocks([](const wm_block& b) { return b.instructions; }); })
        .def("isa", [](const FlowPart& part) { return part.of_blocks([](const wm_block& b) { return b.isa; }); });
    py::class_<FlowDecoder> flow(m, "FlowDecoder");
    flow.def(py::init<const Capture&, const std::vector<std::string>&, unsigned, std::size_t>())
        .def("next", &FlowDecoder::next)
        .def("feed", &FlowDecoder::feed)
        .def("finish", &FlowDecoder::finish)
        .def("pop", &FlowDecoder::pop)
        .def_property_readonly("event_names", &FlowDecoder::names);
    add_common(flow);
    py::class_<CountDecoder> counts(m, "CountDecoder");
    counts.def(py::init<const Capture&, const std::vector<std::string>&, unsigned>()).def("run", &CountDecoder::run);
    add_common(counts);
    py::class_<PacketDecoder> packets(m, "PacketDecoder");
    packets.def(py::init<const Capture&, const std::vector<std::string>&>()).def("next", &PacketDecoder::next);
    add_common(packets);
    py::class_<SampleDecoder> samples(m, "SampleDecoder");
    samples.def(py::init<const Capture&>()).def("run", &SampleDecoder::run);
    add_common(samples);
}

}  // namespace waymark::python
