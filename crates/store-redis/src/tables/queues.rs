//! Queues and their ready tasks.

use std::collections::BTreeMap;
use std::ops::Bound;

use pointsman_core::task::QueueSubject;
use pointsman_core::{TaskSeq, Tenant};
use pointsman_store::columns::QueueColumns;
use pointsman_store::error::TableResult;
use pointsman_store::invalidation::Invalidation;
use pointsman_store::row::{ActiveTaskRow, HandlerId, QueueCounts, QueueId, QueueRow, RankRange, TaskPhase};
use pointsman_store::tables::QueueTable;

use super::RedisTables;
use crate::codec::{MemberOrField, decode_member_i64};
use crate::connection::{CommandArgs, to_arg};
use crate::keys::{Index, TASKS_PER_BUCKET, Table, task_bucket_and_field};
use crate::overlay::{ALL_MEMBERS, ScanOrder, decode_list, decode_optional_bytes};
use crate::{rows, script, task_indexes};

impl QueueTable for RedisTables {
    fn list_queues(&mut self) -> TableResult<Vec<QueueRow>> {
        self.overlay.read_queues()
    }

    fn create_queue(
        &mut self,
        handler: HandlerId,
        tenant: &Tenant,
        subject: &QueueSubject,
    ) -> TableResult<QueueId> {
        let id = self.assign_next_number(|store_state| &mut store_state.last_queue_id);
        let (tenant, subject, counts) = (tenant.clone(), subject.clone(), QueueCounts::default());
        let queue = QueueRow { id, handler, tenant, subject, counts };
        self.overlay.write_row(
            Table::Queues,
            id.to_string(),
            rows::encode_queue(&QueueColumns::from_row(&queue)),
        );
        self.record_invalidation(Invalidation::Queue(id));
        Ok(id)
    }

    fn write_queue_counts(&mut self, counts: &[(QueueId, QueueCounts)]) -> TableResult<()> {
        for (id, counts) in counts {
            self.overlay.write_row(Table::QueueCounts, id.to_string(), rows::encode_queue_counts(counts));
            self.record_invalidation(Invalidation::Queue(*id));
        }
        Ok(())
    }

    fn read_queue_head(&mut self, queue: QueueId) -> TableResult<Option<(i64, TaskSeq)>> {
        let first =
            self.overlay.read_members(&Index::ReadyTasks(queue), ALL_MEMBERS, ScanOrder::Ascending, 1)?;
        first
            .first()
            .map(|member| Ok((-decode_member_i64(member, 0)?, TaskSeq(decode_member_i64(member, 2)?))))
            .transpose()
    }

    fn list_rank_ranges(&mut self, queue: QueueId) -> TableResult<Vec<RankRange>> {
        let mut ranks: BTreeMap<(i64, Option<u16>), (i64, i64)> = BTreeMap::new();
        for member in self.overlay.read_members(
            &Index::ReadyTasks(queue),
            ALL_MEMBERS,
            ScanOrder::Ascending,
            usize::MAX,
        )? {
            let (score, rank) = (-decode_member_i64(&member, 0)?, decode_member_i64(&member, 1)?);
            let bucket = member.last_chunk().map(|bytes| u16::from_be_bytes(*bytes));
            let bucket = bucket.filter(|bucket| *bucket != u16::MAX);
            let (lowest, highest) = ranks.entry((score, bucket)).or_insert((rank, rank));
            (*lowest, *highest) = ((*lowest).min(rank), (*highest).max(rank));
        }
        Ok(ranks
            .into_iter()
            .map(|((score, bucket), (lowest, highest))| (score, bucket, lowest, highest))
            .collect())
    }

    /// Reads the first ready tasks of each queue with their events.
    fn list_first_ready_tasks_of_queues(
        &mut self,
        shares: &[(QueueId, i64)],
    ) -> TableResult<Vec<ActiveTaskRow>> {
        let requested: Vec<(Index, usize)> = shares
            .iter()
            .map(|(queue, share)| (Index::ReadyTasks(*queue), (*share).max(0) as usize))
            .collect();
        let command = self.ready_tasks_command(&requested);
        let found = decode_list(self.overlay.connection.execute(command)?)?;
        let mut ready = Vec::new();
        for ((index, limit), found) in requested.iter().zip(found) {
            let mut members = Vec::new();
            let mut parts = decode_list(found)?.into_iter();
            while let (Some(member), Some(task), Some(event)) = (parts.next(), parts.next(), parts.next()) {
                let Some(member) = decode_optional_bytes(member)? else { continue };
                self.cache_task_and_event(
                    TaskSeq(decode_member_i64(&member, 2)?),
                    decode_optional_bytes(task)?,
                    decode_optional_bytes(event)?,
                )?;
                members.push(MemberOrField::from_slice(&member));
            }
            for member in self.overlay.merge_pending_members(index, ScanOrder::Ascending, *limit, members) {
                ready.extend(self.overlay.read_active_task(TaskSeq(decode_member_i64(&member, 2)?))?);
            }
        }
        Ok(ready)
    }

    fn count_ready_tasks_before(&mut self, active: &ActiveTaskRow, limit: u64) -> TableResult<u64> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let member = task_indexes::ready_task_member(active);
        let upper = match active.phase {
            TaskPhase::Ready => Bound::Excluded(&*member),
            _ => Bound::Unbounded,
        };
        let index = Index::ReadyTasks(active.queue);
        Ok(self.overlay.read_members(&index, (Bound::Unbounded, upper), ScanOrder::Ascending, limit)?.len()
            as u64)
    }
}

impl RedisTables {
    fn ready_tasks_command(&self, requested: &[(Index, usize)]) -> CommandArgs {
        let keys = &self.overlay.keys;
        let mut key_args = vec![keys.journal_key(), keys.with_prefix("pointsman:active-tasks:")];
        let mut arguments = vec![to_arg(TASKS_PER_BUCKET.to_string())];
        for (index, limit) in requested {
            key_args.push(keys.index_key(index));
            arguments.push(to_arg((limit + self.overlay.count_pending_removals(index)).to_string()));
        }
        script::READY_TASKS.build_evalsha_command(key_args, arguments)
    }

    /// Caches a task and its event, which a script returned; does nothing without a task.
    fn cache_task_and_event(
        &mut self,
        seq: TaskSeq,
        task: Option<crate::overlay::Bytes>,
        event: Option<crate::overlay::Bytes>,
    ) -> TableResult<()> {
        let Some(task) = task else { return Ok(()) };
        if let Some((value, id)) = event.zip(rows::decode_active_task_event_id(&task)?) {
            self.overlay.cache_event(id, value);
        }
        let (bucket, field) = task_bucket_and_field(seq);
        self.overlay.cache_row(&Table::ActiveTasks(bucket), field, task);
        Ok(())
    }
}
