"""The clock since boot is the kernel's."""

import time

from launch.agent.linux.procfs import since_boot


def test_it_is_what_the_kernel_counts_with_its_suspension() -> None:
    with open("/proc/uptime") as file:
        assert abs(float(file.read().split()[0]) - since_boot()) < 5.0
    assert since_boot() >= time.clock_gettime(time.CLOCK_MONOTONIC) - 1.0
