//! Lanes and concurrency groups.

use pointsman_core::TaskSeq;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::{LaneHead, QueueId, WaitingTask};
use pointsman_store::tables::LaneTable;

use super::RedisTables;
use crate::codec::MemberBuilder;
use crate::keys::Index;

impl LaneTable for RedisTables {
    fn read_lane_head(&mut self, lane: i64) -> TableResult<Option<LaneHead>> {
        if self.is_lane_of_new_object(lane) {
            self.overlay.assume_lane_was_empty(lane)?;
        }
        let Some((lane_position, seq)) = self.overlay.read_lane_head(lane)? else { return Ok(None) };
        let active = self
            .overlay
            .read_active_task(seq)?
            .ok_or_else(|| Fault::damaged(format!("no task {} of a lane", seq.0)))?;
        Ok(Some(LaneHead {
            lane_position,
            phase: active.phase,
            task: WaitingTask::from_row(&active, active.due_time()),
        }))
    }

    fn list_lane_tasks(&mut self, lane: i64) -> TableResult<Vec<(TaskSeq, QueueId)>> {
        let seqs = self.overlay.read_task_seqs_from_index(
            &Index::LanePositions,
            &MemberBuilder::from_i64(lane).finish(),
            2,
            usize::MAX,
        )?;
        Ok(self.overlay.read_active_tasks(seqs)?.iter().map(|active| (active.seq, active.queue)).collect())
    }

    fn list_counted_tasks_of_concurrency_group(
        &mut self,
        group: i64,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        self.overlay.read_task_seqs_from_index(
            &Index::TasksByConcurrencyGroup,
            &MemberBuilder::from_i64(group).push_i64(0).finish(),
            2,
            limit,
        )
    }

    fn find_oldest_blocked_in_concurrency_group(&mut self, group: i64) -> TableResult<Option<WaitingTask>> {
        let blocked = self.overlay.read_task_seqs_from_index(
            &Index::TasksByConcurrencyGroup,
            &MemberBuilder::from_i64(group).push_i64(1).finish(),
            2,
            1,
        )?;
        Ok(self
            .overlay
            .read_active_tasks(blocked)?
            .first()
            .map(|active| WaitingTask::from_row(active, active.due_time())))
    }
}

impl RedisTables {
    /// Returns whether the object of a lane is new in this transaction, so that its lanes were empty.
    fn is_lane_of_new_object(&mut self, lane: i64) -> bool {
        let last_object = self.store_state_at_begin.counters.last_object;
        pointsman_store::object_of_lane(lane).is_some_and(|object| object > last_object)
    }
}
