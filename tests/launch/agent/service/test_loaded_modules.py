"""What an agent loads before it is ready: 64 agents that start take seconds of processors."""

import subprocess
import sys
from typing import List


def loaded(imports: str) -> List[str]:
    """The modules that a new process has loaded after these imports."""
    code = f"import sys; {imports}; print(*sys.modules)"
    return subprocess.check_output([sys.executable, "-c", code], universal_newlines=True).split()


def test_the_verbs_that_end_a_run_load_nothing_of_an_agents_loop() -> None:
    """`launch down` runs them on every host."""
    assert "asyncio" not in loaded("import launch.agent.state.runs, launch.agent.verbs.down")


def test_the_agent_of_a_member_loads_nothing_of_the_lead() -> None:
    """Most hosts of a run have a member."""
    found = loaded("from launch.agent.service import beginning, daemon, keeper, keeping")
    lead = (
        "launch.agent.service.lead",
        "launch.agent.supervision.supervisor",
        "launch.agent.hooks",
        "launch.status.run",
    )
    assert "launch.agent.service.member" in found and not set(lead) & set(found)
