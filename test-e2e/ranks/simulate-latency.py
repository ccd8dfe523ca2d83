"""Runs COMMAND in a network namespace where 10.9.0.2 is a machine MILLISECONDS away: MILLISECONDS COMMAND…

A packet to 10.9.0.2 returns after that time with source and destination exchanged, so that it arrives at 10.9.0.1,
which is local. The answer takes the same way. So the kernel sees two machines with a round trip of twice the time. The
checksums stay valid, because they are sums.
"""

import collections
import fcntl
import os
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000

delay, command = float(sys.argv[1]) / 1000, sys.argv[2:]
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"latency", IFF_TUN | IFF_NO_PI))
for words in ("link set lo up", "addr add 10.9.0.1/24 dev latency", "link set latency up"):
    subprocess.run(["ip", *words.split()], check=True)

child = subprocess.Popen(command)
end = os.pidfd_open(child.pid)
on_the_way = collections.deque()
while True:
    wait = max(on_the_way[0][0] - time.monotonic(), 0) if on_the_way else None
    ready, _, _ = select.select([tun, end], [], [], wait)
    if end in ready:
        sys.exit(child.wait())
    if tun in ready:
        packet = os.read(tun, 65536)
        if packet[0] >> 4 == 4:
            on_the_way.append((time.monotonic() + delay, packet[:12] + packet[16:20] + packet[12:16] + packet[20:]))
    while on_the_way and on_the_way[0][0] <= time.monotonic():
        os.write(tun, on_the_way.popleft()[1])
