//! The parts of a run.

use std::str::FromStr;

use crate::report::Figure;
use crate::{
    Options, backlog, emit, end_to_end, flood, idle_queues, latency, limits, memory, orders, readers,
    schedules,
};

/// A measurement, or a few that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Memory,
    Latency,
    Emits,
    EndToEnd,
    Backlog,
    Flood,
    IdleQueues,
    Limits,
    Schedules,
    Readers,
    Orders,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not something that is measured")]
pub struct UnknownPart(String);

const SLOTS: [usize; 2] = [end_to_end::DEFAULT_SLOTS, end_to_end::MANY_SLOTS];

impl Part {
    /// In the order in which they are measured.
    pub const ALL: [Self; 11] = [
        Self::Memory,
        Self::Latency,
        Self::Emits,
        Self::EndToEnd,
        Self::Backlog,
        Self::Flood,
        Self::IdleQueues,
        Self::Limits,
        Self::Schedules,
        Self::Readers,
        Self::Orders,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Latency => "latency",
            Self::Emits => "emits",
            Self::EndToEnd => "end-to-end",
            Self::Backlog => "backlog",
            Self::Flood => "flood",
            Self::IdleQueues => "idle-queues",
            Self::Limits => "limits",
            Self::Schedules => "schedules",
            Self::Readers => "readers",
            Self::Orders => "orders",
        }
    }

    pub(crate) fn steps(self, options: &Options) -> u64 {
        match self {
            Self::Memory => u64::from(options.program.is_some()),
            Self::Emits => emit::SHAPES.len() as u64,
            Self::EndToEnd | Self::Orders => SLOTS.len() as u64,
            Self::Readers => readers::STEPS,
            Self::Latency
            | Self::Backlog
            | Self::Flood
            | Self::IdleQueues
            | Self::Limits
            | Self::Schedules => 1,
        }
    }

    /// Measures it, telling `begin` before each step.
    pub(crate) async fn measure(
        self,
        options: &Options,
        begin: &mut dyn FnMut(&str),
    ) -> anyhow::Result<Vec<Figure>> {
        match self {
            Self::Memory => {
                let Some(program) = &options.program else { return Ok(vec![]) };
                begin("idle memory of a server");
                memory::idle(program, &options.dir)
            }
            Self::Latency => {
                begin("latency from emit to handler start, and of a bare durable commit");
                latency::measure(options).await
            }
            Self::Emits => {
                let mut figures = Vec::new();
                for shape in emit::SHAPES {
                    begin(&format!("emits acknowledged, {shape}"));
                    figures.extend(emit::measure(options, shape).await?);
                }
                Ok(figures)
            }
            Self::EndToEnd => {
                let mut figures = Vec::new();
                for slots in SLOTS {
                    begin(&format!("end to end: emitted, handled in {slots} slots, ended, history kept"));
                    figures.extend(end_to_end::measure(options, slots).await?);
                }
                Ok(figures)
            }
            Self::Backlog => {
                begin("claims with few and with many tasks waiting");
                backlog::measure(options).await
            }
            Self::Flood => {
                begin("waits of a thousand tenants beside the flood of one, and without it");
                flood::measure(options).await
            }
            Self::IdleQueues => {
                begin("claims beside many idle queues, and without them");
                idle_queues::measure(options).await
            }
            Self::Limits => {
                begin("claims of a handler with a limit, and without one");
                limits::measure(options).await
            }
            Self::Schedules => {
                begin("a day of many schedules");
                schedules::measure(options).await
            }
            Self::Readers => readers::measure(options, begin).await,
            Self::Orders => {
                let mut figures = Vec::new();
                for slots in SLOTS {
                    begin(&format!("orders through a chain in {slots} slots, and tasks beside them"));
                    figures.extend(orders::measure(options, slots).await?);
                }
                Ok(figures)
            }
        }
    }
}

impl FromStr for Part {
    type Err = UnknownPart;
    fn from_str(name: &str) -> Result<Self, UnknownPart> {
        let unknown = || UnknownPart(name.into());
        Self::ALL.into_iter().find(|part| part.name() == name).ok_or_else(unknown)
    }
}
