"""What an agent loads before it is ready: 64 agents that start take seconds of processors."""

import subprocess
import sys


def test_the_agent_of_a_member_loads_nothing_of_the_lead() -> None:
    """Most hosts of a run have a member."""
    code = "import sys; from launch.agent.service import beginning, daemon, keeper, keeping; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], universal_newlines=True).split()
    lead = (
        "launch.agent.service.lead",
        "launch.agent.supervision.supervisor",
        "launch.agent.hooks",
        "launch.status.run",
    )
    assert "launch.agent.service.member" in loaded and not set(lead) & set(loaded)
