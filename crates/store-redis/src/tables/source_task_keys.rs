//! The keys of document 002 for external readers: the tasks of sources, the waiting ones, and the history of each
//! source and collection. They are written together with the tasks and never read here.

use pointsman_core::task::TaskState;
use pointsman_core::{TaskId, Timestamp};
use pointsman_store::error::TableResult;
use pointsman_store::row::{ActiveTaskRow, ArchivedTaskRow};

use super::RedisTables;
use crate::connection::{CommandArgs, args, to_arg};

/// Key of the waiting tasks by their scores: the highest one runs first.
const PRIORITY_QUEUE_KEY: &str = "sync_tasks_priority_queue";
/// Key of the waiting tasks by their numbers: of those with equal scores, the one with the lowest number runs first.
const TIE_BREAK_KEY: &str = "sync_tasks_sequence";

/// The fields that document 002 gives to a task of a source.
struct SourceTaskFields<'t> {
    id: TaskId,
    source: String,
    collection: String,
    priority: i64,
    created: Timestamp,
    started: Option<Timestamp>,
    finished: Option<Timestamp>,
    state: &'t TaskState,
}

impl RedisTables {
    /// Writes the keys of an active task.
    pub(super) fn write_active_source_task_keys(&mut self, active: &ActiveTaskRow) -> TableResult<()> {
        let Some((source, collection, id)) = self.source_task_identity(active.queue, active.seq)? else {
            return Ok(());
        };
        let task = SourceTaskFields {
            id,
            source,
            collection,
            priority: active.priority,
            created: active.created_at,
            started: active.started_at,
            finished: None,
            state: &active.lifecycle.state,
        };
        self.write_source_task_keys(&task);
        let is_waiting = matches!(active.lifecycle.state, TaskState::New { .. } | TaskState::Scheduled);
        if is_waiting {
            let score = active.priority * 1_000_000_000_000 - unix_seconds(active.created_at);
            self.overlay.add_extra_command(args![
                "ZADD",
                self.overlay.keys.with_prefix(PRIORITY_QUEUE_KEY),
                score.to_string(),
                task.id.as_str()
            ]);
            self.overlay.add_extra_command(args![
                "ZADD",
                self.overlay.keys.with_prefix(TIE_BREAK_KEY),
                active.seq.0.to_string(),
                task.id.as_str()
            ]);
        } else {
            self.remove_from_priority_queue(&task.id);
        }
        Ok(())
    }

    /// Removes a task that is not active any more from the waiting tasks.
    pub(super) fn remove_inactive_task_from_priority_queue(
        &mut self,
        active: &ActiveTaskRow,
    ) -> TableResult<()> {
        if let Some((_, _, id)) = self.source_task_identity(active.queue, active.seq)? {
            self.remove_from_priority_queue(&id);
        }
        Ok(())
    }

    pub(super) fn write_archived_source_task_keys(&mut self, archived: &ArchivedTaskRow) -> TableResult<()> {
        let Some((source, collection, id)) = self.source_task_identity(archived.queue, archived.seq)? else {
            return Ok(());
        };
        self.write_source_task_keys(&SourceTaskFields {
            id,
            source,
            collection,
            priority: archived.priority,
            created: archived.created_at,
            started: archived.started_at,
            finished: Some(archived.finished_at),
            state: &archived.lifecycle.state,
        });
        Ok(())
    }

    /// Returns the keys of an expired task: its hash, the history that contains it, and its member of the history.
    pub(super) fn keys_of_expired_source_task(
        &mut self,
        archived: &ArchivedTaskRow,
    ) -> TableResult<Option<[Vec<u8>; 3]>> {
        let identity = self.source_task_identity(archived.queue, archived.seq)?;
        Ok(identity.map(|(source, collection, id)| {
            let keys = &self.overlay.keys;
            let history = keys.with_prefix(&source_task_history_key(&source, &collection));
            [keys.with_prefix(&format!("sync_tasks#{id}")), history, to_arg(id.as_str())]
        }))
    }

    /// Returns source, collection and id of a task, if it belongs to a source.
    fn source_task_identity(
        &mut self,
        queue: i64,
        seq: pointsman_core::TaskSeq,
    ) -> TableResult<Option<(String, String, TaskId)>> {
        if !self.overlay.is_collection_queue(queue)? {
            return Ok(None);
        }
        let (handler, row) = self.overlay.read_queue_with_handler(queue)?;
        let Some(collection) = row.subject.collection() else { return Ok(None) };
        let id = TaskId::new(
            handler.as_str(),
            collection.as_str(),
            self.overlay.read_task_id_namespace()?.uuid_of_seq(seq),
        );
        Ok(Some((handler.to_string(), collection.to_string(), id)))
    }

    fn write_source_task_keys(&mut self, task: &SourceTaskFields<'_>) {
        let keys = &self.overlay.keys;
        let format_time = |time: Option<Timestamp>| time.map_or(String::new(), |time| time.to_string());
        let fields: [(&str, String); 8] = [
            ("id", task.id.to_string()),
            ("source", task.source.clone()),
            ("collection", task.collection.clone()),
            ("priority", task.priority.to_string()),
            ("created_at", task.created.to_string()),
            ("started_at", format_time(task.started)),
            ("finished_at", format_time(task.finished)),
            ("status", task.state.status().public_name(task.state.error_reason()).into()),
        ];
        let mut command: CommandArgs = args!["HSET", keys.with_prefix(&format!("sync_tasks#{}", task.id))];
        command.extend(fields.iter().flat_map(|(name, value)| [to_arg(name), to_arg(value)]));
        let history = keys.with_prefix(&source_task_history_key(&task.source, &task.collection));
        self.overlay.add_extra_command(command);
        self.overlay.add_extra_command(args![
            "ZADD",
            history,
            unix_seconds(task.created).to_string(),
            task.id.as_str()
        ]);
    }

    fn remove_from_priority_queue(&mut self, id: &TaskId) {
        for queue in [PRIORITY_QUEUE_KEY, TIE_BREAK_KEY] {
            self.overlay.add_extra_command(args!["ZREM", self.overlay.keys.with_prefix(queue), id.as_str()]);
        }
    }
}

fn source_task_history_key(source: &str, collection: &str) -> String {
    format!("sync_tasks_index:source#{source}:collection#{collection}")
}

fn unix_seconds(time: Timestamp) -> i64 {
    time.micros().div_euclid(1_000_000)
}
