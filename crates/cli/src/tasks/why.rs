//! `pointsman tasks why`: the gates that a task has to pass before it runs, and what holds it.

use clap::Args;
use pointsman_api::client::Client;
use pointsman_api::{GateBody, TaskDetail, WhyBody};
use pointsman_core::task::AttemptEnd;

use super::{about, named};
use crate::failure::Result;
use crate::output::{Output, clean, day_and_time};

/// Tell why a task is not running
///
/// Lists the gates that it has to pass, in order. One marked ✗ is shut, and the row tells what holds it and,
/// where that is known, until when.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman tasks why ID
  pointsman tasks why ID -o json | jq '.gates[] | select(.open | not)'")]
pub(super) struct Why {
    /// The task's id, or its end
    id: String,
}

impl Why {
    pub(super) async fn run(self, client: &Client, output: Output) -> Result {
        let id = named::task(client, &self.id).await?;
        let why = match client.why(&id).await {
            Ok(why) => why,
            Err(error) => return Err(about(client, &id, error).await),
        };
        if output.is_json() {
            return Ok(output.json(&why)?);
        }
        // Beside the gates: without it they are told all the same.
        let before = client.task(&id).await.ok().and_then(|detail| failed_before(&detail));
        show(output, &why, before)
    }
}

/// What became of the last attempt, where it is the reason for the waiting.
fn failed_before(detail: &TaskDetail) -> Option<String> {
    if detail.task.retries == 0 || detail.task.status != "SCHEDULED" {
        return None;
    }
    let is_failure = |end| matches!(end, AttemptEnd::Failed | AttemptEnd::Crashed);
    let last = detail.attempts.iter().rev().find(|attempt| is_failure(attempt.end))?;
    let error = last.error.as_deref().map(|error| format!(": {}", clean(error))).unwrap_or_default();
    let again = match day_and_time(&detail.task.delay_until) {
        time if time.is_empty() => "it is tried again".into(),
        time => format!("tried again at {time}"),
    };
    Some(format!("attempt {} failed{error}; {again}", last.number))
}

fn show(output: Output, why: &WhyBody, before: Option<String>) -> Result {
    let status = output.paint.status(&why.status, &why.status);
    output.hanging(&format!("{status}: "), &clean(&why.summary))?;
    before.iter().try_for_each(|line| output.hanging("", line))?;
    if why.gates.is_empty() {
        return Ok(());
    }
    output.line("")?;
    let rows = why.gates.iter().map(row).collect();
    Ok(output.table(&["", "gate", "detail", "until", "held by"], rows, "")?)
}

fn row(gate: &GateBody) -> Vec<String> {
    // The wire has one word for each gate; reading it from there keeps it the same everywhere.
    let kind = serde_json::to_value(gate.gate).ok();
    let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or("-").replace('_', " ");
    vec![
        if gate.open { "✓" } else { "✗" }.into(),
        kind,
        clean(&gate.detail).into_owned(),
        day_and_time(&gate.until),
        holder(gate),
    ]
}

/// Who holds it: a rule by the name of whoever set it, or other tasks.
fn holder(gate: &GateBody) -> String {
    match &gate.rule {
        // Who holds all tenants is not told to one of them.
        Some(rule) if rule.by.is_empty() => format!("{} of {}", rule.kind.as_str(), rule.name),
        Some(rule) => format!("{} of {} by {}", rule.kind.as_str(), rule.name, clean(&rule.by)),
        None => gate.tasks.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(json: &str) -> GateBody {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_failure_that_is_made_up_for_is_told() {
        let detail: TaskDetail = serde_json::from_str(
            r#"{"eventId":1,"id":"a_x_1","source":"a","collection":"x","priority":100,"created_at":"","started_at":"",
            "finished_at":"","status":"SCHEDULED","state":"new","handler":"a","tenant":"default","key":"/a,1",
            "event_id":null,"retries":1,"attempt":1,"planned_at":"","delay_until":"2026-01-31T12:00:00.000000Z",
            "error":"exit code 3","running":null,"result":null,"attempts":[{"number":1,"started_at":"","ended_at":"",
            "end":"failed","error":"exit code 3"}]}"#,
        )
        .unwrap();
        let told = failed_before(&detail).unwrap();
        assert_eq!(told, "attempt 1 failed: exit code 3; tried again at 2026-01-31 12:00:00");
        let fresh = pointsman_api::TaskBody { retries: 0, ..detail.task.clone() };
        assert_eq!(failed_before(&TaskDetail { task: fresh, ..detail }), None);
    }

    #[test]
    fn a_shut_gate_is_told_by_a_sign_and_its_holder() {
        let held = gate(
            r#"{"gate":"rule","open":false,"detail":"a pause by ops","until":"","tasks":[],"rule":
            {"kind":"pause","space":"collection","name":"shop/orders","tenant":null,"by":"ops","reason":"","since":""}}"#,
        );
        assert_eq!(row(&held), ["✗", "rule", "a pause by ops", "", "pause of shop/orders by ops"]);
        let everybodys = GateBody {
            rule: held.rule.clone().map(|rule| pointsman_api::RuleBody { by: String::new(), ..rule }),
            ..held.clone()
        };
        assert_eq!(holder(&everybodys), "pause of shop/orders");
        let full = gate(
            r#"{"gate":"concurrency_per_key","open":false,"detail":"d","until":"2026-01-31T12:00:00.000000Z",
            "tasks":["a_b_1","a_b_2"],"rule":null}"#,
        );
        assert_eq!(row(&full), ["✗", "concurrency per key", "d", "2026-01-31 12:00:00", "a_b_1 a_b_2"]);
        let open = gate(r#"{"gate":"turn","open":true,"detail":"next","until":"","tasks":[],"rule":null}"#);
        assert_eq!(row(&open)[0], "✓");
    }
}
