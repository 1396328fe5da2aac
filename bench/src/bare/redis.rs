//! The limit on Redis: the same keys written by plain commands over one connection, a thousand tasks in a pipeline.
//!
//! ```text
//!   emitted:  XADD journal, HSET task and object, ZADD ready and lane, MSET last id    ─▶ answers
//!   claimed:  ZRANGE ready, HMGET task ─▶ answers, ZREM ready, HSET task, ZADD held    ─▶ answers
//!   ended:    HDEL task, ZREM lane and held, HSET ended                                ─▶ answers
//! ```
//!
//! As somebody would write it who keeps a queue there: where a command takes many, it is sent once. Nothing is decided,
//! nothing is checked, and nothing of it is a transaction. Redis answers when it is on the disk.

use std::time::Instant;

use redis::{Cmd, Connection, Pipeline};

use super::Limit;
use crate::rig::{self, payload};

/// So many in each pipeline.
const BATCH: usize = 1_000;
/// About as long as the store's own rows are.
const TASK: usize = 64;
const ENDED: usize = 72;

pub(crate) struct Plain {
    connection: Connection,
    prefix: String,
    /// How many events were written so far.
    events: usize,
}

impl Plain {
    pub(super) fn new(connection: Connection, prefix: String) -> Self {
        Self { connection, prefix, events: 0 }
    }

    pub(super) fn emitted(&mut self, events: usize) -> anyhow::Result<Limit> {
        let start = Instant::now();
        let wanted = self.events + events;
        while self.events < wanted {
            self.emit(BATCH.min(wanted - self.events))?;
        }
        let rate = events as f64 / start.elapsed().as_secs_f64();
        let how = format!("plain commands, {BATCH} tasks in a pipeline, one connection");
        Ok(Limit { rate, how })
    }

    pub(super) fn whole_life(&mut self, events: usize) -> anyhow::Result<Limit> {
        let start = Instant::now();
        let wanted = self.events + events;
        while self.events < wanted {
            let first = self.events;
            let batch = BATCH.min(wanted - first);
            self.emit(batch)?;
            self.claim(first, batch)?;
            self.end(first, batch)?;
        }
        let rate = events as f64 / start.elapsed().as_secs_f64();
        let how = format!(
            "plain commands, emitted, claimed and ended, {BATCH} tasks in a pipeline, one connection"
        );
        Ok(Limit { rate, how })
    }

    pub(super) fn commit(&mut self, n: i64) -> anyhow::Result<f64> {
        let command = self.command("SET", "small").arg(payload(n as usize)).clone();
        let start = Instant::now();
        command.exec(&mut self.connection)?;
        Ok(start.elapsed().as_secs_f64() * 1000.0)
    }

    fn command(&self, verb: &str, key: &str) -> Cmd {
        let mut command = redis::cmd(verb);
        command.arg(format!("{}{key}", self.prefix));
        command
    }

    fn emit(&mut self, count: usize) -> anyhow::Result<()> {
        let numbers = self.events..self.events + count;
        let base = pointsman_engine::now().micros();
        let (mut tasks, mut objects) = (self.command("HSET", "tasks"), self.command("HSET", "objects"));
        let (mut ready, mut lanes) = (self.command("ZADD", "ready"), self.command("ZADD", "lanes"));
        let mut last = redis::cmd("MSET");
        let mut pipeline = Pipeline::with_capacity(count + 5);
        for n in numbers {
            let id = base + n as i64;
            let object = format!("object:{}", n % 10_000);
            let event = format!("{}{object}{}", rig::TYPE, payload(n));
            pipeline.add_command(
                self.command("XADD", "journal").arg(format!("{id}-0")).arg("e").arg(event).clone(),
            );
            tasks.arg(n).arg(&[7_u8; TASK]);
            objects.arg(&object).arg(&[7_u8; 24]);
            ready.arg(0).arg(ready_member(n));
            lanes.arg(0).arg(lane_member(n));
            last.arg(format!("{}{object}:last.event.id", self.prefix)).arg(id);
        }
        for command in [tasks, objects, ready, lanes, last] {
            pipeline.add_command(command);
        }
        self.events += count;
        Ok(pipeline.exec(&mut self.connection)?)
    }

    fn claim(&mut self, first: usize, count: usize) -> anyhow::Result<()> {
        let mut look = Pipeline::new();
        look.add_command(self.command("ZRANGE", "ready").arg(0).arg(count - 1).clone());
        let mut rows = self.command("HMGET", "tasks");
        (first..first + count).for_each(|n| {
            rows.arg(n);
        });
        look.add_command(rows);
        let (members, rows): (Vec<Vec<u8>>, Vec<Vec<u8>>) = look.query(&mut self.connection)?;
        anyhow::ensure!(members.len() == count && rows.len() == count, "of {count} tasks not all were found");
        let (mut ready, mut tasks) = (self.command("ZREM", "ready"), self.command("HSET", "tasks"));
        let mut held = self.command("ZADD", "held");
        for (n, member) in (first..).zip(&members) {
            ready.arg(member);
            tasks.arg(n).arg(&[8_u8; TASK]);
            held.arg(0).arg(&number(n)[..]);
        }
        Ok(Pipeline::new()
            .add_command(ready)
            .add_command(tasks)
            .add_command(held)
            .exec(&mut self.connection)?)
    }

    fn end(&mut self, first: usize, count: usize) -> anyhow::Result<()> {
        let (mut tasks, mut lanes) = (self.command("HDEL", "tasks"), self.command("ZREM", "lanes"));
        let (mut held, mut ended) = (self.command("ZREM", "held"), self.command("HSET", "ended"));
        for n in first..first + count {
            tasks.arg(n);
            lanes.arg(lane_member(n));
            held.arg(&number(n)[..]);
            ended.arg(n).arg(&[9_u8; ENDED]);
        }
        let mut pipeline = Pipeline::new();
        for command in [tasks, lanes, held, ended] {
            pipeline.add_command(command);
        }
        Ok(pipeline.exec(&mut self.connection)?)
    }
}

fn number(n: usize) -> [u8; 8] {
    (n as u64).to_be_bytes()
}

fn ready_member(n: usize) -> Vec<u8> {
    [&number(100), &number(0), &number(n), &[0, 0][..]].concat()
}

fn lane_member(n: usize) -> Vec<u8> {
    [number(n % 10_000), number(n), number(n)].concat()
}
