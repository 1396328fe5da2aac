//! What a limit costs, and that it costs no more where many queues wait behind it.
//!
//! The limited handler may run sixteen at a time, and each claim asks for twice as many: it takes sixteen and meets
//! the limit. The free one is asked for sixteen. In memory, so that no disk hides what a claim itself costs.

use std::sync::Arc;

use pointsman_core::{HandlerDef, HandlerName, Limits, Tenant};
use pointsman_store_sqlite::Sqlite;

use crate::Options;
use crate::claims::{self, AT_A_TIME, Desk};
use crate::report::{Figure, Unit, percentile};

const HANDLER: &str = "limited";
const FEW: usize = 16;
const ROUNDS: usize = 500;

pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for queues in [FEW, (options.queues / 10).max(FEW), options.queues] {
        let limited = desk(queues, Some(AT_A_TIME as u32)).await?;
        let free = desk(queues, None).await?;
        let (mut with, mut without) = (vec![], vec![]);
        for _ in 0..ROUNDS {
            // In turns, so that both meet the same neighbours. What a limit costs shows at the ends, too: they
            // make room for others.
            let took = limited.round(2 * AT_A_TIME).await?;
            with.push((took.claims + took.ends) * 1000.0);
            let took = free.round(AT_A_TIME).await?;
            without.push((took.claims + took.ends) * 1000.0);
        }
        let name = format!(
            "{AT_A_TIME} claimed and ended in memory, {queues} queues behind `concurrency: {AT_A_TIME}`, p50"
        );
        figures.push(
            Figure::new(name, percentile(&mut with, 0.5), Unit::Milliseconds)
                .against("without a limit, p50", percentile(&mut without, 0.5))
                .at_most(1.1),
        );
    }
    Ok(figures)
}

/// A store in which tasks of one handler wait in so many queues, enough of them that none runs empty.
async fn desk(queues: usize, concurrency: Option<u32>) -> anyhow::Result<Desk> {
    let mut def = HandlerDef::new(HandlerName::new(HANDLER)?);
    def.limits = Limits { concurrency, ..Limits::default() };
    let desk = Desk::new(Arc::new(Sqlite::in_memory(pointsman_engine::now())?), vec![def]).await?;
    let tenants = (0..queues).map(|n| Tenant::new(format!("tenant-{n}"))).collect::<Result<Vec<_>, _>>()?;
    let each = (ROUNDS * AT_A_TIME).div_ceil(queues) + 2;
    let events = (0..each * queues).map(|n| claims::event(HANDLER, &tenants[n % queues], n));
    claims::fill(desk.store(), events).await?;
    Ok(desk)
}
