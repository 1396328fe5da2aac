//! The parts of a benchmark run.

use std::str::FromStr;

use crate::report::BenchReport;
use crate::stores::{RunEnvironment, StoreTarget};
use crate::{
    BenchOptions, backlog, concurrency_limit, emit_throughput, end_to_end, full_load, idle_queues, latency,
    orders, process_memory, readers, schedules, tenant_flood, two_nodes, waiting_task_memory,
};

/// A part of a run: one measurement, or a few that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchPart {
    IdleServerMemory,
    Latency,
    Emits,
    EndToEnd,
    TwoNodes,
    Backlog,
    TenantFlood,
    IdleQueues,
    ConcurrencyLimit,
    Schedules,
    JournalReaders,
    Orders,
    TableSizeUnderLoad,
    WaitingTaskMemory,
}

/// The name of a part that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown part {0:?} of the benchmark")]
pub struct UnknownPartError(String);

/// The numbers of slots with which the parts `end-to-end` and `orders` are measured.
const SLOT_COUNTS: [usize; 2] = [end_to_end::DEFAULT_SLOTS, end_to_end::MANY_SLOTS];

impl BenchPart {
    /// All parts, in the order in which they are measured.
    pub const ALL: [Self; 14] = [
        Self::IdleServerMemory,
        Self::Latency,
        Self::Emits,
        Self::EndToEnd,
        Self::TwoNodes,
        Self::Backlog,
        Self::TenantFlood,
        Self::IdleQueues,
        Self::ConcurrencyLimit,
        Self::Schedules,
        Self::JournalReaders,
        Self::Orders,
        Self::TableSizeUnderLoad,
        Self::WaitingTaskMemory,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::IdleServerMemory => "memory",
            Self::Latency => "latency",
            Self::Emits => "emits",
            Self::EndToEnd => "end-to-end",
            Self::TwoNodes => "nodes",
            Self::Backlog => "backlog",
            Self::TenantFlood => "flood",
            Self::IdleQueues => "idle-queues",
            Self::ConcurrencyLimit => "limits",
            Self::Schedules => "schedules",
            Self::JournalReaders => "readers",
            Self::Orders => "orders",
            Self::TableSizeUnderLoad => "load",
            Self::WaitingTaskMemory => "waiting",
        }
    }

    /// Whether the part is measured on this store.
    pub fn is_supported_on(self, target: &StoreTarget) -> bool {
        // The values for SQLite, PostgreSQL and Redis.
        let value_for_target = |values: [bool; 3]| match target {
            StoreTarget::Sqlite => values[0],
            StoreTarget::Postgres { .. } => values[1],
            StoreTarget::Redis { .. } => values[2],
        };
        match self {
            Self::Latency
            | Self::Emits
            | Self::EndToEnd
            | Self::Backlog
            | Self::TenantFlood
            | Self::Orders => true,
            Self::IdleServerMemory
            | Self::IdleQueues
            | Self::ConcurrencyLimit
            | Self::Schedules
            | Self::JournalReaders => value_for_target([true, false, false]),
            Self::TwoNodes => value_for_target([false, true, true]),
            Self::TableSizeUnderLoad => value_for_target([false, true, false]),
            Self::WaitingTaskMemory => value_for_target([false, false, true]),
        }
    }

    pub(crate) fn count_progress_steps(self, options: &BenchOptions) -> u64 {
        match self {
            Self::Emits => emit_throughput::producer_loads_for_target(&options.store_target).len() as u64,
            Self::EndToEnd | Self::Orders => SLOT_COUNTS.len() as u64,
            Self::JournalReaders => readers::PROGRESS_STEP_COUNT,
            Self::IdleServerMemory
            | Self::Latency
            | Self::TwoNodes
            | Self::Backlog
            | Self::TenantFlood
            | Self::IdleQueues
            | Self::ConcurrencyLimit
            | Self::Schedules
            | Self::TableSizeUnderLoad
            | Self::WaitingTaskMemory => 1,
        }
    }

    /// Measures the part, and calls `begin_step` with the name of each step before it starts.
    pub(crate) async fn measure(
        self,
        options: &BenchOptions,
        environment: &RunEnvironment,
        begin_step: &mut dyn FnMut(&str),
    ) -> anyhow::Result<BenchReport> {
        let mut figures = Vec::new();
        match self {
            Self::IdleServerMemory => {
                begin_step("idle memory of a server");
                figures.extend(process_memory::measure_idle_server_memory(
                    &options.server_program,
                    &options.dir,
                )?);
            }
            Self::Latency => {
                begin_step("latency from emit to handler start, and of a bare durable commit");
                figures.extend(latency::measure(options, environment).await?);
            }
            Self::Emits => {
                for load in emit_throughput::producer_loads_for_target(&options.store_target) {
                    begin_step(&format!("emits acknowledged, {load}"));
                    figures.extend(emit_throughput::measure(options, environment, load).await?);
                }
            }
            Self::EndToEnd => {
                for slots in SLOT_COUNTS {
                    begin_step(&format!(
                        "end to end: events emitted, handled in {slots} slots and kept in the history"
                    ));
                    figures.extend(end_to_end::measure(options, environment, slots).await?);
                }
            }
            Self::TwoNodes => {
                begin_step("end to end with two nodes on one database, and with one");
                figures.extend(two_nodes::measure(options, environment).await?);
            }
            Self::Backlog => {
                begin_step("claims with few and with many tasks waiting");
                figures.extend(backlog::measure(options, environment).await?);
            }
            Self::TenantFlood => {
                begin_step("waits of a thousand tenants with the flood of one, and without it");
                figures.extend(tenant_flood::measure(options, environment).await?);
            }
            Self::IdleQueues => {
                begin_step("claims with many idle queues, and without them");
                figures.extend(idle_queues::measure(options).await?);
            }
            Self::ConcurrencyLimit => {
                begin_step("claims of a handler with a limit, and without one");
                figures.extend(concurrency_limit::measure(options).await?);
            }
            Self::Schedules => {
                begin_step("due checks of many schedules over a day");
                figures.extend(schedules::measure(options, environment).await?);
            }
            Self::JournalReaders => figures.extend(readers::measure(options, begin_step).await?),
            Self::Orders => {
                for slots in SLOT_COUNTS {
                    begin_step(&format!("orders through a chain in {slots} slots, and tasks for comparison"));
                    figures.extend(orders::measure(options, environment, slots).await?);
                }
            }
            Self::TableSizeUnderLoad => {
                begin_step("size of the tables at full load");
                return full_load::measure(options, environment).await;
            }
            Self::WaitingTaskMemory => {
                begin_step("memory used by waiting tasks");
                figures.extend(waiting_task_memory::measure(options, environment).await?);
            }
        }
        Ok(figures.into())
    }
}

impl FromStr for BenchPart {
    type Err = UnknownPartError;
    fn from_str(name: &str) -> Result<Self, UnknownPartError> {
        let unknown = || UnknownPartError(name.into());
        Self::ALL.into_iter().find(|part| part.name() == name).ok_or_else(unknown)
    }
}
