// ncclConfig_t in the layout of NCCL 2.30.7.
//
// A library reads only as many bytes of it as it knows, and resets fields newer than `version` to their defaults. So an
// older library silently ignores newer fields; `set` refuses them instead.
#pragma once
#include <climits>
#include <cstddef>
#include <list>
#include <string>
#include <variant>
#include <vector>

#include "engines/nccl/api.h"

namespace terse::nccl {

constexpr int undefined = INT_MIN;
constexpr unsigned config_version = 23007;

struct Config {
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
    int cga_cluster_size;
    int min_ctas;
    int max_ctas;
    const char* net_name;
    int split_share;
    int traffic_class;  // padding before 2.26, so it is always initialised
    const char* comm_name;
    int collnet_enable;
    int cta_policy;
    int shrink_share;
    int nvls_ctas;
    int channels_per_net_peer;
    int nvlink_centric_sched;
    int graph_usage_mode;
    int rma_contexts;
    int max_p2p_peers;
    int graph_stream_ordering;
};
static_assert(sizeof(Config) == 96 && offsetof(Config, net_name) == 32 && offsetof(Config, traffic_class) == 44 &&
              offsetof(Config, comm_name) == 48 && offsetof(Config, graph_stream_ordering) == 92);

struct ConfigField {
    const char* name;  // as in nccl.h
    int since;
    size_t offset;
    bool is_text;
};
const std::vector<ConfigField>& config_fields();

// A configuration and the strings that it points to.
class Configuration {
public:
    explicit Configuration(int library_version);
    Configuration(const Configuration&) = delete;

    // `name` as in nccl.h. Returns an error, or "".
    std::string set(const std::string& name, const std::variant<int, std::string>& value);
    Config* get() { return &config_; }

private:
    const int library_version_;
    Config config_;
    std::list<std::string> texts_;
};

}  // namespace terse::nccl
