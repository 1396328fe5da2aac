//! `pointsman handlers show`: one handler with its settings, queues and rules.

use pointsman_api::{HandlerBody, HandlerDetail, QueueBody, RuleBody, SourceBody};

use super::{describe_handler_limits, describe_run_kind};
use crate::failure::CommandResult;
use crate::output::{Output, escape_controls, format_age, format_count, format_timestamp};

pub(super) fn print_handler(output: Output, detail: &HandlerDetail) -> CommandResult {
    if output.is_json() {
        return Ok(output.print_json(detail)?);
    }
    let handler = &detail.handler;
    let json_name = |value: serde_json::Result<serde_json::Value>| {
        value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    output.print_fields(&[
        ("handler", handler.name.clone()),
        ("runs", describe_run_kind(handler)),
        ("target", handler.target.clone().unwrap_or_default()),
        ("timeout", handler.timeout_seconds.map(|s| format!("{s} s")).unwrap_or_default()),
        ("order", json_name(serde_json::to_value(handler.ordering))),
        ("on error", json_name(serde_json::to_value(handler.on_error))),
        ("retries", handler.retry_max.map(|max| max.to_string()).unwrap_or_default()),
        ("limits", handler.limits.as_ref().map(describe_handler_limits).unwrap_or_default()),
        ("types", format_routes(handler)),
        ("collections", handler.source.as_ref().map(format_collections).unwrap_or_default()),
        ("tenant", handler.source.as_ref().map(|source| source.tenant.clone()).unwrap_or_default()),
        ("oldest", handler.max_next_ready_task_age_seconds.map(format_age).unwrap_or_default()),
    ])?;
    if !handler.rules.is_empty() {
        output.print_line("")?;
        output.print_table(&RULE_COLUMNS, rule_rows(&handler.rules), "")?;
    }
    output.print_line("")?;
    let head = [
        "tenant",
        "queue",
        "ready",
        "oldest",
        "waiting",
        "scheduled",
        "running",
        "halted",
        "missing",
        "paused",
    ];
    output.print_table(&head, queue_rows(&handler.queues), "No tasks are waiting or running.")?;
    match handler.omitted_queue_count {
        0 => Ok(()),
        more => {
            Ok(output
                .print_line(format!("… and {} with fewer tasks", format_count(more, "queue", "queues")))?)
        }
    }
}

fn format_collections(source: &SourceBody) -> String {
    let collections = source.collections.iter().map(|c| format!("{} (priority {})", c.name, c.priority));
    collections.collect::<Vec<_>>().join(", ")
}

fn format_routes(handler: &HandlerBody) -> String {
    let routes = handler
        .routes
        .iter()
        .map(|r| if r.sync { format!("{} (sync)", r.event_type) } else { r.event_type.clone() });
    routes.collect::<Vec<_>>().join(", ")
}

/// The columns of a table of rules.
pub(crate) const RULE_COLUMNS: [&str; 6] = ["rule", "name", "tenant", "set by", "since", "reason"];

pub(crate) fn rule_rows(rules: &[RuleBody]) -> Vec<Vec<String>> {
    let row = |rule: &RuleBody| {
        vec![
            rule.kind.as_str().into(),
            rule.name.clone(),
            rule.tenant.clone().unwrap_or_else(|| "all".into()),
            rule.set_by.clone(),
            format_timestamp(&rule.since),
            escape_controls(&rule.reason).into_owned(),
        ]
    };
    rules.iter().map(row).collect()
}

/// The collection or chain node of a queue's tasks; a dash for tasks of events.
fn queue_label(queue: &QueueBody) -> String {
    match (&queue.collection, &queue.chain, &queue.chain_node) {
        (Some(collection), _, _) => collection.clone(),
        (None, Some(chain), Some(node)) => format!("{chain} {node}"),
        (None, _, _) => "-".into(),
    }
}

fn queue_rows(queues: &[QueueBody]) -> Vec<Vec<String>> {
    let row = |queue: &QueueBody| {
        let c = &queue.counts;
        let mut row = vec![
            queue.tenant.clone(),
            queue_label(queue),
            c.ready.to_string(),
            queue.next_ready_task_age_seconds.map_or("-".into(), format_age),
        ];
        row.extend([c.waiting, c.scheduled, c.running, c.halted, c.missing].map(|count| count.to_string()));
        row.push(if queue.is_paused_or_blocked { "yes" } else { "no" }.into());
        row
    };
    queues.iter().map(row).collect()
}
