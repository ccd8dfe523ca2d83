#include "engines/nccl/config.h"

#include <algorithm>
#include <cstring>

#include "engines/nccl/library.h"

namespace terse::nccl {

// The fields that users may set. `blocking` is not one of them, because this engine polls; nor are fields of calls that
// it never makes.
const std::vector<ConfigField>& config_fields() {
    static const auto* fields = new std::vector<ConfigField>{
        {"cgaClusterSize", 21700, offsetof(Config, cga_cluster_size), false},
        {"minCTAs", 21700, offsetof(Config, min_ctas), false},
        {"maxCTAs", 21700, offsetof(Config, max_ctas), false},
        {"netName", 21700, offsetof(Config, net_name), true},
        {"trafficClass", 22600, offsetof(Config, traffic_class), false},
        {"commName", 22700, offsetof(Config, comm_name), true},
        {"collnetEnable", 22700, offsetof(Config, collnet_enable), false},
        {"CTAPolicy", 22700, offsetof(Config, cta_policy), false},
        {"nvlsCTAs", 22700, offsetof(Config, nvls_ctas), false},
        {"nChannelsPerNetPeer", 22800, offsetof(Config, channels_per_net_peer), false},
        {"nvlinkCentricSched", 22800, offsetof(Config, nvlink_centric_sched), false},
        {"graphUsageMode", 22900, offsetof(Config, graph_usage_mode), false},
        {"maxP2pPeers", 23003, offsetof(Config, max_p2p_peers), false},
        {"graphStreamOrdering", 23007, offsetof(Config, graph_stream_ordering), false},
    };
    return *fields;
}

Configuration::Configuration(int library_version) : library_version_(library_version) {
    // Sets every word to "undefined". Pointers, for which that is null, and the leading fields follow.
    std::fill_n(reinterpret_cast<int*>(&config_), sizeof config_ / sizeof(int), undefined);
    config_.size = sizeof config_;
    config_.magic = 0xcafebeef;
    config_.version = std::min(config_version, static_cast<unsigned>(library_version));
    config_.blocking = 0;
    config_.net_name = nullptr;
    config_.comm_name = nullptr;
}

std::string Configuration::set(const std::string& name, const std::variant<int, std::string>& value) {
    const auto& fields = config_fields();
    const auto field = std::ranges::find(fields, name, &ConfigField::name);
    if (field == fields.end()) {
        std::string known;
        for (const ConfigField& each : fields) known += (known.empty() ? "" : ", ") + std::string(each.name);
        return "NCCL's configuration has no field " + name + "; its fields are " + known;
    }
    if (field->since > library_version_)
        return name + " needs NCCL " + version_text(field->since) + " or newer; this library is " +
               version_text(library_version_) + " and would ignore it";
    if (field->is_text != std::holds_alternative<std::string>(value))
        return name + " is a " + (field->is_text ? "text" : "whole number");
    char* at = reinterpret_cast<char*>(&config_) + field->offset;
    if (field->is_text) {
        const char* text = texts_.emplace_back(std::get<std::string>(value)).c_str();
        std::memcpy(at, &text, sizeof text);
    } else {
        std::memcpy(at, &std::get<int>(value), sizeof(int));
    }
    return "";
}

}  // namespace terse::nccl
