/// The packets of a session besides execution: synchronisation, timestamps, triggers, and packets that wait for the
/// next waypoint (docs/spec/pft.md, 5.5).
#pragma once

#include "model_packets.h"

namespace waymark::pft {

class ModelStream : protected ModelPackets {
protected:
    ModelStream(const ModelConfig& config, ByteSink& trace)
        : ModelPackets(config, trace), registers_(config.registers) {}

    /// 5.5: the first output after the Programming bit was cleared is an A-sync; it also satisfies a pending request.
    void trace_on() {
        if (sync_due()) sync_requested_ = true;  // due since tracing went off, or since overflows prevented the request
        const bool whole = sync_requested_ || isync_pending_ || whole_timestamp_due_;
        const bool overflowed = restart_ == ISyncReason::overflow_restart;
        if (!async_sent_ || sync_requested_ || (overflowed && choices_.overflow_async)) send_async();
        if (!send_isync(restart_)) return;
        tracing_ = true;
        restart_ = ISyncReason::trace_enabled;
        after_isync(whole);
    }
    void periodic_isync() {
        if (send_isync(ISyncReason::periodic)) after_isync(true);
    }
    /// A VMID follows an I-sync, and a timestamp follows an I-sync for synchronisation.
    void after_isync(bool whole_timestamp) {
        if (config_.vmid_trace) {
            vmid_pending_ = true;
            send_vmid();
        }
        timestamp_pending_ = false;
        if (whole_timestamp || choices_.trace_on_timestamp) send_timestamp(whole_timestamp);
    }
    bool send_isync(ISyncReason reason) {
        if (!isync(reason, start_, ns_, hyp_, context_id_, last_cycle_)) return false;
        isync_pending_ = false;
        return true;
    }

    /// Sends the packets that the last waypoint left, at its end, in the order of 5.5. This happens when the next event
    /// comes, so that changes after the waypoint are included.
    void settle() {
        if (!unsettled_) return;
        unsettled_ = false;
        if (programming_) return;
        if (tracing_) {
            if (config_.context_id_bytes != 0 && context_id_ != sent_.context_id) context_id(context_id_);
            if (config_.vmid_trace && vmid_ != sent_.vmid) {
                vmid_pending_ = true;
                send_vmid();
            }
            periodic_request();
        }
        // A timestamp for synchronisation satisfies all requests.
        if (tracing_ && timestamp_pending_ && !(isync_pending_ && isync_delay_ == 0)) {
            timestamp_pending_ = false;
            // OQ16
            if (traced_since_timestamp_ || choices_.timestamp_filter == ModelChoices::TimestampFilter::none)
                send_timestamp(false);
        }
        // The position of a trigger is imprecise by definition, so the trigger does not wait for atoms, and atoms do
        // not wait for it.
        if (trigger_pending_ && async_sent_ && !fifo_.draining()) {
            trigger_pending_ = false;
            send(Trigger{});
        }
    }
    [[nodiscard]] bool sync_due() const {
        return registers_.syncfr.value != 0 && sync_bytes_ >= registers_.syncfr.value;
    }
    void periodic_request() {
        if (sync_due()) {
            const bool unfinished = isync_pending_ || sync_requested_;
            sync_requested_ = true;
            if (unfinished && !registers_.auxcr.no_forced_overflow) return forced_overflow();
        }
        if (!sync_requested_ || !tracing_) return;
        if (choices_.async_flushes_atoms) flush_atoms();  // OQ15
        send_async();
        if (!isync_pending_) isync_delay_ = choices_.isync_delay_waypoints;
        isync_pending_ = true;
    }
    // ---- stopping

    void stop(ISyncReason restart) {
        flush_atoms();
        tracing_ = false;
        // The next I-sync reports the loss, even if other causes kept tracing off meanwhile.
        if (restart_ != ISyncReason::overflow_restart) restart_ = restart;
    }
    void overflowed() override {
        tracing_ = vmid_pending_ = timestamp_pending_ = false;
        whole_timestamp_due_ = true;
        restart_ = ISyncReason::overflow_restart;
    }
    /// 5.5: a request arrives while the previous synchronisation is not finished. Pending packets are still sent.
    void forced_overflow() {
        flush_atoms();
        overflow();
    }
    void forget_sent() {
        fifo_.reset();
        tracing_ = async_sent_ = isync_pending_ = vmid_pending_ = timestamp_pending_ = false;
        sync_requested_ = trigger_pending_ = triggered_ = false;
        whole_timestamp_due_ = true;
        restart_ = ISyncReason::trace_enabled;
        sync_bytes_ = 0;
    }

    // ---- packets

    void send_async() {
        send(ASync{});
        if (fifo_.draining()) return;
        sync_requested_ = false;
        async_sent_ = true;
        sync_bytes_ = 0;  // the counter restarts with the sync, not with the request
    }
    void send_vmid() {
        vmid(vmid_);
        vmid_pending_ = false;
    }

    void request_timestamp() {
        if (!config_.timestamps || programming_) return;
        timestamp_pending_ = unsettled_ = true;
    }
    void barrier_timestamp() {
        if (registers_.ccer.barrier_timestamps && !registers_.auxcr.no_barrier_timestamps) request_timestamp();
    }
    void send_timestamp(bool whole) {
        if (!config_.timestamps) return;
        if (!timestamp(last_ticks_, last_cycle_, whole || whole_timestamp_due_, frequency_changed_)) return;
        whole_timestamp_due_ = frequency_changed_ = false;
        traced_since_timestamp_ = false;
    }

    const Registers registers_;

    // The state of the core at the beginning of the next block.
    Place start_{};  // of the block
    bool ns_ = false, hyp_ = false;
    std::uint32_t context_id_ = 0;
    std::uint8_t vmid_ = 0;
    std::uint64_t last_cycle_ = 0, last_ticks_ = 0;  // cycle and time of the last waypoint

    // Packets to be sent.
    bool programming_ = true, tracing_ = false, async_sent_ = false;
    ISyncReason restart_ = ISyncReason::trace_enabled;
    bool unsettled_ = false, sync_requested_ = false, isync_pending_ = false, vmid_pending_ = false;
    bool timestamp_pending_ = false, whole_timestamp_due_ = true, frequency_changed_ = false;
    bool traced_since_timestamp_ = false;
    bool trigger_pending_ = false, triggered_ = false;
    unsigned isync_delay_ = 0;
};

}  // namespace waymark::pft
