//! Active tasks and their index entries.

use std::ops::Bound;

use pointsman_core::store::NodeId;
use pointsman_core::task::TaskState;
use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store::columns::ActiveTaskColumns;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::invalidation::Invalidation;
use pointsman_store::row::{ActiveTaskRow, HandlerId, QueueId, SyncGatedTask, TaskPhase, WaitingTask};
use pointsman_store::tables::ActiveTaskTable;

use super::RedisTables;
use crate::codec::{MemberBuilder, decode_member_i64, encode_decimal_field};
use crate::keys::{Index, Table, task_bucket_and_field};
use crate::overlay::{ALL_MEMBERS, CacheFetch, ScanOrder};
use crate::{rows, task_indexes};

impl ActiveTaskTable for RedisTables {
    fn read_active_task(&mut self, seq: TaskSeq) -> TableResult<Option<ActiveTaskRow>> {
        self.overlay.read_active_task(seq)
    }

    fn insert_active_task(&mut self, active: &ActiveTaskRow) -> TableResult<()> {
        self.replace_task_and_index_entries(None, Some(active))
    }

    fn delete_active_task(&mut self, active: &ActiveTaskRow) -> TableResult<()> {
        let before = self.overlay.read_active_task(active.seq)?;
        self.replace_task_and_index_entries(before.as_ref(), None)
    }

    fn set_task_phase(&mut self, seq: TaskSeq, phase: TaskPhase, rank: i64) -> TableResult<()> {
        self.update_task(seq, |active| {
            let due = active.due_time();
            (active.phase, active.rank) = (phase, rank);
            active.lifecycle.state = match phase {
                TaskPhase::BlockedByTask | TaskPhase::SyncGated | TaskPhase::Delayed | TaskPhase::Ready => {
                    TaskState::New { due }
                }
                TaskPhase::Scheduled => TaskState::Scheduled,
                TaskPhase::Missing => TaskState::Missing { due },
                TaskPhase::Locked | TaskPhase::Halted => active.lifecycle.state,
            };
        })
    }

    fn write_task_lock(&mut self, locked: &ActiveTaskRow) -> TableResult<()> {
        self.update_task(locked.seq, |active| {
            active.phase = locked.phase;
            active.started_at = locked.started_at;
            active.lifecycle.state = locked.lifecycle.state;
            active.lifecycle.attempt = locked.lifecycle.attempt;
        })
    }

    fn update_active_task(&mut self, changed: &ActiveTaskRow) -> TableResult<()> {
        self.update_task(changed.seq, |active| {
            active.phase = changed.phase;
            active.lane_position = changed.lane_position;
            active.rank = changed.rank;
            active.started_at = changed.started_at;
            active.error = changed.error.clone();
            active.lifecycle = changed.lifecycle;
        })
    }

    fn set_task_grouping(&mut self, grouped: &ActiveTaskRow) -> TableResult<()> {
        self.update_task(grouped.seq, |active| {
            (active.lane, active.concurrency_group, active.key_bucket) =
                (grouped.lane, grouped.concurrency_group, grouped.key_bucket);
        })
    }

    fn set_concurrency_group(&mut self, seq: TaskSeq, group: Option<i64>) -> TableResult<()> {
        self.update_task(seq, |active| active.concurrency_group = group)
    }

    fn set_task_score(&mut self, seq: TaskSeq, score: i64) -> TableResult<()> {
        self.update_task(seq, |active| active.score = score)
    }

    fn set_lease_end(&mut self, seq: TaskSeq, until: Timestamp) -> TableResult<()> {
        self.update_task(seq, |active| {
            if let TaskState::Locked(lease) = &mut active.lifecycle.state
                && lease.until.is_some()
            {
                lease.until = Some(until);
            }
        })
    }

    fn invalidate_task_on_peers(&mut self, seq: TaskSeq) {
        self.record_invalidation(Invalidation::Task(seq));
    }

    /// Lists scheduled tasks by score, rank and age.
    fn list_scheduled_tasks(&mut self) -> TableResult<Vec<ActiveTaskRow>> {
        let seqs =
            self.overlay.read_task_seqs_from_index(&Index::TasksInScheduledPhase, &[], 0, usize::MAX)?;
        let mut scheduled = self.overlay.read_active_tasks(seqs)?;
        scheduled.sort_by_key(|active| (std::cmp::Reverse(active.score), active.rank, active.seq));
        Ok(scheduled)
    }

    fn list_due_tasks(&mut self, now: Timestamp, limit: usize) -> TableResult<Vec<WaitingTask>> {
        let end = MemberBuilder::from_i64(now.micros()).push_i64(i64::MAX).finish();
        let due = self.overlay.read_members(
            &Index::DueTasks,
            (Bound::Unbounded, Bound::Included(&end)),
            ScanOrder::Ascending,
            limit,
        )?;
        let seqs: Vec<TaskSeq> =
            due.iter().map(|member| decode_member_i64(member, 1).map(TaskSeq)).collect::<TableResult<_>>()?;
        Ok(self
            .overlay
            .read_active_tasks(seqs)?
            .iter()
            .map(|active| WaitingTask::from_row(active, active.due_time()))
            .collect())
    }

    fn read_earliest_due_time(&mut self) -> TableResult<Option<Timestamp>> {
        let first = self.overlay.read_members(&Index::DueTasks, ALL_MEMBERS, ScanOrder::Ascending, 1)?;
        first.first().map(|member| decode_member_i64(member, 0).map(Timestamp::from_micros)).transpose()
    }

    fn list_sync_gated_tasks(&mut self, event: EventId) -> TableResult<Vec<SyncGatedTask>> {
        let seqs = self.overlay.read_task_seqs_from_index(
            &Index::SyncGatedTasks,
            &MemberBuilder::from_i64(event.as_i64()).finish(),
            2,
            usize::MAX,
        )?;
        let to_gated_task = |active: &ActiveTaskRow| {
            let ActiveTaskRow { lane, lane_position, sync_stage, .. } = *active;
            SyncGatedTask {
                task: WaitingTask::from_row(active, active.due_time()),
                lane,
                lane_position,
                sync_stage,
            }
        };
        Ok(self.overlay.read_active_tasks(seqs)?.iter().map(to_gated_task).collect())
    }

    fn list_active_tasks_of_event(&mut self, event: EventId) -> TableResult<Vec<ActiveTaskRow>> {
        let seqs = self.overlay.list_tasks_created_with_event(event)?;
        self.overlay.read_active_tasks(seqs)
    }

    fn list_tasks_locked_by_node(&mut self, node: NodeId) -> TableResult<Vec<ActiveTaskRow>> {
        let seqs = self.overlay.read_task_seqs_from_index(&Index::LockedTasks(node), &[], 0, usize::MAX)?;
        self.overlay.read_active_tasks(seqs)
    }

    fn list_expired_worker_leases(
        &mut self,
        since: Timestamp,
        now: Timestamp,
    ) -> TableResult<Vec<ActiveTaskRow>> {
        let end = MemberBuilder::from_i64(now.micros()).finish();
        let bounds = (Bound::Unbounded, Bound::Excluded(&*end));
        let members =
            self.overlay.read_members(&Index::LeaseExpiries, bounds, ScanOrder::Ascending, usize::MAX)?;
        let seqs: Vec<TaskSeq> = members
            .iter()
            .map(|member| decode_member_i64(member, 1).map(TaskSeq))
            .collect::<TableResult<_>>()?;
        let mut locked = self.overlay.read_active_tasks(seqs)?;
        locked.retain(|active| active.started_at.is_some_and(|started| started >= since));
        Ok(locked)
    }

    fn list_tasks_in_phases(
        &mut self,
        queue: QueueId,
        phases: &[TaskPhase],
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        let mut found = Vec::new();
        for phase in phases {
            found.append(&mut self.list_tasks_in_phase(queue, *phase, limit)?);
        }
        found.sort_unstable();
        found.truncate(limit);
        Ok(found)
    }

    fn list_running_tasks_of_handler(
        &mut self,
        handler: HandlerId,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        let mut running = Vec::new();
        for node in self.overlay.list_possible_lock_owner_ids()? {
            for active in self.list_tasks_locked_by_node(node)? {
                if self.overlay.read_queue(active.queue)?.is_some_and(|queue| queue.handler == handler) {
                    running.push(active.seq);
                }
                if running.len() >= limit {
                    return Ok(running);
                }
            }
        }
        Ok(running)
    }

    fn list_tasks_to_rescore(&mut self, queue: QueueId) -> TableResult<Vec<(TaskSeq, i64, Timestamp)>> {
        Ok(self
            .list_active_tasks_of_queue(queue)?
            .iter()
            .map(|active| (active.seq, active.priority, active.created_at))
            .collect())
    }

    fn list_tasks_to_regroup(
        &mut self,
        queue: QueueId,
    ) -> TableResult<Vec<(WaitingTask, TaskPhase, String)>> {
        let has_no_lane =
            |active: &ActiveTaskRow| active.phase.is_waiting_or_running() && active.lane.is_none();
        let tasks: Vec<ActiveTaskRow> =
            self.list_active_tasks_of_queue(queue)?.into_iter().filter(has_no_lane).collect();
        let events: Vec<EventId> = tasks.iter().filter_map(|active| active.event).collect();
        self.prefetch_task_subjects(&events, &[])?;
        let mut found = Vec::new();
        for active in tasks {
            let event = active.event.map(|id| self.overlay.read_event(id)).transpose()?.flatten();
            if let Some(key) = event.and_then(|event| event.key) {
                found.push((
                    WaitingTask::from_row(&active, active.due_time()),
                    active.phase,
                    key.to_string(),
                ));
            }
        }
        found.sort_by_key(|(waiting, phase, _)| (phase.code() < TaskPhase::Scheduled.code(), waiting.seq));
        Ok(found)
    }

    fn prefetch_task_subjects(&mut self, events: &[EventId], orders: &[i64]) -> TableResult<()> {
        let events = events.iter().map(|id| CacheFetch::Event(*id));
        let orders =
            orders.iter().map(|number| CacheFetch::Row(Table::Orders, encode_decimal_field(*number)));
        self.overlay.fetch_into_cache(events.chain(orders).collect())
    }
}

impl RedisTables {
    /// Replaces the row and the index entries of an active task; `None` before or after means that it is created or deleted.
    fn replace_task_and_index_entries(
        &mut self,
        before: Option<&ActiveTaskRow>,
        after: Option<&ActiveTaskRow>,
    ) -> TableResult<()> {
        let old = before.map(task_indexes::active_task_entries).unwrap_or_default();
        let new = after.map(task_indexes::active_task_entries).unwrap_or_default();
        for (index, member) in old.iter().filter(|entry| !new.contains(entry)) {
            self.overlay.remove_member(index.clone(), member.clone());
        }
        for (index, member) in new.iter().filter(|entry| !old.contains(entry)) {
            self.overlay.add_member(index.clone(), member.clone());
        }
        match (after, before) {
            (Some(active), _) => {
                let (bucket, field) = task_bucket_and_field(active.seq);
                let row = rows::encode_active_task(&ActiveTaskColumns::from_row(active));
                self.overlay.write_row(Table::ActiveTasks(bucket), field, row);
                self.write_active_source_task_keys(active)
            }
            (None, Some(active)) => {
                let (bucket, field) = task_bucket_and_field(active.seq);
                self.overlay.delete_row(Table::ActiveTasks(bucket), field);
                self.remove_inactive_task_from_priority_queue(active)
            }
            (None, None) => Ok(()),
        }
    }

    /// Changes an existing task.
    fn update_task(&mut self, seq: TaskSeq, change: impl FnOnce(&mut ActiveTaskRow)) -> TableResult<()> {
        let before = self
            .overlay
            .read_active_task(seq)?
            .ok_or_else(|| Fault::damaged(format!("no task {}", seq.0)))?;
        let mut after = before.clone();
        change(&mut after);
        self.replace_task_and_index_entries(Some(&before), Some(&after))
    }

    /// Lists at most `limit` tasks of a queue in a phase; all of them if the phase is `Locked`.
    fn list_tasks_in_phase(
        &mut self,
        queue: QueueId,
        phase: TaskPhase,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        match phase {
            TaskPhase::Ready => {
                self.overlay.read_task_seqs_from_index(&Index::ReadyTasks(queue), &[], 2, limit)
            }
            TaskPhase::Locked => {
                let mut locked = Vec::new();
                for node in self.overlay.list_possible_lock_owner_ids()? {
                    let locked_tasks = self.list_tasks_locked_by_node(node)?;
                    locked.extend(
                        locked_tasks.iter().filter(|active| active.queue == queue).map(|active| active.seq),
                    );
                }
                Ok(locked)
            }
            TaskPhase::BlockedByTask
            | TaskPhase::SyncGated
            | TaskPhase::Delayed
            | TaskPhase::Scheduled
            | TaskPhase::Halted
            | TaskPhase::Missing => {
                self.overlay.read_task_seqs_from_index(&Index::tasks_in_phase(queue, phase), &[], 0, limit)
            }
        }
    }

    /// Lists all active tasks of a queue by age.
    fn list_active_tasks_of_queue(&mut self, queue: QueueId) -> TableResult<Vec<ActiveTaskRow>> {
        const ALL_PHASES: [TaskPhase; 8] = [
            TaskPhase::BlockedByTask,
            TaskPhase::SyncGated,
            TaskPhase::Delayed,
            TaskPhase::Ready,
            TaskPhase::Scheduled,
            TaskPhase::Locked,
            TaskPhase::Halted,
            TaskPhase::Missing,
        ];
        let seqs = self.list_tasks_in_phases(queue, &ALL_PHASES, usize::MAX)?;
        self.overlay.read_active_tasks(seqs)
    }
}
