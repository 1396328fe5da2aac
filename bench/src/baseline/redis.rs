//! The baseline on Redis: the same keys written by plain commands over one connection, a thousand tasks in a pipeline.
//!
//! ```text
//!   emitted:  XADD journal, HSET task and object, ZADD ready and lane, MSET last id    ─▶ replies
//!   claimed:  ZRANGE ready, HMGET task ─▶ replies, ZREM ready, HSET task, ZADD held    ─▶ replies
//!   ended:    HDEL task, ZREM lane and held, HSET ended                                ─▶ replies
//! ```
//!
//! This is a simple queue on Redis: a command that takes many keys is sent once for all of them. Nothing is decided,
//! nothing is checked, and there are no transactions. Redis replies when the data are on disk.

use std::time::Instant;

use redis::{Cmd, Connection, Pipeline};

use super::BaselineResult;
use crate::fixtures::{self, event_payload};

/// The number of tasks in a pipeline.
const TASKS_PER_PIPELINE: usize = 1_000;
/// The size of a task's row: about as large as in the store.
const TASK_ROW_BYTES: usize = 64;
/// The size of an ended task's row: about as large as in the store.
const ARCHIVED_TASK_ROW_BYTES: usize = 72;

pub(crate) struct RedisBaseline {
    connection: Connection,
    key_prefix: String,
    /// The number of events written so far.
    written_event_count: usize,
}

impl RedisBaseline {
    pub(super) fn new(connection: Connection, key_prefix: String) -> Self {
        Self { connection, key_prefix, written_event_count: 0 }
    }

    pub(super) fn measure_emits(&mut self, events: usize) -> anyhow::Result<BaselineResult> {
        let start = Instant::now();
        let target_count = self.written_event_count + events;
        while self.written_event_count < target_count {
            self.insert_events_and_tasks(TASKS_PER_PIPELINE.min(target_count - self.written_event_count))?;
        }
        let rate = events as f64 / start.elapsed().as_secs_f64();
        let description = format!("plain commands, {TASKS_PER_PIPELINE} tasks in a pipeline, one connection");
        Ok(BaselineResult { events_per_second: rate, description })
    }

    pub(super) fn measure_full_lifecycle(&mut self, events: usize) -> anyhow::Result<BaselineResult> {
        let start = Instant::now();
        let target_count = self.written_event_count + events;
        while self.written_event_count < target_count {
            let first = self.written_event_count;
            let batch = TASKS_PER_PIPELINE.min(target_count - first);
            self.insert_events_and_tasks(batch)?;
            self.claim_tasks(first, batch)?;
            self.archive_tasks(first, batch)?;
        }
        let rate = events as f64 / start.elapsed().as_secs_f64();
        let description = format!(
            "plain commands, emitted, claimed and ended, {TASKS_PER_PIPELINE} tasks in a pipeline, one connection"
        );
        Ok(BaselineResult { events_per_second: rate, description })
    }

    pub(super) fn measure_commit_ms(&mut self, n: i64) -> anyhow::Result<f64> {
        let command =
            self.new_command_with_prefixed_key("SET", "small").arg(event_payload(n as usize)).clone();
        let start = Instant::now();
        command.exec(&mut self.connection)?;
        Ok(start.elapsed().as_secs_f64() * 1000.0)
    }

    fn new_command_with_prefixed_key(&self, name: &str, key: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(format!("{}{key}", self.key_prefix));
        command
    }

    fn insert_events_and_tasks(&mut self, count: usize) -> anyhow::Result<()> {
        let numbers = self.written_event_count..self.written_event_count + count;
        let base = pointsman_engine::machine_clock_now().micros();
        let (mut tasks, mut objects) = (
            self.new_command_with_prefixed_key("HSET", "tasks"),
            self.new_command_with_prefixed_key("HSET", "objects"),
        );
        let (mut ready, mut lanes) = (
            self.new_command_with_prefixed_key("ZADD", "ready"),
            self.new_command_with_prefixed_key("ZADD", "lanes"),
        );
        let mut last = redis::cmd("MSET");
        let mut pipeline = Pipeline::with_capacity(count + 5);
        for n in numbers {
            let id = base + n as i64;
            let object = format!("object:{}", n % 10_000);
            let event = format!("{}{object}{}", fixtures::EVENT_TYPE, event_payload(n));
            pipeline.add_command(
                self.new_command_with_prefixed_key("XADD", "journal")
                    .arg(format!("{id}-0"))
                    .arg("e")
                    .arg(event)
                    .clone(),
            );
            tasks.arg(n).arg(&[7_u8; TASK_ROW_BYTES]);
            objects.arg(&object).arg(&[7_u8; 24]);
            ready.arg(0).arg(encode_ready_set_member(n));
            lanes.arg(0).arg(encode_lane_set_member(n));
            last.arg(format!("{}{object}:last.event.id", self.key_prefix)).arg(id);
        }
        for command in [tasks, objects, ready, lanes, last] {
            pipeline.add_command(command);
        }
        self.written_event_count += count;
        Ok(pipeline.exec(&mut self.connection)?)
    }

    fn claim_tasks(&mut self, first: usize, count: usize) -> anyhow::Result<()> {
        let mut read = Pipeline::new();
        read.add_command(self.new_command_with_prefixed_key("ZRANGE", "ready").arg(0).arg(count - 1).clone());
        let mut rows = self.new_command_with_prefixed_key("HMGET", "tasks");
        (first..first + count).for_each(|n| {
            rows.arg(n);
        });
        read.add_command(rows);
        let (members, rows): (Vec<Vec<u8>>, Vec<Vec<u8>>) = read.query(&mut self.connection)?;
        anyhow::ensure!(members.len() == count && rows.len() == count, "not all of {count} tasks were found");
        let (mut ready, mut tasks) = (
            self.new_command_with_prefixed_key("ZREM", "ready"),
            self.new_command_with_prefixed_key("HSET", "tasks"),
        );
        let mut held = self.new_command_with_prefixed_key("ZADD", "held");
        for (n, member) in (first..).zip(&members) {
            ready.arg(member);
            tasks.arg(n).arg(&[8_u8; TASK_ROW_BYTES]);
            held.arg(0).arg(&encode_big_endian(n)[..]);
        }
        Ok(Pipeline::new()
            .add_command(ready)
            .add_command(tasks)
            .add_command(held)
            .exec(&mut self.connection)?)
    }

    fn archive_tasks(&mut self, first: usize, count: usize) -> anyhow::Result<()> {
        let (mut tasks, mut lanes) = (
            self.new_command_with_prefixed_key("HDEL", "tasks"),
            self.new_command_with_prefixed_key("ZREM", "lanes"),
        );
        let (mut held, mut ended) = (
            self.new_command_with_prefixed_key("ZREM", "held"),
            self.new_command_with_prefixed_key("HSET", "ended"),
        );
        for n in first..first + count {
            tasks.arg(n);
            lanes.arg(encode_lane_set_member(n));
            held.arg(&encode_big_endian(n)[..]);
            ended.arg(n).arg(&[9_u8; ARCHIVED_TASK_ROW_BYTES]);
        }
        let mut pipeline = Pipeline::new();
        for command in [tasks, lanes, held, ended] {
            pipeline.add_command(command);
        }
        Ok(pipeline.exec(&mut self.connection)?)
    }
}

fn encode_big_endian(n: usize) -> [u8; 8] {
    (n as u64).to_be_bytes()
}

fn encode_ready_set_member(n: usize) -> Vec<u8> {
    [&encode_big_endian(100), &encode_big_endian(0), &encode_big_endian(n), &[0, 0][..]].concat()
}

fn encode_lane_set_member(n: usize) -> Vec<u8> {
    [encode_big_endian(n % 10_000), encode_big_endian(n), encode_big_endian(n)].concat()
}
