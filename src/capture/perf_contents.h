/// Interprets records and features of a perf.data file, independent of where they are stored.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "perf_fields.h"
#include "waymark/capture/perf_data.h"

namespace waymark::capture::perf {

/// An event as the header and HEADER_ATTR records describe it, without its ids.
[[nodiscard]] Attr attr_of(Bytes bytes);

/// Collects the contents of a file, record by record and feature by feature.
class PerfContents {
public:
    PerfData data;
    bool unpacked = false;             ///< the current record was unpacked, so it has no offset in the file
    std::vector<std::uint64_t> index;  ///< file offsets of AUXTRACE records, ascending

    /// Reports that the bytes [first, end) are lost. If the range is empty, only `message` is reported.
    void lose(std::uint64_t first, std::uint64_t end, std::string message);
    /// Reports that the file ends before its data do, at `end`. The bytes lost at the end are reported with it.
    void cut(std::uint64_t end, std::string message);
    void add_attr(Attr attr);
    void take_feature(std::uint64_t feature, Bytes bytes);
    /// `at`: the record's offset in the file.
    void take(std::uint64_t at, const RecordHeader& h, Bytes record);
    /// The next file of the same recording follows.
    void next_file();
    /// Ends reading: applies statements about events that came before the events.
    void finish();

private:
    void take_event_descriptions(const RecordFields& f);
    void take_file_descriptions(Bytes bytes);
    void take_build_id(const RecordHeader& h, Bytes record);
    void take_sample(std::uint64_t at, const RecordHeader& h, Bytes record);
    void take_mapping(const RecordHeader& h, Bytes record);
    void add_switch(const SampleId& id, std::uint32_t pid, std::uint32_t tid);
    /// Reads the sample ID at the end of a kernel record.
    [[nodiscard]] SampleId sample_id(Bytes record);

    std::unordered_map<std::uint64_t, std::size_t> attr_by_id_;
    std::unordered_map<std::uint64_t, std::string> event_names_;
    std::vector<std::uint8_t> split_;  ///< data of a record that is split in parts
    std::optional<std::size_t> cut_;   // index of the loss that reports the cut of the file
};

}  // namespace waymark::capture::perf
