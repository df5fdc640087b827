"""Steps that a return lost, and that no lead can know of: the lead's agent ended before its status had that return.

The next lead has only the status. It sees how far its own tasks begin below the step there. Where the tasks had trained
on without a lead, and had saved, it does not see how far they had gone back before.
"""

from typing import Any, NamedTuple, Optional

READ_S = 1.0  # in which an agent reads what its own tasks report, and writes it into the status


class Return(NamedTuple):
    """When training went back to the step ``begun``, and how many steps known to the lead that lost anew.

    ``counted`` is what the lead had counted as lost before.
    """

    at: float
    begun: int
    lost: int
    counted: int


class Unwritten:
    """The unwritten steps of one run.

    Attributes:
      steps: so many, of which I9 asks no count.
    """

    def __init__(self, world: Any):
        self._world = world
        self.steps = 0
        self._seen: Optional[Return] = world.training.newest_return
        self._unread: Optional[Return] = None  # the newest one, until it is in the status, or must be
        self._forgotten: Optional[Return] = None  # one that the next lead cannot know
        self._shown = 0  # the step in the status then
        self._stood_at = 0.0  # when the lead's agent could last do nothing

    def look(self) -> None:
        """Note a return that the lead's agent had no time to read and to publish before it ended."""
        newest, now, lead = self._world.training.newest_return, self._world.agenda.now, self._world.lead
        if newest is not self._seen:
            self._count(newest)
            self._seen = self._unread = newest
        lives = lead.life is not None and not lead.life.loop.is_dead
        if self._unread is None or now > max(self._unread.at, self._stood_at) + READ_S:
            self._unread = None
        elif lives and lead.life.loop.stands:
            self._stood_at = now
        elif not lives:
            status = lead.folder.read_whole("status.json") or {}
            if status.get("lost_steps", 0) <= self._unread.counted:
                self._forgotten, self._shown = self._unread, status.get("global_step") or 0
            self._unread = None

    def _count(self, following: Return) -> None:
        """Count what the start that follows a forgotten return does not show of it."""
        known, self._forgotten = self._forgotten, None
        if known is not None:
            self.steps += max(0, min(known.lost, min(self._shown, following.begun) - known.begun))
