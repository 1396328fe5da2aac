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
use crate::tasks::Wanted;

/// The most tasks that can go ahead of the others.
const MOST_CANARIES: usize = 1000;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(crate) struct Said {
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
pub(super) struct Wish {
    pub(super) filter: TaskFilter,
    /// Where the handler was named, if it was.
    pub(super) named: &'static str,
    pub(super) dry_run: bool,
    pub(super) rate: Option<Rate>,
    pub(super) canary: Option<usize>,
    /// All of it, as it was said.
    pub(super) words: String,
}

impl Said {
    pub(super) fn read(self, caller: &Caller) -> Result<Wish, Problem> {
        let (words, narrowed) = (self.words(), self.narrowed());
        let named = if self.handler.is_some() { "/handler" } else { "/source" };
        let status = self.status.map(|raw| string("/status", &raw)).transpose()?;
        let reasons = reasons(status.as_deref().unwrap_or("FAILED"))?;
        let tenant = name("/tenant", self.tenant, Tenant::new)?;
        let filter = TaskFilter {
            statuses: vec![Status::Error],
            reasons,
            handler: handler(self.handler, self.source)?,
            collection: name("/collection", self.collection, collection)?,
            event: None,
            tenant: caller.tenant(tenant)?,
            key: name("/key", self.key, ObjectKey::new)?,
            start: time("/start", self.start)?,
            end: time("/end", self.end)?,
        };
        if filter.start.zip(filter.end).is_some_and(|(start, end)| end < start) {
            return Err(Fault::new("/end", "the period ends before it starts").into());
        }
        let all = self.all.map(|raw| read("/all", &raw, "true or false")).transpose()?;
        let dry_run = self.dry_run.map(|raw| read("/dry_run", &raw, "true or false")).transpose()?;
        let rate = name("/rate", self.rate, |text: String| text.parse())?;
        let canary = self.canary.map(|raw| canary(&raw)).transpose()?;
        one_or_the_other(narrowed, all.unwrap_or(false))?;
        Ok(Wish { filter, named, dry_run: dry_run.unwrap_or(false), rate, canary, words })
    }

    /// Whether it says which tasks. A status does not: all that can be run again have one.
    fn narrowed(&self) -> bool {
        let Self { handler, source, collection, tenant, key, start, end, .. } = self;
        [handler, source, collection, tenant, key, start, end].into_iter().any(Option::is_some)
    }

    fn words(&self) -> String {
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
        let said = members.iter().filter_map(|(name, raw)| Some(format!("{name}: {}", raw.as_ref()?.get())));
        said.collect::<Vec<_>>().join(", ")
    }
}

/// Running everything again is seldom what was meant, so that it has to be said.
fn one_or_the_other(narrowed: bool, all: bool) -> Result<(), Problem> {
    match (narrowed, all) {
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
fn collection(text: String) -> Result<String, BadName> {
    match CollectionName::new(&text) {
        Ok(_) => Ok(text),
        Err(_) => HandlingKey::new(&text).map(|_| text),
    }
}

/// Which of the tasks in `error`.
fn reasons(status: &str) -> Result<Vec<EndReason>, Problem> {
    let refused = |detail: &str| Err(Problem::refused(detail).pointer("/status"));
    match status {
        "FAILED" => Ok(vec![EndReason::Failed, EndReason::Crashed]),
        "CANCELED" => Ok(vec![EndReason::Canceled]),
        "error" => Ok(vec![EndReason::Failed, EndReason::Crashed, EndReason::Canceled]),
        "missing" => refused(
            "`missing` tasks wait for their handler: define it and adopt them \
             (POST /api/v1/handlers/{name}/adopt)",
        ),
        other => match Wanted::read(other) {
            Ok(_) => refused("only tasks in `error` are run again: FAILED, CANCELED, or `error` for both"),
            Err(unknown) => Err(Fault::new("/status", unknown).into()),
        },
    }
}

/// A source is a handler: either word names it.
fn handler(
    handler: Option<Box<RawValue>>,
    source: Option<Box<RawValue>>,
) -> Result<Option<HandlerName>, Fault> {
    match (name("/handler", handler, HandlerName::new)?, name("/source", source, HandlerName::new)?) {
        (Some(handler), Some(source)) if handler != source => {
            Err(Fault::new("/source", "`source` and `handler` mean the same; give one"))
        }
        (handler, source) => Ok(handler.or(source)),
    }
}

fn name<T, E: std::fmt::Display>(
    at: &str,
    raw: Option<Box<RawValue>>,
    new: impl FnOnce(String) -> Result<T, E>,
) -> Result<Option<T>, Fault> {
    let text = raw.map(|raw| string(at, &raw)).transpose()?;
    text.map(new).transpose().map_err(|e| Fault::new(at, e))
}

fn time(at: &str, raw: Option<Box<RawValue>>) -> Result<Option<Timestamp>, Fault> {
    name(at, raw, |text| text.parse::<Timestamp>())
}

fn canary(raw: &RawValue) -> Result<usize, Fault> {
    let what = format!("a whole number from 1 to {MOST_CANARIES}");
    let canary: usize = read("/canary", raw, &what)?;
    let within = (1..=MOST_CANARIES).contains(&canary).then_some(canary);
    within.ok_or_else(|| Fault::new("/canary", format!("this is not {what}")))
}
