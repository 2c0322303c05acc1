/// What records and features of a perf.data file mean, wherever they are in it.
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

/// A file while it is read: takes record after record, and feature after feature.
class PerfContents {
public:
    PerfData data;
    bool unpacked = false;             ///< what is taken is no part of the file as it stands
    std::vector<std::uint64_t> index;  ///< file offsets of AUXTRACE records, ascending

    /// Bytes [first, end) are lost, or only what the message says.
    void lose(std::uint64_t first, std::uint64_t end, std::string message);
    /// The file ends before its data do. The bytes lost at the end are reported with it.
    void cut(std::uint64_t end, std::string message);
    void add_attr(Attr attr);
    void take_feature(std::uint64_t feature, Bytes bytes);
    /// `at`: the record's offset in the file.
    void take(std::uint64_t at, const RecordHeader& h, Bytes record);
    /// Another file of the same recording follows.
    void next_file();
    /// The end: what was said of events before they were known.
    void finish();

private:
    void take_event_descriptions(const RecordFields& f);
    void take_file_descriptions(Bytes bytes);
    void take_build_id(const RecordHeader& h, Bytes record);
    void take_sample(std::uint64_t at, const RecordHeader& h, Bytes record);
    void take_mapping(const RecordHeader& h, Bytes record);
    void add_switch(const SampleId& id, std::uint32_t pid, std::uint32_t tid);
    /// From the end of a record of the kernel.
    [[nodiscard]] SampleId sample_id(Bytes record);

    std::unordered_map<std::uint64_t, std::size_t> attr_by_id_;
    std::unordered_map<std::uint64_t, std::string> event_names_;
    std::vector<std::uint8_t> split_;  ///< of a record in parts
    std::optional<std::size_t> cut_;   // which loss is the end of a file that was cut
};

}  // namespace waymark::capture::perf
