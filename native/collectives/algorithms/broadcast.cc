// Sends the root's x to every rank. One segment or less goes down a binomial tree in log₂ n rounds. A longer x goes
// down a chain, segment by segment: every link carries x once, and all links work at the same time. The root sends
// before it checks the root agreement, so the check delays the other ranks by one hop at most.
#include <algorithm>

#include "algorithms/root_agreement.h"

namespace terse::collectives {

void broadcast(Wire& wire, const Operation& operation) {
    const int n = wire.size, root = operation.peer;
    const BufferView& x = operation.parts[0];
    const int place = (wire.rank - root + n) % n;  // in the tree or chain; the root is 0
    const auto rank_at = [&](int p) { return (p + root) % n; };

    int parent = place - 1;
    std::vector<int> children;
    if (x.bytes() > segment_bytes) {
        if (place + 1 < n) children.push_back(place + 1);
    } else {
        int bit = 1;  // becomes the lowest bit of place; above n for the root
        while (bit < n && !(place & bit)) bit <<= 1;
        parent = place - bit;
        for (int child = bit >> 1; child > 0; child >>= 1)
            if (place + child < n) children.push_back(place + child);
    }

    RootAgreement root_agreement(wire, operation, x.length);
    const Message message = message_of(operation, x.length, x.bytes(), static_cast<uint32_t>(root));
    std::vector<Outgoing> out;
    out.reserve(children.size());
    if (place == 0) {
        for (int child : children) out.emplace_back(wire, rank_at(child), message).push(x.data, x.bytes());
        root_agreement.check();
    } else {
        root_agreement.check();
        Incoming in(wire, rank_at(parent), message);
        in.post(x.data, x.bytes());
        for (int child : children) out.emplace_back(wire, rank_at(child), message);
        for (size_t at = 0; at < x.bytes(); at += segment_bytes) {
            in.next();
            for (Outgoing& o : out) o.push(static_cast<uint8_t*>(x.data) + at, std::min(segment_bytes, x.bytes() - at));
        }
    }
    for (Outgoing& o : out) o.finish();
}

}  // namespace terse::collectives
