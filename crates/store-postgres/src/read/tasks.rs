//! Reading tasks, their logs and their queues.

use std::collections::{HashMap, VecDeque};

use futures::future::{try_join, try_join3};
use pointsman_core::store::{LaneView, LogPage, MOST_ATTEMPTS, QueueView, StoredLine, TaskFilter, TaskPage};
use pointsman_core::task::{Attempt, LogLine, QueueOf, Realm, Task, TaskSeq};
use pointsman_core::{HandlerName, ObjectKey, TaskId, Tenant};
use pointsman_store::LANES;
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{Counts, level_of};
use pointsman_store::tables::seq_of;
use pointsman_store::views::{
    LANES_READ, LOG_BYTES, LiveNames, LiveRows, PastRows, TaskPaging, few_tasks, rows_wanted, task_of_live,
    task_of_past, with_success,
};
use tokio_postgres::Row;

use super::journal::{extent, tasks_of};
use super::{Chunk, most, orders};
use crate::rows::{LIVE, PAST, attempt_of, get, live_of, maybe_time, past_of, time};
use crate::session::{Query, Session, query};

/// What the public names of tasks are made with.
pub(super) async fn realm(session: &Session) -> Result<Realm> {
    let rows = session.query(query!("read/realm"), &[]).await?;
    let row = rows.first().ok_or_else(|| Fault::damaged("there is no realm"))?;
    get::<&str>(row, 0)?.parse().map(Realm).map_err(Fault::damaged)
}

/// A task with its attempts, wherever it lies.
pub(crate) async fn whole_task(session: &Session, seq: TaskSeq) -> Result<Option<Task>> {
    Ok(whole(session, &[seq]).await?.pop())
}

/// A task by its whole public name: the uuid alone is not enough.
pub(super) async fn task_named(session: &Session, id: &TaskId) -> Result<Option<Task>> {
    let Some(seq) = seq_of(realm(session).await?, id) else { return Ok(None) };
    Ok(whole_task(session, seq).await?.filter(|task| task.id == *id))
}

/// These tasks with their attempts, wherever they lie, the oldest first.
pub(super) async fn whole(session: &Session, seqs: &[TaskSeq]) -> Result<Vec<Task>> {
    let (mut tasks, mut attempts) = try_join(bare(session, seqs), attempts(session, seqs)).await?;
    for task in &mut tasks {
        let written = attempts.remove(&task.seq.0).unwrap_or_default();
        task.attempts = with_success(task, written);
    }
    Ok(tasks)
}

/// The same without their attempts.
async fn bare(session: &Session, seqs: &[TaskSeq]) -> Result<Vec<Task>> {
    let seqs: Vec<i64> = seqs.iter().map(|seq| seq.0).collect();
    let ask = async |query| -> Result<Vec<Row>> { Ok(session.query(query, &[&seqs]).await?) };
    let (unfinished, ended) = (query!("read/unfinished", INT8_ARRAY), query!("read/ended", INT8_ARRAY));
    let (realm, unfinished, ended) = try_join3(realm(session), ask(unfinished), ask(ended)).await?;
    let unfinished = unfinished.iter().map(|row| of_unfinished(row, realm));
    let tasks = unfinished.chain(ended.iter().map(|row| of_ended(row, realm)));
    let mut tasks = tasks.collect::<Result<Vec<Task>>>()?;
    tasks.sort_by_key(|task| task.seq);
    Ok(tasks)
}

/// The attempts that are written down, by task.
async fn attempts(session: &Session, seqs: &[TaskSeq]) -> Result<HashMap<i64, Vec<Attempt>>> {
    let seqs: Vec<i64> = seqs.iter().map(|seq| seq.0).collect();
    let query = query!("read/attempts", INT8_ARRAY, INT8);
    let mut attempts: HashMap<i64, Vec<Attempt>> = HashMap::new();
    for row in &session.query(query, &[&seqs, &most(MOST_ATTEMPTS)]).await? {
        attempts.entry(get(row, 0)?).or_default().push(attempt_of(row, 1)?);
    }
    Ok(attempts)
}

/// From a row with an unfinished task and then handler, tenant, what its queue is of, type and key of its event, key of
/// its order, and when its last attempt ended.
fn of_unfinished(row: &Row, realm: Realm) -> Result<Task> {
    let live = live_of(row, 0)?;
    let names = (handler(row, LIVE)?, tenant(row, LIVE + 1)?);
    let of = QueueOf::read(get(row, LIVE + 2)?).map_err(Fault::damaged)?;
    let event = match (live.event, get::<Option<String>>(row, LIVE + 3)?) {
        (Some(_), Some(kind)) => Some((kind, get(row, LIVE + 4)?)),
        (Some(event), None) => return Err(Fault::damaged(format!("the event {event} of a task is gone"))),
        (None, _) => None,
    };
    let names = LiveNames::new(names, &of, event, get(row, LIVE + 5)?);
    task_of_live(live, LiveNames { finished_at: maybe_time(row, LIVE + 6)?, ..names }, realm)
}

/// From a row with an ended task and then handler and tenant.
fn of_ended(row: &Row, realm: Realm) -> Result<Task> {
    task_of_past(past_of(row, 0)?, handler(row, PAST)?, tenant(row, PAST + 1)?, realm)
}

/// The first lanes of an object in which somebody stands.
pub(super) async fn lanes(session: &Session, tenant: &Tenant, key: &ObjectKey) -> Result<Vec<LaneView>> {
    let rows = async {
        let query = query!("read/lanes", TEXT, TEXT, INT8, INT8, INT8);
        let (tenant, key, counted) = (tenant.as_str(), key.as_str(), LaneView::COUNTED as i64);
        Ok(session.query(query, &[&tenant, &key, &LANES, &most(LANES_READ), &counted]).await?)
    };
    let (realm, rows) = try_join(realm(session), rows).await?;
    let lane = |row: &Row| {
        let standing: i64 = get(row, LIVE + 7)?;
        Ok(LaneView::new(of_unfinished(row, realm)?, standing.unsigned_abs()))
    };
    rows.iter().map(lane).collect()
}

fn handler(row: &Row, at: usize) -> Result<HandlerName> {
    HandlerName::new(get::<&str>(row, at)?).map_err(Fault::damaged)
}

fn tenant(row: &Row, at: usize) -> Result<Tenant> {
    Tenant::new(get::<&str>(row, at)?).map_err(Fault::damaged)
}

/// Tasks, the newest first: unfinished ones and history, merged.
pub(super) async fn list(
    session: &Session,
    filter: &TaskFilter,
    before: Option<TaskSeq>,
    limit: usize,
) -> Result<TaskPage> {
    if let Some(event) = filter.event {
        let (extent, seqs) = try_join(extent(session), tasks_of(session, event)).await?;
        return Ok(few_tasks(bare(session, &seqs).await?, filter, before, limit, extent));
    }
    let (extent, realm, of_source) =
        try_join3(extent(session), realm(session), is_source(session, filter)).await?;
    let (unfinished, ended) = rows_wanted(filter, of_source);
    let mut unfinished = Descending::new(Some(unfinished_query(unfinished)), of_unfinished, before, limit);
    let mut ended = Descending::new(ended_query(ended), of_ended, before, limit);
    let mut page = TaskPaging::new(filter, limit, extent);
    let more = loop {
        try_join(unfinished.fill(session, realm), ended.fill(session, realm)).await?;
        let next = if unfinished.newest() > ended.newest() { &mut unfinished } else { &mut ended };
        let Some(task) = next.found.pop_front() else { break false };
        if !page.take(task) {
            try_join(unfinished.fill(session, realm), ended.fill(session, realm)).await?;
            break unfinished.newest().or(ended.newest()).is_some();
        }
    };
    Ok(page.page(more))
}

/// The fences of those attempts that do not hold their task.
pub(super) async fn lost(session: &Session, held: &[(TaskSeq, i64)]) -> Result<Vec<i64>> {
    let (tasks, fences): (Vec<i64>, Vec<i64>) = held.iter().map(|(task, fence)| (task.0, *fence)).unzip();
    let rows = session.query(query!("read/lost", INT8_ARRAY, INT8_ARRAY), &[&tasks, &fences]).await?;
    rows.iter().map(|row| get(row, 0)).collect()
}

async fn is_source(session: &Session, filter: &TaskFilter) -> Result<bool> {
    let Some(handler) = &filter.handler else { return Ok(false) };
    let rows = session.query(query!("read/is_source", TEXT), &[&handler.as_str()]).await?;
    rows.first().map_or(Ok(false), |row| get(row, 0))
}

fn unfinished_query(rows: LiveRows) -> &'static Query {
    match rows {
        LiveRows::All => query!("read/list_unfinished", INT8, INT8),
        LiveRows::Running => query!("read/list_running", INT8, INT8),
        LiveRows::Stranded => query!("read/list_stranded", INT8, INT8),
    }
}

fn ended_query(rows: PastRows) -> Option<&'static Query> {
    match rows {
        PastRows::All => Some(query!("read/list_ended", INT8, INT8)),
        PastRows::None => None,
        PastRows::OfSources => Some(query!("read/list_runs", INT8, INT8)),
        PastRows::Failed => Some(query!("read/list_failed", INT8, INT8)),
    }
}

/// Tasks of one table, the newest first, fetched as they are wanted.
struct Descending {
    /// None: there are no more.
    query: Option<&'static Query>,
    task_of: fn(&Row, Realm) -> Result<Task>,
    found: VecDeque<Task>,
    below: i64,
    chunk: Chunk,
}

impl Descending {
    fn new(
        query: Option<&'static Query>,
        task_of: fn(&Row, Realm) -> Result<Task>,
        before: Option<TaskSeq>,
        limit: usize,
    ) -> Self {
        let below = before.map_or(i64::MAX, |seq| seq.0);
        // One more than is wanted tells whether there is more.
        let chunk = Chunk::of(limit.saturating_add(1));
        Self { query, task_of, found: VecDeque::new(), below, chunk }
    }

    /// Sees to it that the next one is at hand, if there is one.
    async fn fill(&mut self, session: &Session, realm: Realm) -> Result<()> {
        let Some(query) = self.query.filter(|_| self.found.is_empty()) else { return Ok(()) };
        let rows = session.query(query, &[&self.below, &self.chunk.rows()]).await?;
        self.found = rows.iter().map(|row| (self.task_of)(row, realm)).collect::<Result<_>>()?;
        self.below = self.found.back().map_or(self.below, |task| task.seq.0);
        if self.chunk.is_last(&rows, 0) {
            self.query = None;
        }
        self.chunk = self.chunk.grown();
        Ok(())
    }

    fn newest(&self) -> Option<TaskSeq> {
        self.found.front().map(|task| task.seq)
    }
}

pub(super) async fn logs(session: &Session, id: &TaskId, from: u64, limit: usize) -> Result<Option<LogPage>> {
    let Some(seq) = seq_of(realm(session).await?, id) else { return Ok(None) };
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    let lines = async {
        let query = query!("read/log", INT8, INT8, INT8, INT8);
        Ok(session.query(query, &[&seq.0, &from, &most(limit), &most(LOG_BYTES)]).await?)
    };
    let (tasks, lines) = try_join(bare(session, &[seq]), lines).await?;
    let Some(task) = tasks.into_iter().find(|task| task.id == *id) else { return Ok(None) };
    let lines = lines.iter().map(line_of).collect::<Result<_>>()?;
    Ok(Some(LogPage { lines, status: task.life.state.status() }))
}

fn line_of(row: &Row) -> Result<StoredLine> {
    let level = level_of(get::<i16>(row, 2)?.into());
    let line = LogLine { time: time(row, 1)?, level, message: get(row, 3)? };
    Ok(StoredLine { number: get::<i64>(row, 0)? as u64, line })
}

pub(super) async fn queues(session: &Session, handler: Option<&HandlerName>) -> Result<Vec<QueueView>> {
    let name = handler.map(HandlerName::as_str);
    let rows = async { Ok(session.query(query!("read/queues", TEXT), &[&name]).await?) };
    let (around, rows) = try_join(orders::surroundings(session), rows).await?;
    let view = |row: &Row| {
        let of = QueueOf::read(get(row, 2)?).map_err(Fault::damaged)?;
        let counts = Counts {
            ready: get(row, 3)?,
            waiting: get(row, 4)?,
            scheduled: get(row, 5)?,
            running: get(row, 6)?,
            halted: get(row, 7)?,
            missing: get(row, 8)?,
        };
        let names = (self::handler(row, 0)?, tenant(row, 1)?);
        Ok(around.queue(names.0, names.1, of, counts, maybe_time(row, 9)?))
    };
    rows.iter().map(view).collect()
}
