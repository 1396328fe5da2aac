//! What an engine is told when it starts, and what can be changed while it runs.

use std::time::Duration;

use pointsman_core::journal::Retention;
use pointsman_core::{NewEvent, Routes, cron};

use crate::HandlerSpec;

/// Fixed for the life of the process.
#[derive(Clone, Debug)]
pub struct Settings {
    pub node_name: String,
    /// How many tasks run at a time.
    pub slots: usize,
    /// How long a node may be silent before its work is given to others.
    pub lease: Duration,
    /// How often the rescuer looks.
    pub sweep: Duration,
    pub journal: Retention,
    pub history: Retention,
    pub rooms: Rooms,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            node_name: "pointsman".into(),
            slots: 16,
            lease: Duration::from_secs(30),
            sweep: Duration::from_secs(5),
            journal: Retention::default(),
            history: Retention::default(),
            rooms: Rooms::default(),
        }
    }
}

/// Which rooms this process runs. Emitting and reading work in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rooms {
    pub scheduler: bool,
    pub worker: bool,
    pub clock: bool,
    pub rescuer: bool,
    pub pruner: bool,
}

impl Default for Rooms {
    fn default() -> Self {
        Self { scheduler: true, worker: true, clock: true, rescuer: true, pruner: true }
    }
}

/// What the configuration and the program say is to be done. Can be replaced while running.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    pub handlers: Vec<HandlerSpec>,
    pub routes: Routes,
    pub schedules: Vec<Schedule>,
}

/// Emits an event at planned times.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    pub name: String,
    pub when: cron::Schedule,
    pub emit: NewEvent,
}
