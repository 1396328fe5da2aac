//! `pointsman tasks why`: the gates that a task must pass before it runs, and which one blocks it.

use clap::Args;
use pointsman_api::client::Client;
use pointsman_api::{TaskDetail, TaskGateBody, TaskWhyBody};
use pointsman_core::task::AttemptOutcome;

use super::{resolve_id, task_request_failure};
use crate::failure::CommandResult;
use crate::output::{Output, escape_controls, format_timestamp};

/// Explain why a task is waiting
///
/// Lists the gates that the task must pass, in order. A gate marked ✗ is closed; its row shows what blocks the task and,
/// if known, until when.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman tasks why ID
  pointsman tasks why ID -o json | jq '.gates[] | select(.open | not)'")]
pub(super) struct WhyCommand {
    /// Id of the task, or the end of it
    id: String,
}

impl WhyCommand {
    pub(super) async fn run(self, client: &Client, output: Output) -> CommandResult {
        let id = resolve_id::resolve_task_id(client, &self.id).await?;
        let why = match client.read_task_why(&id).await {
            Ok(why) => why,
            Err(error) => return Err(task_request_failure(client, &id, error).await),
        };
        if output.is_json() {
            return Ok(output.print_json(&why)?);
        }
        // Optional: the gates are printed even if this call fails.
        let last_failure = client.read_task(&id).await.ok().and_then(|detail| describe_last_failure(&detail));
        print_gates(output, &why, last_failure)
    }
}

/// The last failed attempt of a task that waits to be retried.
fn describe_last_failure(detail: &TaskDetail) -> Option<String> {
    if detail.task.retries == 0 || detail.task.status != "SCHEDULED" {
        return None;
    }
    let is_failure = |outcome| matches!(outcome, AttemptOutcome::Failed | AttemptOutcome::Crashed);
    let last = detail.attempts.iter().rev().find(|attempt| is_failure(attempt.outcome))?;
    let error =
        last.error.as_deref().map(|error| format!(": {}", escape_controls(error))).unwrap_or_default();
    let retry = match format_timestamp(&detail.task.delay_until) {
        time if time.is_empty() => "will be retried".into(),
        time => format!("will be retried at {time}"),
    };
    Some(format!("attempt {} failed{error}; {retry}", last.number))
}

fn print_gates(output: Output, why: &TaskWhyBody, last_failure: Option<String>) -> CommandResult {
    let status = output.paint.color_by_status(&why.status, &why.status);
    output.print_with_hanging_indent(&format!("{status}: "), &escape_controls(&why.summary))?;
    last_failure.iter().try_for_each(|line| output.print_with_hanging_indent("", line))?;
    if why.gates.is_empty() {
        return Ok(());
    }
    output.print_line("")?;
    let rows = why.gates.iter().map(gate_row).collect();
    Ok(output.print_table(&["", "gate", "detail", "until", "blocked by"], rows, "")?)
}

fn gate_row(gate: &TaskGateBody) -> Vec<String> {
    // The JSON name of the gate.
    let kind = serde_json::to_value(gate.kind).ok();
    let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or("-").replace('_', " ");
    vec![
        if gate.open { "✓" } else { "✗" }.into(),
        kind,
        escape_controls(&gate.detail).into_owned(),
        format_timestamp(&gate.opens_at),
        describe_blocker(gate),
    ]
}

/// Describes the blocker of the gate: a rule with the name of the token that set it, or other tasks.
fn describe_blocker(gate: &TaskGateBody) -> String {
    match &gate.rule {
        // A token bound to a tenant does not see who set a rule for all tenants.
        Some(rule) if rule.set_by.is_empty() => format!("{} of {}", rule.kind.as_str(), rule.name),
        Some(rule) => format!("{} of {} by {}", rule.kind.as_str(), rule.name, escape_controls(&rule.set_by)),
        None => gate.blocking_tasks.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_gate(json: &str) -> TaskGateBody {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn the_failure_before_a_retry_is_described() {
        let detail: TaskDetail = serde_json::from_str(
            r#"{"eventId":1,"id":"a_x_1","source":"a","collection":"x","priority":100,"created_at":"","started_at":"",
            "finished_at":"","status":"SCHEDULED","state":"new","handler":"a","tenant":"default","key":"/a,1",
            "event_id":null,"retries":1,"attempt":1,"planned_at":"","delay_until":"2026-01-31T12:00:00.000000Z",
            "error":"exit code 3","running":null,"result":null,"attempts":[{"number":1,"started_at":"","ended_at":"",
            "end":"failed","error":"exit code 3"}]}"#,
        )
        .unwrap();
        let description = describe_last_failure(&detail).unwrap();
        assert_eq!(description, "attempt 1 failed: exit code 3; will be retried at 2026-01-31 12:00:00");
        let not_retried = pointsman_api::TaskBody { retries: 0, ..detail.task.clone() };
        assert_eq!(describe_last_failure(&TaskDetail { task: not_retried, ..detail }), None);
    }

    #[test]
    fn a_closed_gate_shows_a_mark_and_its_blocker() {
        let paused = parse_gate(
            r#"{"gate":"rule","open":false,"detail":"a pause by ops","until":"","tasks":[],"rule":
            {"kind":"pause","space":"collection","name":"shop/orders","tenant":null,"by":"ops","reason":"","since":""}}"#,
        );
        assert_eq!(gate_row(&paused), ["✗", "rule", "a pause by ops", "", "pause of shop/orders by ops"]);
        let without_name = TaskGateBody {
            rule: paused.rule.clone().map(|rule| pointsman_api::RuleBody { set_by: String::new(), ..rule }),
            ..paused.clone()
        };
        assert_eq!(describe_blocker(&without_name), "pause of shop/orders");
        let full = parse_gate(
            r#"{"gate":"concurrency_per_key","open":false,"detail":"d","until":"2026-01-31T12:00:00.000000Z",
            "tasks":["a_b_1","a_b_2"],"rule":null}"#,
        );
        assert_eq!(gate_row(&full), ["✗", "concurrency per key", "d", "2026-01-31 12:00:00", "a_b_1 a_b_2"]);
        let open =
            parse_gate(r#"{"gate":"turn","open":true,"detail":"next","until":"","tasks":[],"rule":null}"#);
        assert_eq!(gate_row(&open)[0], "✓");
    }
}
