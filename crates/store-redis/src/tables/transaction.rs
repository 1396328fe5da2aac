//! How a transaction begins, commits and is given up.

use std::time::{Duration, Instant};

use pointsman_core::Tenant;
use pointsman_store::commits::{Change, Commit, Point, changed, since, told};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::HandlerId;
use pointsman_store::tables::{Changes, Foreseen, Memory};
use redis::Value;

use super::RedisTables;
use crate::codec::decimal_field;
use crate::command_buffer::CommandBuffer;
use crate::connection::{CommandArgs, args};
use crate::error::{is_broken, refused};
use crate::keys::{Table, active_task_row};
use crate::lookup::object_fetches;
use crate::overlay::{
    CacheFetch, FetchedReplies, decode_integer, decode_list, decode_optional_bytes, decode_strings,
    decode_text_reply,
};
use crate::standing::{
    GONE, Standing, Told, decode_commit, encode_commit, pack_touched, point_bytes, unpack_touched,
};
use crate::turn::{self, Sent};

/// How long a commit whose answer was lost is sent again.
const PERSISTENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);

/// So many first ones of a lane are looked at: one may end, and then the next has its turn.
const HEADS: usize = 2;

/// Whoever has met another writer, or may have, tells what it writes for so many transactions.
const COMPANY: u32 = 64;

/// What the turn's script said.
enum Turn {
    Taken(Box<Standing>, Told),
    Waiting,
    /// Nothing was ever written here.
    Nothing,
}

/// The turn was taken.
struct Taken {
    standing: Standing,
    told: Told,
    /// What was asked for along with the turn.
    seen: FetchedReplies,
    /// Something was left for an object that will be written to.
    occupied: bool,
}

impl RedisTables {
    /// Takes the turn, and reads how far everything has come; `false` if nothing is there yet.
    pub(crate) fn open(&self) -> Result<bool> {
        match self.wait_for_turn(&Foreseen::default())? {
            Some(taken) => {
                self.standing.replace(taken.standing);
                self.hand_on()?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    pub(crate) fn begin(&self, foreseen: Foreseen) -> Result<Memory> {
        self.overlay.connection.stop_lock_renewal();
        self.changes.take();
        self.outbox.clear();
        self.registry_changed.set(false);
        let Some(Taken { standing, told, seen, occupied }) = self.wait_for_turn(&foreseen)? else {
            return Err(Fault::damaged(GONE));
        };
        self.standing.replace(standing.clone());
        self.before.replace(standing);
        let memory = self.memory(&told, seen)?;
        match memory {
            Memory::Current => {
                self.company.update(|left| left.saturating_sub(1));
                self.look_at_lanes(&foreseen)?;
            }
            Memory::Behind(_) => {
                self.company.set(COMPANY);
                self.look_ahead(&foreseen)?;
            }
            Memory::Unknown => {
                self.company.set(COMPANY);
                // Reading everything may take longer than a turn.
                self.overlay.connection.start_lock_renewal(&turn::renew(&self.overlay.keys, &self.me));
                self.look_ahead(&foreseen)?;
            }
        }
        self.look_at_outbox(&foreseen, occupied)?;
        Ok(memory)
    }

    /// Asks for the turn until it is there, and fetches what the transaction will look at.
    fn wait_for_turn(&self, foreseen: &Foreseen) -> Result<Option<Taken>> {
        loop {
            let before = vec![
                self.acquire_lock_command(),
                self.last_event_id_command(),
                self.outbox_exists_command(foreseen),
            ];
            let (answers, seen) = self.overlay.fetch_without_caching(before, self.questions(foreseen))?;
            let mut answers = answers.into_iter();
            let mut answer = || answers.next().unwrap_or(Value::Nil);
            match self.understand(answer())? {
                Turn::Taken(standing, told) => {
                    let given = decode_list(answer())?.into_iter().next().unwrap_or(Value::Nil);
                    self.outbox.begins(decode_optional_bytes(given)?, self.time.now());
                    let occupied = decode_integer(answer())? > 0;
                    return Ok(Some(Taken { standing: *standing, told, seen, occupied }));
                }
                Turn::Nothing => return Ok(None),
                // Somebody else is writing, and what was seen may be of before that.
                Turn::Waiting => {
                    drop(self.overlay.connection.execute(turn::wait(&self.overlay.keys, &self.me))?)
                }
            }
        }
    }

    fn acquire_lock_command(&self) -> CommandArgs {
        let known = self.remembered.get().map(|(point, _)| point.version);
        turn::ask(&self.overlay.keys, &self.me, known)
    }

    fn understand(&self, answer: Value) -> Result<Turn> {
        let mut parts = decode_list(answer)?.into_iter();
        let mut part = || parts.next().unwrap_or(Value::Nil);
        if decode_integer(part())? == 0 {
            return Ok(Turn::Waiting);
        }
        let point = decode_optional_bytes(part())?.filter(|point| !point.is_empty());
        let Some(point) = point else { return Ok(Turn::Nothing) };
        // What cannot be read was not told.
        let touched = decode_strings(part())?.iter().filter_map(|told| unpack_touched(told).ok()).collect();
        let mut commits = Vec::new();
        for told in parts {
            commits.extend(decode_optional_bytes(told)?.map(|told| decode_commit(&told)).transpose()?);
        }
        commits.reverse();
        Ok(Turn::Taken(Box::new(Standing::decode(&point)?), Told { commits, touched }))
    }

    /// How the memory beside the tables stands to what they hold.
    fn memory(&self, told: &Told, seen: FetchedReplies) -> Result<Memory> {
        let (point, registry) = {
            let standing = self.standing.borrow();
            (standing.point, standing.registry)
        };
        let before = self.remembered.replace(Some((point, registry)));
        let changes = match before {
            Some((known, same)) if same == registry => {
                let later = since(&told.commits, known, |commit| commit.point);
                later.and_then(|later| changed(later.iter().map(|commit| commit.changes.as_ref())))
            }
            Some(_) | None => None,
        };
        let is_current = changes.is_some() && before.is_some_and(|(known, _)| known == point);
        if !is_current {
            let touched = changes.as_ref().and(before).and_then(|(known, _)| told.touched_since(known));
            match touched {
                Some(touched) => touched.iter().for_each(|touched| self.overlay.drop_invalidated(touched)),
                None => self.overlay.clear(),
            }
        }
        self.overlay.cache_fetched(seen)?;
        if is_current {
            return Ok(Memory::Current);
        }
        match changes {
            Some(changes) => self.catch_up(changes).map(Memory::Behind),
            None => Ok(Memory::Unknown),
        }
    }

    fn catch_up(&self, changes: Vec<Change>) -> Result<Changes> {
        let counters = self.standing.borrow().counters;
        let mut caught = Changes { counters, ..Changes::default() };
        let (mut queues, mut all) = (vec![], false);
        for change in changes {
            match change {
                Change::Queue(id) => queues.push(id),
                Change::Pace(id) => caught.paces.push((id, self.overlay.read_rate_limiter(id)?)),
                Change::Task(seq) => caught.tasks.push(seq),
                Change::AllQueues => all = true,
            }
        }
        if all {
            caught.queues = self.overlay.read_queues()?;
            return Ok(caught);
        }
        queues.sort_unstable();
        queues.dedup();
        let row = |id: &i64| {
            let field = decimal_field(*id);
            [CacheFetch::Row(Table::Queues, field.clone()), CacheFetch::Row(Table::QueueCounts, field)]
        };
        self.overlay.fetch(queues.iter().flat_map(row).collect())?;
        for id in queues {
            caught.queues.extend(self.overlay.read_queue(id)?);
        }
        Ok(caught)
    }

    /// What a transaction will look at, as far as that can be asked for at once.
    fn questions(&self, foreseen: &Foreseen) -> Vec<CacheFetch> {
        let mut questions = Vec::new();
        let unknown =
            |(tenant, key, _): &&(Tenant, String, HandlerId)| !self.overlay.is_object_cached(tenant, key);
        for (tenant, key, _) in foreseen.objects.iter().filter(unknown) {
            questions.extend(object_fetches(tenant, key));
        }
        questions.extend(foreseen.lanes.iter().copied().map(CacheFetch::Lane));
        let answer = |(tenant, key): &(Tenant, String)| answer_field(tenant, key);
        questions.extend(foreseen.tasks.iter().map(|seq| CacheFetch::from(active_task_row(*seq))));
        questions.extend(
            foreseen.answers.iter().map(|a| CacheFetch::Row(Table::IdempotencyRecords, answer(a).into())),
        );
        questions
    }

    /// Fetches what more jobs will look at.
    pub(crate) fn look_ahead(&self, foreseen: &Foreseen) -> Result<()> {
        self.overlay.fetch(self.questions(foreseen))?;
        self.look_at_lanes(foreseen)
    }

    /// More jobs share the transaction.
    pub(crate) fn let_in(&self, foreseen: &Foreseen) -> Result<()> {
        let asked = vec![self.outbox_exists_command(foreseen)];
        let occupied = self.overlay.fetch_after(asked, self.questions(foreseen))?.pop();
        self.look_at_lanes(foreseen)?;
        self.look_at_outbox(foreseen, decode_integer(occupied.unwrap_or(Value::Nil))? > 0)
    }

    /// The lanes of objects, whose numbers are known only now; then those who come first in all lanes.
    fn look_at_lanes(&self, foreseen: &Foreseen) -> Result<()> {
        let mut lanes = Vec::with_capacity(foreseen.objects.len());
        for (tenant, key, handler) in foreseen.objects.iter().filter(|(_, _, handler)| *handler != 0) {
            if let Some(object) = self.overlay.read_object(tenant, key)? {
                lanes.push(pointsman_store::lane_number(object.number, *handler));
            }
        }
        self.overlay.fetch(lanes.iter().copied().map(CacheFetch::Lane).collect())?;
        self.overlay.fetch_lane_heads(foreseen.lanes.iter().copied().chain(lanes), HEADS)
    }

    /// `next.event.id` of 001 holds the last id that was given out.
    fn tell_last_id(&self) {
        let last = self.standing.borrow().counters.last_event;
        if last != self.before.borrow().counters.last_event {
            self.overlay.add_command(args![
                "SET",
                self.overlay.keys.with_prefix("next.event.id"),
                last.to_string()
            ]);
        }
    }

    pub(crate) fn commit(&self) -> Result<()> {
        self.commit_and(false)
    }

    /// Commits what was done so far, and begins the next transaction: nobody else has the turn between them.
    pub(crate) fn commit_and_go_on(&self) -> Result<()> {
        self.commit_and(true)?;
        self.before.replace(self.standing.borrow().clone());
        self.registry_changed.set(false);
        self.outbox.ends();
        self.look_at_all_left()
    }

    fn commit_and(&self, keep_lock: bool) -> Result<()> {
        self.tell_last_id();
        let writes = self.overlay.encode_writes();
        let registry_changed = self.registry_changed.get();
        if writes.is_empty() && !registry_changed && *self.standing.borrow() == *self.before.borrow() {
            return self.hand_on();
        }
        let next = {
            let mut standing = self.standing.borrow_mut();
            standing.point = standing.point.next();
            standing.registry += i64::from(registry_changed);
            standing.clone()
        };
        let commit = Commit { point: next.point, changes: told(self.changes.take()) };
        let touched = (self.company.get() > 0).then(|| self.overlay.invalidation_record().encode()).flatten();
        let sent = Sent {
            before: point_bytes(self.before.borrow().point),
            point: next.encode(),
            told: encode_commit(&commit),
            touched: touched.map(|touched| pack_touched(next.point, touched)).unwrap_or_default(),
            keep_lock,
            fences: &self.outbox.fences(),
            writes: Some(&writes),
        };
        self.send_commit(&turn::commit(&self.overlay.keys, &self.me, sent))?;
        self.rows.set(self.rows.get() + writes.arg_count() as u64 / 2);
        self.remembered.set(Some((next.point, next.registry)));
        Ok(())
    }

    /// Sends a commit, and sends it again if its answer does not come: Redis knows it by its mark.
    fn send_commit(&self, commit: &CommandBuffer) -> Result<()> {
        let begun = Instant::now();
        let answer = loop {
            // Should it not be done, all that was seen is forgotten anyway.
            match self.overlay.connection.execute_buffer_while(commit, &mut || self.overlay.mark_committed())
            {
                Err(fault) if is_broken(&fault) && begun.elapsed() < PERSISTENCE => std::thread::sleep(PAUSE),
                answer => break answer?,
            }
        };
        if let Value::Array(parts) = answer {
            let key = parts.into_iter().nth(1).map(decode_text_reply).transpose()?.unwrap_or_default();
            return Err(Fault::damaged(format!(
                "the key {key} is of another type than it should be; nothing was stored"
            )));
        }
        match decode_text_reply(answer)?.as_str() {
            "done" => Ok(()),
            "behind" => Err(refused("another node has written meanwhile; try again")),
            "unknown" => {
                Err(refused("its answer was lost for so long that nobody knows whether it was stored"))
            }
            _ => Err(refused("another worker has taken the events over; try again")),
        }
    }

    /// Lets the next one have the turn, without having written anything.
    fn hand_on(&self) -> Result<()> {
        self.overlay.connection.execute_buffer(&turn::hand_on(&self.overlay.keys, &self.me))?;
        self.overlay.mark_committed();
        Ok(())
    }

    /// Writes the first things that a store holds, unless another node was quicker.
    pub(crate) fn found(&self, texts: &[(&str, String)]) -> Result<()> {
        for (name, text) in texts {
            self.overlay.write_row(Table::Texts, name, text.clone().into_bytes());
        }
        let writes = self.overlay.encode_writes();
        let standing = Standing { point: Point::default().next(), ..Standing::default() };
        let commit = Commit { point: standing.point, changes: None };
        let (point, told) = (standing.encode(), encode_commit(&commit));
        let sent = Sent { point, told, writes: Some(&writes), ..Sent::default() };
        self.overlay.connection.execute_buffer(&turn::commit(&self.overlay.keys, &self.me, sent))?;
        self.overlay.clear();
        Ok(())
    }

    /// Whoever waits need not wait until the turn has run out, unless there is nobody to tell.
    pub(crate) fn roll_back(&self) {
        self.overlay.clear();
        self.remembered.set(None);
        if self.overlay.connection.is_open() && self.hand_on().is_err() {
            self.overlay.connection.disconnect();
        }
        self.overlay.clear();
    }
}

/// Where the answer for an idempotency key lies.
pub(super) fn answer_field(tenant: &Tenant, key: &str) -> Vec<u8> {
    format!("{tenant}/{key}").into_bytes()
}
