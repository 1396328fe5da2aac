//! The parts of a run.

use std::str::FromStr;

use crate::ground::{Site, Target};
use crate::report::Report;
use crate::{
    Options, backlog, emit, end_to_end, flood, idle_queues, latency, limits, load, memory, nodes, orders,
    readers, schedules, waiting,
};

/// A measurement, or a few that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Memory,
    Latency,
    Emits,
    EndToEnd,
    Nodes,
    Backlog,
    Flood,
    IdleQueues,
    Limits,
    Schedules,
    Readers,
    Orders,
    Load,
    Waiting,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not something that is measured")]
pub struct UnknownPart(String);

const SLOTS: [usize; 2] = [end_to_end::DEFAULT_SLOTS, end_to_end::MANY_SLOTS];

impl Part {
    /// In the order in which they are measured.
    pub const ALL: [Self; 14] = [
        Self::Memory,
        Self::Latency,
        Self::Emits,
        Self::EndToEnd,
        Self::Nodes,
        Self::Backlog,
        Self::Flood,
        Self::IdleQueues,
        Self::Limits,
        Self::Schedules,
        Self::Readers,
        Self::Orders,
        Self::Load,
        Self::Waiting,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Latency => "latency",
            Self::Emits => "emits",
            Self::EndToEnd => "end-to-end",
            Self::Nodes => "nodes",
            Self::Backlog => "backlog",
            Self::Flood => "flood",
            Self::IdleQueues => "idle-queues",
            Self::Limits => "limits",
            Self::Schedules => "schedules",
            Self::Readers => "readers",
            Self::Orders => "orders",
            Self::Load => "load",
            Self::Waiting => "waiting",
        }
    }

    /// Whether it is measured on this store.
    pub fn is_on(self, target: &Target) -> bool {
        let on = |stores: [bool; 3]| match target {
            Target::Sqlite => stores[0],
            Target::Postgres { .. } => stores[1],
            Target::Redis { .. } => stores[2],
        };
        match self {
            Self::Latency | Self::Emits | Self::EndToEnd | Self::Backlog | Self::Flood | Self::Orders => true,
            Self::Memory | Self::IdleQueues | Self::Limits | Self::Schedules | Self::Readers => {
                on([true, false, false])
            }
            Self::Nodes => on([false, true, true]),
            Self::Load => on([false, true, false]),
            Self::Waiting => on([false, false, true]),
        }
    }

    pub(crate) fn steps(self, options: &Options) -> u64 {
        match self {
            Self::Memory => u64::from(options.program.is_some()),
            Self::Emits => emit::shapes(&options.target).len() as u64,
            Self::EndToEnd | Self::Orders => SLOTS.len() as u64,
            Self::Readers => readers::STEPS,
            Self::Latency
            | Self::Nodes
            | Self::Backlog
            | Self::Flood
            | Self::IdleQueues
            | Self::Limits
            | Self::Schedules
            | Self::Load
            | Self::Waiting => 1,
        }
    }

    /// Measures it, telling `begin` before each step.
    pub(crate) async fn measure(
        self,
        options: &Options,
        site: &Site,
        begin: &mut dyn FnMut(&str),
    ) -> anyhow::Result<Report> {
        let mut figures = Vec::new();
        match self {
            Self::Memory => {
                if let Some(program) = &options.program {
                    begin("idle memory of a server");
                    figures.extend(memory::idle(program, &options.dir)?);
                }
            }
            Self::Latency => {
                begin("latency from emit to handler start, and of a bare durable commit");
                figures.extend(latency::measure(options, site).await?);
            }
            Self::Emits => {
                for shape in emit::shapes(&options.target) {
                    begin(&format!("emits acknowledged, {shape}"));
                    figures.extend(emit::measure(options, site, shape).await?);
                }
            }
            Self::EndToEnd => {
                for slots in SLOTS {
                    begin(&format!("end to end: emitted, handled in {slots} slots, ended, history kept"));
                    figures.extend(end_to_end::measure(options, site, slots).await?);
                }
            }
            Self::Nodes => {
                begin("end to end with two nodes on one database, and with one");
                figures.extend(nodes::measure(options, site).await?);
            }
            Self::Backlog => {
                begin("claims with few and with many tasks waiting");
                figures.extend(backlog::measure(options, site).await?);
            }
            Self::Flood => {
                begin("waits of a thousand tenants beside the flood of one, and without it");
                figures.extend(flood::measure(options, site).await?);
            }
            Self::IdleQueues => {
                begin("claims beside many idle queues, and without them");
                figures.extend(idle_queues::measure(options).await?);
            }
            Self::Limits => {
                begin("claims of a handler with a limit, and without one");
                figures.extend(limits::measure(options).await?);
            }
            Self::Schedules => {
                begin("a day of many schedules");
                figures.extend(schedules::measure(options, site).await?);
            }
            Self::Readers => figures.extend(readers::measure(options, begin).await?),
            Self::Orders => {
                for slots in SLOTS {
                    begin(&format!("orders through a chain in {slots} slots, and tasks beside them"));
                    figures.extend(orders::measure(options, site, slots).await?);
                }
            }
            Self::Load => {
                begin("full load, and what becomes of the tables");
                return load::measure(options, site).await;
            }
            Self::Waiting => {
                begin("memory that waiting tasks take");
                figures.extend(waiting::measure(options, site).await?);
            }
        }
        Ok(figures.into())
    }
}

impl FromStr for Part {
    type Err = UnknownPart;
    fn from_str(name: &str) -> Result<Self, UnknownPart> {
        let unknown = || UnknownPart(name.into());
        Self::ALL.into_iter().find(|part| part.name() == name).ok_or_else(unknown)
    }
}
