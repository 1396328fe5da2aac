//! `pointsman handlers show`: one handler with all that is known of it.

use pointsman_api::{HandlerBody, HandlerDetail, QueueBody, RuleBody, SourceBody};

use super::{limits, runs};
use crate::failure::Result;
use crate::output::{Output, age, clean, counted, day_and_time};

pub(super) fn show(output: Output, detail: &HandlerDetail) -> Result {
    if output.is_json() {
        return Ok(output.json(detail)?);
    }
    let handler = &detail.handler;
    let word = |value: serde_json::Result<serde_json::Value>| {
        value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    output.facts(&[
        ("handler", handler.name.clone()),
        ("runs", runs(handler)),
        ("target", handler.target.clone().unwrap_or_default()),
        ("timeout", handler.timeout_seconds.map(|s| format!("{s} s")).unwrap_or_default()),
        ("order", word(serde_json::to_value(handler.order))),
        ("on error", word(serde_json::to_value(handler.on_error))),
        ("retries", handler.retry_max.map(|max| max.to_string()).unwrap_or_default()),
        ("limits", handler.limits.as_ref().map(limits).unwrap_or_default()),
        ("types", routes(handler)),
        ("collections", handler.source.as_ref().map(collections).unwrap_or_default()),
        ("tenant", handler.source.as_ref().map(|source| source.tenant.clone()).unwrap_or_default()),
        ("oldest", handler.oldest_runnable_seconds.map(age).unwrap_or_default()),
    ])?;
    if !handler.rules.is_empty() {
        output.line("")?;
        output.table(&RULE_HEAD, rule_rows(&handler.rules), "")?;
    }
    output.line("")?;
    let head =
        ["tenant", "of", "ready", "oldest", "waiting", "scheduled", "running", "halted", "missing", "held"];
    output.table(&head, queues(&handler.queues), "Nothing waits for it.")?;
    match handler.more_queues {
        0 => Ok(()),
        more => Ok(output.line(format!("… and {} with fewer tasks", counted(more, "queue", "queues")))?),
    }
}

fn collections(source: &SourceBody) -> String {
    let shown = source.collections.iter().map(|c| format!("{} (priority {})", c.name, c.priority));
    shown.collect::<Vec<_>>().join(", ")
}

fn routes(handler: &HandlerBody) -> String {
    let shown =
        handler.routes.iter().map(|r| if r.sync { format!("{} (sync)", r.kind) } else { r.kind.clone() });
    shown.collect::<Vec<_>>().join(", ")
}

/// The head of a table of rules.
pub(crate) const RULE_HEAD: [&str; 6] = ["rule", "of", "tenant", "by", "since", "reason"];

pub(crate) fn rule_rows(rules: &[RuleBody]) -> Vec<Vec<String>> {
    let row = |rule: &RuleBody| {
        vec![
            rule.kind.as_str().into(),
            rule.name.clone(),
            rule.tenant.clone().unwrap_or_else(|| "all".into()),
            rule.by.clone(),
            day_and_time(&rule.since),
            clean(&rule.reason).into_owned(),
        ]
    };
    rules.iter().map(row).collect()
}

/// What its tasks have in common: a collection, or a node of a chain; nothing where they are for events.
fn of(queue: &QueueBody) -> String {
    match (&queue.collection, &queue.chain, &queue.node) {
        (Some(collection), _, _) => collection.clone(),
        (None, Some(chain), Some(node)) => format!("{chain} {node}"),
        (None, _, _) => "-".into(),
    }
}

fn queues(queues: &[QueueBody]) -> Vec<Vec<String>> {
    let row = |queue: &QueueBody| {
        let c = &queue.counts;
        let mut row = vec![
            queue.tenant.clone(),
            of(queue),
            c.ready.to_string(),
            queue.oldest_runnable_seconds.map_or("-".into(), age),
        ];
        row.extend([c.waiting, c.scheduled, c.running, c.halted, c.missing].map(|count| count.to_string()));
        row.push(if queue.held { "yes" } else { "no" }.into());
        row
    };
    queues.iter().map(row).collect()
}
