//! The bodies of schedules, assembled from this node's setup, the ledger and the rules.

use std::collections::BTreeMap;

use pointsman_api::{FireBody, RuleBody, ScheduleActionBody, ScheduleBody, ScheduleDetail, ScheduleList};
use pointsman_core::fire::FireAction;
use pointsman_core::suggestion::did_you_mean_suffix;
use pointsman_core::{HandlerName, Rule, RuleScope, ScheduleName, Tenant, Timestamp};
use pointsman_engine::{ScheduleSpec, Setup};

use crate::app_state::App;
use crate::auth::Caller;
use crate::config::schedule_lints::{lint_fire_action, lint_schedule_times};
use crate::problem::Problem;
use crate::request_query::RequestQuery;

/// The planned times that a request selects.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedTimesQuery {
    /// Maximum number of planned times per schedule.
    pub(super) max_times: usize,
    pub(super) after: Timestamp,
    /// Only times up to this one.
    pub(super) until: Option<Timestamp>,
}

/// A page ends with the schedule that brings its planned times to this number.
const MAX_TIMES_PER_PAGE: usize = 10_000;

impl PlannedTimesQuery {
    pub(super) const PARAMETERS: [&str; 3] = ["times", "after", "until"];
    const MAX_TIMES: usize = 1000;

    /// The default: the next five times.
    fn default_at(now: Timestamp) -> Self {
        Self { max_times: 5, after: now, until: None }
    }

    /// Parses the parameters of a request.
    pub(super) fn from_query(query: &RequestQuery, now: Timestamp) -> Result<Self, Problem> {
        let defaults = Self::default_at(now);
        let max = query.parse_parameter_with("times", |text| {
            let number = text.parse().ok().filter(|n| *n <= Self::MAX_TIMES && !text.starts_with('+'));
            number.ok_or_else(|| format!("`times` is a whole number from 0 to {}", Self::MAX_TIMES))
        })?;
        let after = query.parse_parameter("after")?;
        Ok(Self {
            max_times: max.unwrap_or(defaults.max_times),
            after: after.unwrap_or(defaults.after),
            until: query.parse_parameter("until")?,
        })
    }
}

/// Reads a page of schedules after `cursor`, by name.
pub(super) async fn read_schedule_page(
    app: &App,
    caller: &Caller,
    cursor: Option<ScheduleName>,
    limit: usize,
    times: PlannedTimesQuery,
) -> Result<ScheduleList, Problem> {
    let event_id = app.store().read_journal_range().await?.newest_event_id.get();
    let rules = app.store().list_rules().await?;
    let setup = app.engine.current_setup();
    let mut all = visible_schedules(&setup, &rules, caller);
    if let Some(cursor) = cursor {
        all = all.split_off(&cursor);
        all.remove(&cursor);
    }
    let visible_count = all.len();
    let (mut schedules, mut time_count) = (Vec::new(), 0);
    for (name, schedule) in all.into_iter().take(limit) {
        let body = schedule_body(app, &setup, &name, schedule, &rules, times).await?;
        time_count += body.next_planned_times.len();
        schedules.push(body);
        if time_count >= MAX_TIMES_PER_PAGE {
            break;
        }
    }
    let more = visible_count > schedules.len();
    let next = schedules.last().map(|last| last.name.clone()).filter(|_| more);
    Ok(ScheduleList { newest_event_id: event_id, schedules, next })
}

/// Finds a schedule, if the caller may see it. A schedule that is no longer defined is found while it has rules, so
/// that they can be lifted.
pub(super) async fn find_schedule(
    app: &App,
    caller: &Caller,
    name: &ScheduleName,
) -> Result<ScheduleDetail, Problem> {
    find_schedule_with_times(app, caller, name, PlannedTimesQuery::default_at(app.now())).await
}

/// Finds a schedule, with the selected planned times.
pub(super) async fn find_schedule_with_times(
    app: &App,
    caller: &Caller,
    name: &ScheduleName,
    times: PlannedTimesQuery,
) -> Result<ScheduleDetail, Problem> {
    let event_id = app.store().read_journal_range().await?.newest_event_id.get();
    let rules = app.store().list_rules().await?;
    let setup = app.engine.current_setup();
    let visible = visible_schedules(&setup, &rules, caller);
    let Some(schedule) = visible.get(name) else {
        return Err(no_such_schedule_problem(name, visible.keys()));
    };
    Ok(ScheduleDetail {
        newest_event_id: event_id,
        schedule: schedule_body(app, &setup, name, *schedule, &rules, times).await?,
    })
}

/// Requires that a schedule is defined and the caller may see it.
pub(super) fn require_defined_schedule(
    app: &App,
    caller: &Caller,
    name: &ScheduleName,
) -> Result<(), Problem> {
    let setup = app.engine.current_setup();
    let visible = visible_schedules(&setup, &[], caller);
    visible.get(name).map(|_| ()).ok_or_else(|| no_such_schedule_problem(name, visible.keys()))
}

fn no_such_schedule_problem<'a>(
    name: &ScheduleName,
    visible: impl Iterator<Item = &'a ScheduleName>,
) -> Problem {
    let hint = did_you_mean_suffix(name.as_str(), visible.map(ScheduleName::as_str));
    Problem::not_found(format!("there is no schedule {name}{hint}"))
}

type VisibleSchedules<'a> = BTreeMap<ScheduleName, Option<&'a ScheduleSpec>>;

/// All schedules that are defined or have rules left, as far as the caller may see. The tenant of a schedule that is no
/// longer defined is unknown, so only callers of all tenants see it.
fn visible_schedules<'a>(setup: &'a Setup, rules: &[Rule], caller: &Caller) -> VisibleSchedules<'a> {
    let with_rules =
        rules.iter().filter(|_| caller.bound_tenant.is_none()).filter_map(|rule| match &rule.scope {
            RuleScope::Schedule(name) => Some((name.clone(), None)),
            RuleScope::Handler(_) | RuleScope::Collection(_) | RuleScope::Chain(_) => None,
        });
    let mut visible: VisibleSchedules<'a> = with_rules.collect();
    let sources = map_sources_to_tenants(setup);
    let defined = setup.schedules.iter().filter(|schedule| can_see_schedule(caller, schedule, &sources));
    visible.extend(defined.map(|schedule| (schedule.name.clone(), Some(schedule))));
    visible
}

/// The tenant of each source.
fn map_sources_to_tenants(setup: &Setup) -> BTreeMap<&HandlerName, &Tenant> {
    let defs = setup.handlers.iter().map(|spec| &spec.def);
    defs.filter_map(|def| Some((&def.name, &def.source.as_ref()?.tenant))).collect()
}

/// Whether a caller may see a schedule, that is, the tenant of what it creates.
fn can_see_schedule(
    caller: &Caller,
    schedule: &ScheduleSpec,
    sources: &BTreeMap<&HandlerName, &Tenant>,
) -> bool {
    match &schedule.action {
        FireAction::EmitEvent(event) => caller.can_see_tenant(&event.tenant),
        FireAction::AddOrder(order) => caller.can_see_tenant(&order.tenant),
        FireAction::RunCollection(run) => match sources.get(&run.source_collection.source) {
            Some(tenant) => caller.can_see_tenant(tenant),
            None => caller.bound_tenant.is_none(),
        },
    }
}

/// Warnings about behaviour of a schedule that its author may not expect.
fn schedule_warnings(schedule: &ScheduleSpec, setup: &Setup, now: Timestamp) -> Vec<String> {
    let mut found = lint_schedule_times(schedule, now);
    found.extend(lint_fire_action(schedule, &setup.routes, &setup.chain_routes));
    found
}

async fn schedule_body(
    app: &App,
    setup: &Setup,
    name: &ScheduleName,
    schedule: Option<&ScheduleSpec>,
    rules: &[Rule],
    times: PlannedTimesQuery,
) -> Result<ScheduleBody, Problem> {
    let last = app.store().list_fires(name, None, 1).await?;
    let rules: Vec<_> =
        rules.iter().filter(|rule| rule.applies_to_schedule(name)).map(RuleBody::from).collect();
    let when = schedule.map(|schedule| &schedule.cron);
    let in_time = |planned: &Timestamp| times.until.is_none_or(|until| *planned <= until);
    let upcoming = when.map(|when| when.upcoming(times.after).take_while(in_time).take(times.max_times));
    Ok(ScheduleBody {
        name: name.to_string(),
        defined: schedule.is_some(),
        expression: when.map(|when| when.expression().as_str().into()).unwrap_or_default(),
        description: when.map(|when| when.expression().describe()).unwrap_or_default(),
        timezone: when.map(|when| when.zone().name().into()).unwrap_or_default(),
        action: schedule.map(|schedule| schedule_action_body(&schedule.action)),
        catch_up: schedule.map(|schedule| schedule.catch_up),
        catch_up_within_seconds: schedule.map_or(0.0, |schedule| schedule.catch_up_window.as_secs_f64()),
        overlap: schedule.map(|schedule| schedule.overlap),
        jitter_seconds: schedule.map_or(0.0, |schedule| schedule.jitter.as_secs_f64()),
        warnings: schedule.map(|schedule| schedule_warnings(schedule, setup, app.now())).unwrap_or_default(),
        next_planned_times: upcoming.into_iter().flatten().map(|planned| planned.to_string()).collect(),
        last_fire: last.fires.first().map(FireBody::from),
        is_paused_or_blocked: !rules.is_empty(),
        rules,
    })
}

fn schedule_action_body(action: &FireAction) -> ScheduleActionBody {
    match action {
        FireAction::EmitEvent(event) => ScheduleActionBody::EmitEvent {
            event_type: event.event_type.to_string(),
            key: event.key.as_ref().map(ToString::to_string),
            tenant: event.tenant.to_string(),
        },
        FireAction::RunCollection(run) => ScheduleActionBody::RunCollection {
            source: run.source_collection.source.to_string(),
            collection: run.source_collection.collection.to_string(),
        },
        FireAction::AddOrder(order) => ScheduleActionBody::AddOrder {
            chain: order.chain.to_string(),
            id: order.id.as_ref().map(ToString::to_string),
            node: order.start_node.as_ref().map(ToString::to_string),
            tenant: order.tenant.to_string(),
        },
    }
}
