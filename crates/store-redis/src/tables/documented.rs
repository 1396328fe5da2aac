//! The keys of document 002, for readers that know no others: the tasks of sources, those that wait, and each pair's
//! history. They are written with whatever they tell of, and never read here.

use pointsman_core::task::State;
use pointsman_core::{TaskId, Timestamp};
use pointsman_store::error::Result;
use pointsman_store::row::{Live, Past};

use super::RedisTables;
use crate::connection::{CommandArgs, args, to_arg};

/// Waiting tasks, the greatest score first.
const QUEUE: &str = "sync_tasks_priority_queue";
/// The numbers of waiting tasks: of those with the same score, the least goes first.
const TIES: &str = "sync_tasks_sequence";

/// What the document tells of a task.
struct Documented<'t> {
    id: TaskId,
    source: String,
    collection: String,
    priority: i64,
    created: Timestamp,
    started: Option<Timestamp>,
    finished: Option<Timestamp>,
    state: &'t State,
}

impl RedisTables {
    /// An unfinished task was written.
    pub(super) fn document_live(&self, live: &Live) -> Result<()> {
        let Some((source, collection, id)) = self.named_in_document(live.queue, live.seq)? else {
            return Ok(());
        };
        let task = Documented {
            id,
            source,
            collection,
            priority: live.priority,
            created: live.created,
            started: live.started,
            finished: None,
            state: &live.life.state,
        };
        self.write_document(&task);
        let waits = matches!(live.life.state, State::New { .. } | State::Scheduled);
        if waits {
            let score = live.priority * 1_000_000_000_000 - seconds(live.created);
            self.overlay.add_command(args![
                "ZADD",
                self.overlay.keys.with_prefix(QUEUE),
                score.to_string(),
                task.id.as_str()
            ]);
            self.overlay.add_command(args![
                "ZADD",
                self.overlay.keys.with_prefix(TIES),
                live.seq.0.to_string(),
                task.id.as_str()
            ]);
        } else {
            self.leaves_queue(&task.id);
        }
        Ok(())
    }

    /// An unfinished task was taken out of its table: it has ended, or is gone.
    pub(super) fn document_left(&self, live: &Live) -> Result<()> {
        if let Some((_, _, id)) = self.named_in_document(live.queue, live.seq)? {
            self.leaves_queue(&id);
        }
        Ok(())
    }

    pub(super) fn document_past(&self, past: &Past) -> Result<()> {
        let Some((source, collection, id)) = self.named_in_document(past.queue, past.seq)? else {
            return Ok(());
        };
        self.write_document(&Documented {
            id,
            source,
            collection,
            priority: past.priority,
            created: past.created,
            started: past.started,
            finished: Some(past.finished),
            state: &past.life.state,
        });
        Ok(())
    }

    /// What is told of an ended task that is forgotten: its key, its pair's history, and its name there.
    pub(super) fn documented(&self, past: &Past) -> Result<Option<[Vec<u8>; 3]>> {
        let named = self.named_in_document(past.queue, past.seq)?;
        Ok(named.map(|(source, collection, id)| {
            let keys = &self.overlay.keys;
            let history = keys.with_prefix(&history(&source, &collection));
            [keys.with_prefix(&format!("sync_tasks#{id}")), history, to_arg(id.as_str())]
        }))
    }

    /// Source, collection and id of a task, if it is a source's.
    fn named_in_document(
        &self,
        queue: i64,
        seq: pointsman_core::TaskSeq,
    ) -> Result<Option<(String, String, TaskId)>> {
        if !self.overlay.is_source_queue(queue)? {
            return Ok(None);
        }
        let (handler, row) = self.overlay.read_queue_with_handler(queue)?;
        let Some(collection) = row.of.collection() else { return Ok(None) };
        let id = TaskId::new(
            handler.as_str(),
            collection.as_str(),
            self.overlay.read_task_id_namespace()?.uuid(seq),
        );
        Ok(Some((handler.to_string(), collection.to_string(), id)))
    }

    fn write_document(&self, task: &Documented<'_>) {
        let keys = &self.overlay.keys;
        let time = |time: Option<Timestamp>| time.map_or(String::new(), |time| time.to_string());
        let fields: [(&str, String); 8] = [
            ("id", task.id.to_string()),
            ("source", task.source.clone()),
            ("collection", task.collection.clone()),
            ("priority", task.priority.to_string()),
            ("created_at", task.created.to_string()),
            ("started_at", time(task.started)),
            ("finished_at", time(task.finished)),
            ("status", task.state.status().public(task.state.reason()).into()),
        ];
        let mut hash: CommandArgs = args!["HSET", keys.with_prefix(&format!("sync_tasks#{}", task.id))];
        hash.extend(fields.iter().flat_map(|(name, value)| [to_arg(name), to_arg(value)]));
        self.overlay.add_command(hash);
        let history = keys.with_prefix(&history(&task.source, &task.collection));
        self.overlay.add_command(args!["ZADD", history, seconds(task.created).to_string(), task.id.as_str()]);
    }

    fn leaves_queue(&self, id: &TaskId) {
        for queue in [QUEUE, TIES] {
            self.overlay.add_command(args!["ZREM", self.overlay.keys.with_prefix(queue), id.as_str()]);
        }
    }
}

fn history(source: &str, collection: &str) -> String {
    format!("sync_tasks_index:source#{source}:collection#{collection}")
}

fn seconds(time: Timestamp) -> i64 {
    time.micros().div_euclid(1_000_000)
}
