//! Parsing of the request for a redrive, member by member.

use pointsman_core::event_json_parser::{JsonError, parse_member, parse_string};
use pointsman_core::names::BadName;
use pointsman_core::store::TaskFilter;
use pointsman_core::task::ErrorReason;
use pointsman_core::{
    CollectionName, EventType, HandlerName, ObjectKey, Rate, TaskStatus, Tenant, Timestamp,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::tasks::StatusFilter;

/// Maximum number of canary tasks.
const MAX_CANARY_TASKS: usize = 1000;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(crate) struct StartRedriveRequest {
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
    #[serde(rename = "canary")]
    canary_count: Option<Box<RawValue>>,
}

/// The validated parameters of a redrive.
pub(super) struct RedriveParameters {
    pub(super) filter: TaskFilter,
    /// JSON pointer to the member that names the handler.
    pub(super) handler_pointer: &'static str,
    pub(super) dry_run: bool,
    pub(super) rate: Option<Rate>,
    pub(super) canary_count: Option<usize>,
    /// The members as the request gave them, for the audit.
    pub(super) audit_description: String,
}

impl StartRedriveRequest {
    pub(super) fn validate(self, caller: &Caller) -> Result<RedriveParameters, Problem> {
        let (description, has_filter) = (self.describe_members_for_audit(), self.has_filter());
        let handler_pointer = if self.handler.is_some() { "/handler" } else { "/source" };
        let status = self.status.map(|raw| parse_string("/status", &raw)).transpose()?;
        let reasons = parse_error_reasons(status.as_deref().unwrap_or("FAILED"))?;
        let tenant = parse_optional_text("/tenant", self.tenant, Tenant::new)?;
        let filter = TaskFilter {
            statuses: vec![TaskStatus::Error],
            error_reasons: reasons,
            handler: parse_handler_or_source(self.handler, self.source)?,
            subject_name: parse_optional_text(
                "/collection",
                self.collection,
                parse_collection_or_event_type,
            )?,
            event_id: None,
            tenant: caller.resolve_requested_tenant(tenant)?,
            key: parse_optional_text("/key", self.key, ObjectKey::new)?,
            created_from: parse_optional_timestamp("/start", self.start)?,
            created_before: parse_optional_timestamp("/end", self.end)?,
        };
        if filter.created_from.zip(filter.created_before).is_some_and(|(start, end)| end < start) {
            return Err(JsonError::new("/end", "the period ends before it starts").into());
        }
        let all = self.all.map(|raw| parse_member("/all", &raw, "true or false")).transpose()?;
        let dry_run = self.dry_run.map(|raw| parse_member("/dry_run", &raw, "true or false")).transpose()?;
        let rate = parse_optional_text("/rate", self.rate, |text: String| text.parse())?;
        let canary = self.canary_count.map(|raw| parse_canary_count(&raw)).transpose()?;
        require_filter_or_all(has_filter, all.unwrap_or(false))?;
        Ok(RedriveParameters {
            filter,
            handler_pointer,
            dry_run: dry_run.unwrap_or(false),
            rate,
            canary_count: canary,
            audit_description: description,
        })
    }

    /// Whether the request filters tasks. A status does not count, because all tasks that can be retried have one.
    fn has_filter(&self) -> bool {
        let Self { handler, source, collection, tenant, key, start, end, .. } = self;
        [handler, source, collection, tenant, key, start, end].into_iter().any(Option::is_some)
    }

    fn describe_members_for_audit(&self) -> String {
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
            ("canary", &self.canary_count),
        ];
        let given = members.iter().filter_map(|(name, raw)| Some(format!("{name}: {}", raw.as_ref()?.get())));
        given.collect::<Vec<_>>().join(", ")
    }
}

/// Requires a filter or an explicit `all`, because retrying everything is rarely intended.
fn require_filter_or_all(has_filter: bool, all: bool) -> Result<(), Problem> {
    match (has_filter, all) {
        (true, false) | (false, true) => Ok(()),
        (false, false) => Err(Problem::unprocessable(
            "select tasks by `handler` or `source`, `collection`, `tenant`, `key`, `start` or `end`; or give \
             `\"all\": true`",
        )
        .with_pointer("")),
        (true, true) => {
            Err(Problem::unprocessable("`all` cannot be combined with a filter").with_pointer("/all"))
        }
    }
}

/// Parses an event type or the name of a collection.
fn parse_collection_or_event_type(text: String) -> Result<String, BadName> {
    match CollectionName::new(&text) {
        Ok(_) => Ok(text),
        Err(_) => EventType::new(&text).map(|_| text),
    }
}

/// Parses the status into end reasons of tasks in `error`.
fn parse_error_reasons(status: &str) -> Result<Vec<ErrorReason>, Problem> {
    let refused = |detail: &str| Err(Problem::unprocessable(detail).with_pointer("/status"));
    match status {
        "FAILED" => Ok(vec![ErrorReason::Failed, ErrorReason::Crashed]),
        "CANCELED" => Ok(vec![ErrorReason::Canceled]),
        "error" => Ok(vec![ErrorReason::Failed, ErrorReason::Crashed, ErrorReason::Canceled]),
        "missing" => refused(
            "`missing` tasks wait for their handler: define it and adopt them \
             (POST /api/v1/handlers/{name}/adopt)",
        ),
        other => match StatusFilter::parse(other) {
            Ok(_) => refused("only tasks in `error` can be retried: FAILED, CANCELED, or `error` for both"),
            Err(unknown) => Err(JsonError::new("/status", unknown).into()),
        },
    }
}

/// Parses `handler` or `source`, which mean the same.
fn parse_handler_or_source(
    handler: Option<Box<RawValue>>,
    source: Option<Box<RawValue>>,
) -> Result<Option<HandlerName>, JsonError> {
    match (
        parse_optional_text("/handler", handler, HandlerName::new)?,
        parse_optional_text("/source", source, HandlerName::new)?,
    ) {
        (Some(handler), Some(source)) if handler != source => {
            Err(JsonError::new("/source", "`source` and `handler` mean the same; give one"))
        }
        (handler, source) => Ok(handler.or(source)),
    }
}

fn parse_optional_text<T, E: std::fmt::Display>(
    pointer: &str,
    raw: Option<Box<RawValue>>,
    parse: impl FnOnce(String) -> Result<T, E>,
) -> Result<Option<T>, JsonError> {
    let text = raw.map(|raw| parse_string(pointer, &raw)).transpose()?;
    text.map(parse).transpose().map_err(|e| JsonError::new(pointer, e))
}

fn parse_optional_timestamp(
    pointer: &str,
    raw: Option<Box<RawValue>>,
) -> Result<Option<Timestamp>, JsonError> {
    parse_optional_text(pointer, raw, |text| text.parse::<Timestamp>())
}

fn parse_canary_count(raw: &RawValue) -> Result<usize, JsonError> {
    let expectation = format!("a whole number from 1 to {MAX_CANARY_TASKS}");
    let canary: usize = parse_member("/canary", raw, &expectation)?;
    let valid = (1..=MAX_CANARY_TASKS).contains(&canary).then_some(canary);
    valid.ok_or_else(|| JsonError::new("/canary", format!("this is not {expectation}")))
}
