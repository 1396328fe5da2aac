//! `pointsman tasks why`: the gates that a task has to pass before it runs, and what holds it.

use clap::Args;
use pointsman_api::client::Client;
use pointsman_api::{GateBody, WhyBody};

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
        let why = client.why(&id).await.map_err(|e| about(&id, e))?;
        if output.is_json() {
            return Ok(output.json(&why)?);
        }
        show(output, &why)
    }
}

fn show(output: Output, why: &WhyBody) -> Result {
    output.line(format!("{}: {}", output.paint.status(&why.status, &why.status), clean(&why.summary)))?;
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
