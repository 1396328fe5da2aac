//! Writes that are held back, so that those of a whole transaction go over the wire together: of each table one
//! statement that inserts, one that changes and one that removes.

use std::collections::{BTreeMap, HashMap, HashSet};

use pointsman_core::order::Order;
use pointsman_core::task::LogLine;
use pointsman_core::{Event, TaskSeq, Tenant, Timestamp};
use pointsman_store::row::{AttemptRow, Live, Numbered, Object, Past, Phase};

use super::columns::{
    AttemptColumns, EventColumns, LineColumns, LiveColumns, LockColumns, OrderColumns, PastColumns,
};
use super::ended_orders::EndedOrderBatch;
use crate::link::{Piece, params};
use crate::session::query;

/// What is to become of the row of a task that is there already.
#[derive(Clone, Debug)]
pub(crate) enum Patch {
    Phase(Phase, i64),
    /// It is locked, and nothing else of it changes.
    Lock(Box<Live>),
    Whole(Box<Live>),
}

/// Lane, crowd and bucket.
type Track = (Option<i64>, Option<i64>, Option<i32>);

/// What is to become of the row of an order.
#[derive(Clone, Debug)]
pub(crate) enum HeldOrder {
    New(Order),
    Saved(Order),
    Gone,
}

/// An event, its number, the number of its first task, and how many tasks it has.
pub(crate) struct HeldEvent {
    pub(crate) event: Event,
    pub(crate) number: i64,
    pub(crate) first_task: i64,
    pub(crate) tasks: usize,
}

#[derive(Default)]
pub(crate) struct Held {
    events: Vec<HeldEvent>,
    marks: Vec<(i64, i64)>,
    objects: HashMap<(Tenant, String), Object>,
    answers: Vec<(Tenant, String, [u8; 32], String, i64)>,
    tasks: BTreeMap<TaskSeq, Live>,
    patches: BTreeMap<TaskSeq, Patch>,
    gone: HashSet<TaskSeq>,
    /// Of tasks that are there already: lanes, crowds and buckets; crowds alone; and scores.
    tracks: BTreeMap<TaskSeq, Track>,
    crowds: BTreeMap<TaskSeq, Option<i64>>,
    scores: BTreeMap<TaskSeq, i64>,
    ended: BTreeMap<TaskSeq, (i64, Past)>,
    attempts: AttemptColumns,
    lines: LineColumns,
    orders: BTreeMap<i64, HeldOrder>,
    pub(crate) ended_orders: EndedOrderBatch,
    /// Statements of tables that change seldom.
    others: Vec<Piece>,
    /// How many rows were ever written.
    pub(crate) rows: u64,
}

/// Every so many events, one is marked.
const MARK_EVERY: i64 = 1000;

impl Held {
    /// Forgets everything, because the transaction is rolled back.
    pub(crate) fn clear(&mut self) {
        *self = Self { rows: self.rows, ..Self::default() };
    }

    pub(crate) fn insert_event(&mut self, held: HeldEvent) {
        if held.number % MARK_EVERY == 0 {
            self.marks.push((held.number, held.event.id.as_i64()));
        }
        self.events.push(held);
    }

    pub(crate) fn event(&self, id: pointsman_core::EventId) -> Option<&Event> {
        let index = self.events.binary_search_by_key(&id, |held| held.event.id).ok()?;
        self.events.get(index).map(|held| &held.event)
    }

    pub(crate) fn put_object(&mut self, tenant: &Tenant, key: &str, object: &Object) {
        self.objects.insert((tenant.clone(), key.into()), object.clone());
    }

    pub(crate) fn put_answer(
        &mut self,
        tenant: &Tenant,
        key: &str,
        digest: [u8; 32],
        answer: &str,
        at: Timestamp,
    ) {
        self.answers.push((tenant.clone(), key.into(), digest, answer.into(), at.micros()));
    }

    /// A task as it will be; nothing if the table must be asked.
    pub(crate) fn task(&self, seq: TaskSeq) -> Option<Option<Live>> {
        if let Some(live) = self.tasks.get(&seq) {
            return Some(Some(live.clone()));
        }
        if self.gone.contains(&seq) {
            return Some(None);
        }
        let [tracked, crowded, scored] =
            [self.tracks.contains_key(&seq), self.crowds.contains_key(&seq), self.scores.contains_key(&seq)];
        if tracked || crowded || scored {
            return None;
        }
        match self.patches.get(&seq) {
            Some(Patch::Lock(live) | Patch::Whole(live)) => Some(Some((**live).clone())),
            Some(Patch::Phase(..)) | None => None,
        }
    }

    pub(crate) fn insert_task(&mut self, live: &Live) {
        self.tasks.insert(live.seq, live.clone());
    }

    pub(crate) fn delete_task(&mut self, seq: TaskSeq) {
        if self.tasks.remove(&seq).is_none() {
            self.patches.remove(&seq);
            self.gone.insert(seq);
        }
    }

    pub(crate) fn set_phase(&mut self, seq: TaskSeq, phase: Phase, rank: i64) {
        if let Some(live) = self.tasks.get_mut(&seq) {
            (live.phase, live.rank) = (phase, rank);
            return;
        }
        let patch = match self.patches.remove(&seq) {
            Some(Patch::Lock(mut live) | Patch::Whole(mut live)) => {
                (live.phase, live.rank) = (phase, rank);
                Patch::Whole(live)
            }
            Some(Patch::Phase(..)) | None => Patch::Phase(phase, rank),
        };
        self.patches.insert(seq, patch);
    }

    pub(crate) fn lock_task(&mut self, live: &Live) {
        match self.tasks.contains_key(&live.seq) || self.patches.contains_key(&live.seq) {
            true => self.rewrite_task(live),
            false => drop(self.patches.insert(live.seq, Patch::Lock(Box::new(live.clone())))),
        }
    }

    pub(crate) fn rewrite_task(&mut self, live: &Live) {
        match self.tasks.get_mut(&live.seq) {
            Some(held) => *held = live.clone(),
            None => {
                self.patches.insert(live.seq, Patch::Whole(Box::new(live.clone())));
            }
        }
    }

    pub(crate) fn set_track(&mut self, live: &Live) {
        match self.tasks.get_mut(&live.seq) {
            Some(held) => (held.lane, held.crowd, held.bucket) = (live.lane, live.crowd, live.bucket),
            None => {
                self.tracks.insert(live.seq, (live.lane, live.crowd, live.bucket.map(i32::from)));
            }
        }
    }

    pub(crate) fn set_crowd(&mut self, seq: TaskSeq, crowd: Option<i64>) {
        match self.tasks.get_mut(&seq) {
            Some(held) => held.crowd = crowd,
            None => {
                self.crowds.insert(seq, crowd);
            }
        }
    }

    pub(crate) fn set_score(&mut self, seq: TaskSeq, score: i64) {
        match self.tasks.get_mut(&seq) {
            Some(held) => held.score = score,
            None => {
                self.scores.insert(seq, score);
            }
        }
    }

    pub(crate) fn ended(&self, seq: TaskSeq) -> Option<&Past> {
        self.ended.get(&seq).map(|(_, past)| past)
    }

    pub(crate) fn insert_ended(&mut self, n: i64, past: &Past) {
        self.ended.insert(past.seq, (n, past.clone()));
    }

    /// Whether it was held back, and so needs no statement.
    pub(crate) fn delete_ended(&mut self, seq: TaskSeq) -> bool {
        self.ended.remove(&seq).is_some()
    }

    pub(crate) fn put_attempt(&mut self, attempt: &AttemptRow<'_>) {
        self.attempts.push(attempt);
    }

    pub(crate) fn add_lines(&mut self, task: TaskSeq, lines: Vec<LogLine>) {
        self.lines.push(task, lines);
    }

    pub(crate) fn order(&self, n: i64) -> Option<Option<Numbered>> {
        self.orders.get(&n).map(|held| match held {
            HeldOrder::New(order) | HeldOrder::Saved(order) => {
                let task = order.task.map_or(Some(None), |task| self.task(task));
                let running = match task {
                    Some(live) => live.is_some_and(|live| live.phase == Phase::Locked),
                    None => order.running,
                };
                Some(Numbered { n, order: Order { running, ..order.clone() } })
            }
            HeldOrder::Gone => None,
        })
    }

    pub(crate) fn insert_order(&mut self, n: i64, order: &Order) {
        self.orders.insert(n, HeldOrder::New(order.clone()));
    }

    pub(crate) fn save_order(&mut self, n: i64, order: &Order) {
        let held = match self.orders.get(&n) {
            Some(HeldOrder::New(_)) => HeldOrder::New(order.clone()),
            Some(HeldOrder::Saved(_) | HeldOrder::Gone) | None => HeldOrder::Saved(order.clone()),
        };
        self.orders.insert(n, held);
    }

    pub(crate) fn delete_order(&mut self, n: i64) {
        match self.orders.get(&n) {
            Some(HeldOrder::New(_)) => drop(self.orders.remove(&n)),
            Some(HeldOrder::Saved(_) | HeldOrder::Gone) | None => {
                self.orders.insert(n, HeldOrder::Gone);
            }
        }
    }

    pub(crate) fn hold(&mut self, piece: Piece) {
        self.others.push(piece);
    }

    /// The greatest number of an event that is held back.
    pub(crate) fn last_number(&self) -> Option<i64> {
        self.events.last().map(|held| held.number)
    }

    /// Whether anything is held back that belongs to the history.
    pub(crate) fn has_past(&self) -> bool {
        !self.ended.is_empty() || !self.attempts.is_empty() || !self.lines.is_empty()
    }

    /// The statements for all that is held back; then nothing is. `era`: how many tasks have ended.
    pub(crate) fn release(&mut self, era: i64) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.release_journal(&mut pieces);
        self.release_tasks(&mut pieces);
        self.release_tracks(&mut pieces);
        self.release_orders(&mut pieces);
        self.rows += self.ended_orders.release(&mut pieces);
        if let Some(attempts) = std::mem::take(&mut self.attempts).params(era) {
            self.rows += 1;
            pieces.push(Piece::Statement(
                query!(
                    "write/put_attempts",
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT2_ARRAY,
                    TEXT_ARRAY,
                    INT8
                ),
                attempts,
            ));
        }
        if let Some(lines) = std::mem::take(&mut self.lines).params(era) {
            self.rows += 1;
            pieces.push(Piece::Statement(
                query!("write/add_lines", INT8, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT2_ARRAY, TEXT_ARRAY),
                lines,
            ));
        }
        self.rows += self.others.len() as u64;
        pieces.append(&mut self.others);
        pieces
    }

    fn release_journal(&mut self, pieces: &mut Vec<Piece>) {
        if !self.events.is_empty() {
            self.rows += self.events.len() as u64;
            pieces.push(Piece::Statement(
                query!(
                    "write/insert_events",
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT4_ARRAY,
                    INT8_ARRAY,
                    INT4_ARRAY
                ),
                EventColumns::of(std::mem::take(&mut self.events)).params(),
            ));
        }
        if !self.marks.is_empty() {
            let (numbers, ids): (Vec<i64>, Vec<i64>) = std::mem::take(&mut self.marks).into_iter().unzip();
            pieces.push(Piece::Statement(
                query!("write/insert_marks", INT8_ARRAY, INT8_ARRAY),
                params![numbers, ids],
            ));
        }
        if !self.objects.is_empty() {
            self.rows += self.objects.len() as u64;
            let (mut tenants, mut keys, mut numbers, mut last, mut sent) =
                (vec![], vec![], vec![], vec![], vec![]);
            for ((tenant, key), object) in self.objects.drain() {
                tenants.push(tenant.to_string());
                keys.push(key);
                numbers.push(object.number);
                last.push(object.last.as_i64());
                sent.push(object.encode_sent());
            }
            pieces.push(Piece::Statement(
                query!("write/put_objects", TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, BYTEA_ARRAY),
                params![tenants, keys, numbers, last, sent],
            ));
        }
        if !self.answers.is_empty() {
            self.rows += self.answers.len() as u64;
            let (mut tenants, mut keys, mut digests, mut answers, mut at) =
                (vec![], vec![], vec![], vec![], vec![]);
            for (tenant, key, digest, answer, when) in self.answers.drain(..) {
                tenants.push(tenant.to_string());
                keys.push(key);
                digests.push(digest.to_vec());
                answers.push(answer);
                at.push(when);
            }
            pieces.push(Piece::Statement(
                query!("write/put_answers", TEXT_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, TEXT_ARRAY, INT8_ARRAY),
                params![tenants, keys, digests, answers, at],
            ));
        }
    }

    fn release_tasks(&mut self, pieces: &mut Vec<Piece>) {
        if !self.gone.is_empty() {
            self.rows += self.gone.len() as u64;
            let mut seqs: Vec<i64> = self.gone.drain().map(|seq| seq.0).collect();
            seqs.sort_unstable();
            pieces.push(Piece::Statement(query!("write/delete_tasks", INT8_ARRAY), params![seqs]));
        }
        if !self.tasks.is_empty() {
            self.rows += self.tasks.len() as u64;
            let tasks = std::mem::take(&mut self.tasks);
            pieces.push(Piece::Statement(
                query!(
                    "write/insert_tasks",
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT2_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT4_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT2_ARRAY,
                    TEXT_ARRAY
                ),
                LiveColumns::of(tasks.into_values()).whole(),
            ));
        }
        self.release_patches(pieces);
        if !self.ended.is_empty() {
            self.rows += self.ended.len() as u64;
            let ended = std::mem::take(&mut self.ended);
            pieces.push(Piece::Statement(
                query!(
                    "write/insert_ended",
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    INT2_ARRAY,
                    INT2_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY
                ),
                PastColumns::of(ended.into_values()).params(),
            ));
        }
    }

    fn release_patches(&mut self, pieces: &mut Vec<Piece>) {
        let (mut seqs, mut phases, mut ranks) = (vec![], vec![], vec![]);
        let (mut locked, mut whole) = (vec![], vec![]);
        self.rows += self.patches.len() as u64;
        for (seq, patch) in std::mem::take(&mut self.patches) {
            match patch {
                Patch::Lock(live) => locked.push(*live),
                Patch::Whole(live) => whole.push(*live),
                Patch::Phase(phase, rank) => {
                    seqs.push(seq.0);
                    phases.push(phase.code() as i16);
                    ranks.push(rank);
                }
            }
        }
        if !locked.is_empty() {
            pieces.push(Piece::Statement(
                query!(
                    "write/lock_tasks",
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY
                ),
                LockColumns::of(&locked).params(),
            ));
        }
        if !whole.is_empty() {
            pieces.push(Piece::Statement(
                query!(
                    "write/rewrite_tasks",
                    INT8_ARRAY,
                    INT2_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT2_ARRAY,
                    TEXT_ARRAY
                ),
                LiveColumns::of(whole.into_iter()).changeable(),
            ));
        }
        if !seqs.is_empty() {
            pieces.push(Piece::Statement(
                query!("write/set_phases", INT8_ARRAY, INT2_ARRAY, INT8_ARRAY),
                params![seqs, phases, ranks],
            ));
        }
    }

    fn release_tracks(&mut self, pieces: &mut Vec<Piece>) {
        if !self.tracks.is_empty() {
            let (mut seqs, mut lanes, mut crowds, mut buckets) = (vec![], vec![], vec![], vec![]);
            for (seq, (lane, crowd, bucket)) in std::mem::take(&mut self.tracks) {
                seqs.push(seq.0);
                lanes.push(lane);
                crowds.push(crowd);
                buckets.push(bucket);
            }
            self.rows += seqs.len() as u64;
            pieces.push(Piece::Statement(
                query!("write/set_tracks", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT4_ARRAY),
                params![seqs, lanes, crowds, buckets],
            ));
        }
        if !self.crowds.is_empty() {
            let crowds = std::mem::take(&mut self.crowds).into_iter().map(|(seq, crowd)| (seq.0, crowd));
            let (seqs, crowds): (Vec<i64>, Vec<Option<i64>>) = crowds.unzip();
            self.rows += seqs.len() as u64;
            let query = query!("write/set_crowds", INT8_ARRAY, INT8_ARRAY);
            pieces.push(Piece::Statement(query, params![seqs, crowds]));
        }
        if !self.scores.is_empty() {
            let scores = std::mem::take(&mut self.scores).into_iter().map(|(seq, score)| (seq.0, score));
            let (seqs, scores): (Vec<i64>, Vec<i64>) = scores.unzip();
            self.rows += seqs.len() as u64;
            let query = query!("write/set_scores", INT8_ARRAY, INT8_ARRAY);
            pieces.push(Piece::Statement(query, params![seqs, scores]));
        }
    }

    fn release_orders(&mut self, pieces: &mut Vec<Piece>) {
        let (mut new, mut saved, mut gone) = (vec![], vec![], vec![]);
        self.rows += self.orders.len() as u64;
        for (n, held) in std::mem::take(&mut self.orders) {
            match held {
                HeldOrder::New(order) => new.push((n, order)),
                HeldOrder::Saved(order) => saved.push((n, order)),
                HeldOrder::Gone => gone.push(n),
            }
        }
        if !gone.is_empty() {
            pieces.push(Piece::Statement(query!("write/delete_orders", INT8_ARRAY), params![gone]));
        }
        if !new.is_empty() {
            pieces.push(Piece::Statement(
                query!(
                    "write/insert_orders",
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY
                ),
                OrderColumns::of(new).whole(),
            ));
        }
        if !saved.is_empty() {
            pieces.push(Piece::Statement(
                query!(
                    "write/save_orders",
                    INT8_ARRAY,
                    TEXT_ARRAY,
                    TEXT_ARRAY,
                    INT8_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY,
                    INT8_ARRAY,
                    BOOL_ARRAY
                ),
                OrderColumns::of(saved).changeable(),
            ));
        }
    }
}
