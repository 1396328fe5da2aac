//! What a redrive is asked to do, checked member by member.

use pointsman_core::names::BadName;
use pointsman_core::store::TaskFilter;
use pointsman_core::task::EndReason;
use pointsman_core::wire::{Fault, read, string};
use pointsman_core::{CollectionName, HandlerName, HandlingKey, ObjectKey, Rate, Status, Tenant, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::tasks::StatusFilter;

/// The most tasks that can go ahead of the others.
const MAX_CANARIES: usize = 1000;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(crate) struct RedriveMembers {
    handler: Option<Box<RawValue>>,
    source: Option<Box<RawValue>>,
    collection: Option<Box<RawValue>>,
    tenant: Option<Box<RawValue>>,
    key: Option<Box<RawValue>>,
    status: Option<Box<RawValue>>,
    start: Option<Box<RawValue>>,
    end: Option<Box<RawValue>>,
    all: Option<Box<RawValue>>,
    dry_run: Option<Box<RawValue>>,
    rate: Option<Box<RawValue>>,
    canary: Option<Box<RawValue>>,
}

/// What is to be done.
pub(super) struct RedriveParameters {
    pub(super) filter: TaskFilter,
    /// Where the handler was named, if it was.
    pub(super) handler_pointer: &'static str,
    pub(super) dry_run: bool,
    pub(super) rate: Option<Rate>,
    pub(super) canary: Option<usize>,
    /// All of it, as it was said.
    pub(super) description: String,
}

impl RedriveMembers {
    pub(super) fn validate(self, caller: &Caller) -> Result<RedriveParameters, Problem> {
        let (description, has_filter) = (self.describe(), self.has_filter());
        let handler_pointer = if self.handler.is_some() { "/handler" } else { "/source" };
        let status = self.status.map(|raw| string("/status", &raw)).transpose()?;
        let reasons = parse_status(status.as_deref().unwrap_or("FAILED"))?;
        let tenant = parse_string("/tenant", self.tenant, Tenant::new)?;
        let filter = TaskFilter {
            statuses: vec![Status::Error],
            reasons,
            handler: parse_handler(self.handler, self.source)?,
            collection: parse_string("/collection", self.collection, parse_collection)?,
            event: None,
            tenant: caller.tenant(tenant)?,
            key: parse_string("/key", self.key, ObjectKey::new)?,
            start: parse_time("/start", self.start)?,
            end: parse_time("/end", self.end)?,
        };
        if filter.start.zip(filter.end).is_some_and(|(start, end)| end < start) {
            return Err(Fault::new("/end", "the period ends before it starts").into());
        }
        let all = self.all.map(|raw| read("/all", &raw, "true or false")).transpose()?;
        let dry_run = self.dry_run.map(|raw| read("/dry_run", &raw, "true or false")).transpose()?;
        let rate = parse_string("/rate", self.rate, |text: String| text.parse())?;
        let canary = self.canary.map(|raw| parse_canary(&raw)).transpose()?;
        require_filter_or_all(has_filter, all.unwrap_or(false))?;
        Ok(RedriveParameters {
            filter,
            handler_pointer,
            dry_run: dry_run.unwrap_or(false),
            rate,
            canary,
            description,
        })
    }

    /// Whether it says which tasks. A status does not: all that can be run again have one.
    fn has_filter(&self) -> bool {
        let Self { handler, source, collection, tenant, key, start, end, .. } = self;
        [handler, source, collection, tenant, key, start, end].into_iter().any(Option::is_some)
    }

    fn describe(&self) -> String {
        let members = [
            ("handler", &self.handler),
            ("source", &self.source),
            ("collection", &self.collection),
            ("tenant", &self.tenant),
            ("key", &self.key),
            ("status", &self.status),
            ("start", &self.start),
            ("end", &self.end),
            ("all", &self.all),
            ("rate", &self.rate),
            ("canary", &self.canary),
        ];
        let given = members.iter().filter_map(|(name, raw)| Some(format!("{name}: {}", raw.as_ref()?.get())));
        given.collect::<Vec<_>>().join(", ")
    }
}

/// Running everything again is seldom what was meant, so that it has to be said.
fn require_filter_or_all(has_filter: bool, all: bool) -> Result<(), Problem> {
    match (has_filter, all) {
        (true, false) | (false, true) => Ok(()),
        (false, false) => Err(Problem::refused(
            "say which tasks: by `handler` or `source`, `collection`, `tenant`, `key`, `start` or `end`; or say \
             `\"all\": true`",
        )
        .pointer("")),
        (true, true) => Err(Problem::refused("`all` goes with no other filter").pointer("/all")),
    }
}

/// An event's type or a collection's name.
fn parse_collection(text: String) -> Result<String, BadName> {
    match CollectionName::new(&text) {
        Ok(_) => Ok(text),
        Err(_) => HandlingKey::new(&text).map(|_| text),
    }
}

/// Which of the tasks in `error`.
fn parse_status(status: &str) -> Result<Vec<EndReason>, Problem> {
    let refused = |detail: &str| Err(Problem::refused(detail).pointer("/status"));
    match status {
        "FAILED" => Ok(vec![EndReason::Failed, EndReason::Crashed]),
        "CANCELED" => Ok(vec![EndReason::Canceled]),
        "error" => Ok(vec![EndReason::Failed, EndReason::Crashed, EndReason::Canceled]),
        "missing" => refused(
            "`missing` tasks wait for their handler: define it and adopt them \
             (POST /api/v1/handlers/{name}/adopt)",
        ),
        other => match StatusFilter::parse(other) {
            Ok(_) => refused("only tasks in `error` are run again: FAILED, CANCELED, or `error` for both"),
            Err(unknown) => Err(Fault::new("/status", unknown).into()),
        },
    }
}

/// A source is a handler: either word names it.
fn parse_handler(
    handler: Option<Box<RawValue>>,
    source: Option<Box<RawValue>>,
) -> Result<Option<HandlerName>, Fault> {
    match (
        parse_string("/handler", handler, HandlerName::new)?,
        parse_string("/source", source, HandlerName::new)?,
    ) {
        (Some(handler), Some(source)) if handler != source => {
            Err(Fault::new("/source", "`source` and `handler` mean the same; give one"))
        }
        (handler, source) => Ok(handler.or(source)),
    }
}

fn parse_string<T, E: std::fmt::Display>(
    at: &str,
    raw: Option<Box<RawValue>>,
    new: impl FnOnce(String) -> Result<T, E>,
) -> Result<Option<T>, Fault> {
    let text = raw.map(|raw| string(at, &raw)).transpose()?;
    text.map(new).transpose().map_err(|e| Fault::new(at, e))
}

fn parse_time(at: &str, raw: Option<Box<RawValue>>) -> Result<Option<Timestamp>, Fault> {
    parse_string(at, raw, |text| text.parse::<Timestamp>())
}

fn parse_canary(raw: &RawValue) -> Result<usize, Fault> {
    let what = format!("a whole number from 1 to {MAX_CANARIES}");
    let canary: usize = read("/canary", raw, &what)?;
    let within = (1..=MAX_CANARIES).contains(&canary).then_some(canary);
    within.ok_or_else(|| Fault::new("/canary", format!("this is not {what}")))
}
