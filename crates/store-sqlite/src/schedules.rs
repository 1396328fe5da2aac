//! The fire ledger: a row a planned time, written in the transaction that makes what it makes.

use std::collections::HashMap;

use pointsman_core::fire::{Fire, Makes, Outcome, Overlap, Punctual, Settle, Skipped};
use pointsman_core::store::{FirePage, Firing, OrderRefused, Plan, Standing};
use pointsman_core::task::Command;
use pointsman_core::{EventId, NewEvent, ScheduleName, TaskId, TaskSeq, Timestamp};
use rusqlite::{Connection, Row};

use crate::claim::Room;
use crate::error::{Fault, Result};
use crate::life::Remains;
use crate::read_journal::extent;
use crate::read_tasks;
use crate::writer::Txn;

/// What a firing came to.
struct Came {
    outcome: Outcome,
    event: Option<EventId>,
    task: Option<TaskId>,
}

impl Came {
    fn skipped(why: Skipped) -> Self {
        Self { outcome: Outcome::Skipped(why), event: None, task: None }
    }
}

impl Txn<'_> {
    pub(crate) fn plan(&mut self, plans: Vec<Plan>, now: Timestamp) -> Result<Vec<Standing>> {
        let mut known: HashMap<String, (String, i64, Option<i64>)> = {
            let sql = "SELECT name, expression, settled, unmet FROM pointsman_schedule";
            let mut statement = self.conn.prepare_cached(sql)?;
            let rows = statement.query_map([], |r| Ok((r.get(0)?, (r.get(1)?, r.get(2)?, r.get(3)?))))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        let mut standings = Vec::with_capacity(plans.len());
        let sql = "INSERT INTO pointsman_schedule (name, expression, settled) VALUES (?1, ?2, ?3)
                   ON CONFLICT (name) DO UPDATE SET expression = ?2, settled = ?3, unmet = NULL";
        let mut begin = self.conn.prepare_cached(sql)?;
        for plan in plans {
            let held = self.state.schedule_is_held(&plan.name);
            let before = known.remove(plan.name.as_str());
            standings.push(match before.filter(|(expression, ..)| *expression == plan.expression) {
                Some((_, settled, unmet)) => Standing {
                    settled: Timestamp::from_micros(settled),
                    held,
                    unmet: unmet.map(Timestamp::from_micros),
                },
                None => {
                    begin.execute((plan.name.as_str(), &plan.expression, now.micros()))?;
                    Standing { settled: now, held, unmet: None }
                }
            });
        }
        let mut forget = self.conn.prepare_cached("DELETE FROM pointsman_schedule WHERE name = ?1")?;
        for name in known.keys() {
            forget.execute([name])?;
        }
        Ok(standings)
    }

    pub(crate) fn settle(&mut self, firings: Vec<Firing>, now: Timestamp) -> Result<Vec<(Fire, bool)>> {
        firings.into_iter().map(|firing| self.settle_one(firing, now)).collect()
    }

    fn settle_one(&mut self, firing: Firing, now: Timestamp) -> Result<(Fire, bool)> {
        let Firing { schedule, planned, settle } = firing;
        let there = fire_at(self.conn, &schedule, planned)?;
        let caught_up = matches!(settle, Settle::Fire { when: Punctual::CaughtUp, .. });
        let may_make_up = caught_up && !self.state.schedule_is_held(&schedule);
        if let Some(fire) = there
            && !(may_make_up && fire.outcome == Outcome::Skipped(Skipped::Held))
        {
            return Ok((fire, false));
        }
        let came = self.come_to(&schedule, planned, settle, now)?;
        self.write_fire(&schedule, planned, &came, now)?;
        let Came { outcome, event, task } = came;
        Ok((Fire { planned, at: now, outcome, event, task }, true))
    }

    fn come_to(
        &mut self,
        schedule: &ScheduleName,
        planned: Timestamp,
        settle: Settle,
        now: Timestamp,
    ) -> Result<Came> {
        if self.state.schedule_is_held(schedule) {
            return Ok(Came::skipped(Skipped::Held));
        }
        let Settle::Fire { makes, when, overlap } = settle else { return Ok(Came::skipped(Skipped::Missed)) };
        match makes {
            Makes::Event(event) => self.fire_event(schedule, *event, when, overlap, now),
            Makes::Order(order) => Ok(match self.add_order(*order, now)? {
                Ok(added) => Came { outcome: when.into(), event: Some(added.event), task: None },
                Err(OrderRefused::Exists(..)) => Came::skipped(Skipped::Overlap),
                Err(_) => Came::skipped(Skipped::Gone),
            }),
            Makes::Run(run) => {
                if overlap == Overlap::Cancel {
                    let why = fired_again(schedule);
                    self.cancel_run(&run.pair, Remains::of_error(&why), now)?;
                }
                Ok(match self.run(&run, Some(planned), now)? {
                    Ok(ran) if ran.created => {
                        Came { outcome: when.into(), event: None, task: Some(ran.task) }
                    }
                    Ok(ran) => Came { task: Some(ran.task), ..Came::skipped(Skipped::Overlap) },
                    Err(_) => Came::skipped(Skipped::Gone),
                })
            }
        }
    }

    fn fire_event(
        &mut self,
        schedule: &ScheduleName,
        event: NewEvent,
        when: Punctual,
        overlap: Overlap,
        now: Timestamp,
    ) -> Result<Came> {
        let unfinished = match overlap {
            Overlap::Queue => vec![],
            Overlap::Skip | Overlap::Cancel => self.unfinished_of(schedule)?,
        };
        if let (Overlap::Skip, Some(first)) = (overlap, unfinished.first()) {
            let task = read_tasks::task(self.conn, *first)?.map(|task| task.id);
            return Ok(Came { task, ..Came::skipped(Skipped::Overlap) });
        }
        let why = fired_again(schedule);
        for task in unfinished {
            // A refusal means that it has ended meanwhile, which is what was wanted.
            let _ = self.command(task, Command::Cancel, Remains::of_error(&why), now)?;
        }
        let made = self.journal(vec![event], &mut Room::default(), now)?;
        Ok(Came { outcome: when.into(), event: made.first().map(|made| made.id), task: None })
    }

    /// The tasks of a schedule's last event that have not ended.
    fn unfinished_of(&self, schedule: &ScheduleName) -> Result<Vec<TaskSeq>> {
        let sql = "SELECT t.seq FROM pointsman_schedule s
                   JOIN pointsman_journal j ON j.id = s.last_event
                   JOIN pointsman_task t ON t.seq >= j.first_task AND t.seq < j.first_task + j.tasks
                   WHERE s.name = ?1 AND t.phase <= 5 ORDER BY t.seq";
        let mut statement = self.conn.prepare_cached(sql)?;
        let rows = statement.query_map([schedule.as_str()], |r| r.get(0).map(TaskSeq))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn write_fire(
        &mut self,
        schedule: &ScheduleName,
        planned: Timestamp,
        came: &Came,
        now: Timestamp,
    ) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO pointsman_fire (schedule, planned, at, outcome, event, task)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let outcome = serde_json::to_string(&came.outcome).map_err(Fault::damaged)?;
        let event = came.event.map(EventId::as_i64);
        self.conn.prepare_cached(sql)?.execute((
            schedule.as_str(),
            planned.micros(),
            now.micros(),
            outcome,
            event,
            came.task.as_ref().map(TaskId::as_str),
        ))?;
        let unmet = (came.outcome == Outcome::Skipped(Skipped::Held)).then_some(planned.micros());
        let sql = "UPDATE pointsman_schedule
                   SET settled = max(settled, ?2), unmet = coalesce(unmet, ?3), last_event = coalesce(?4, last_event)
                   WHERE name = ?1";
        self.conn.prepare_cached(sql)?.execute((schedule.as_str(), planned.micros(), unmet, event))?;
        Ok(())
    }

    pub(crate) fn made_up(&mut self, schedule: &ScheduleName, up_to: Timestamp) -> Result<()> {
        // A rule that was set meanwhile may have skipped later ones.
        let sql = "UPDATE pointsman_schedule SET unmet =
                     (SELECT min(planned) FROM pointsman_fire WHERE schedule = ?1 AND planned > ?2 AND outcome = ?3)
                   WHERE name = ?1";
        let held = serde_json::to_string(&Outcome::Skipped(Skipped::Held)).map_err(Fault::damaged)?;
        self.conn.prepare_cached(sql)?.execute((schedule.as_str(), up_to.micros(), held))?;
        Ok(())
    }
}

/// What a task says that its schedule has ended.
fn fired_again(schedule: &ScheduleName) -> String {
    format!("the schedule {schedule} fired again")
}

const COLUMNS: &str = "planned, at, outcome, event, task";

fn fire_of(row: &Row<'_>) -> Result<Fire> {
    let outcome: String = row.get(2)?;
    Ok(Fire {
        planned: Timestamp::from_micros(row.get(0)?),
        at: Timestamp::from_micros(row.get(1)?),
        outcome: serde_json::from_str(&outcome).map_err(Fault::damaged)?,
        event: row.get::<_, Option<i64>>(3)?.map(EventId::from_i64),
        task: row.get::<_, Option<String>>(4)?.map(|text| TaskId::from_text(&text)),
    })
}

fn fire_at(conn: &Connection, schedule: &ScheduleName, planned: Timestamp) -> Result<Option<Fire>> {
    let sql = format!("SELECT {COLUMNS} FROM pointsman_fire WHERE schedule = ?1 AND planned = ?2");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query((schedule.as_str(), planned.micros()))?;
    rows.next()?.map(fire_of).transpose()
}

pub(crate) fn fires(
    conn: &Connection,
    schedule: &ScheduleName,
    before: Option<Timestamp>,
    limit: usize,
) -> Result<FirePage> {
    let extent = extent(conn)?;
    let sql = format!(
        "SELECT {COLUMNS} FROM pointsman_fire WHERE schedule = ?1 AND planned < ?2 ORDER BY planned DESC LIMIT ?3"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let before = before.map_or(i64::MAX, Timestamp::micros);
    let mut rows = statement.query((schedule.as_str(), before, limit as i64))?;
    let mut fires = Vec::new();
    while let Some(row) = rows.next()? {
        fires.push(fire_of(row)?);
    }
    Ok(FirePage { fires, extent })
}
