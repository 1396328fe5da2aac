//! What was found, for people and for programs.

use pointsman_store::finding::{Finding, Verdict};

use crate::failure::Result;
use crate::output::{Output, clean, counted};

pub(super) fn json(findings: &[Finding]) -> serde_json::Value {
    serde_json::json!({
        "findings": findings,
        "warnings": count(findings, Verdict::Warning),
        "faults": count(findings, Verdict::Fault),
    })
}

fn count(findings: &[Finding], verdict: Verdict) -> u64 {
    findings.iter().filter(|finding| finding.verdict == verdict).count() as u64
}

/// A line a check, what to do about it below, and the sum at the end.
pub(super) fn lines(output: Output, findings: &[Finding]) -> Result {
    let width = findings.iter().map(|finding| finding.name.len()).max().unwrap_or(0);
    for finding in findings {
        let name = format!("{:<width$}", finding.name);
        let paint = output.paint;
        let (sign, name) = match finding.verdict {
            Verdict::Ok => (paint.good("✓"), paint.dim(&name)),
            Verdict::Warning => (paint.busy("!"), paint.busy(&name)),
            Verdict::Fault => (paint.bad("✗"), paint.bad(&name)),
        };
        output.hanging(&format!("{sign}  {name}  "), &clean(&finding.found))?;
        if let Some(advice) = &finding.advice {
            output.hanging(&format!("{:width$}     → ", ""), &clean(advice))?;
        }
    }
    let sum = [
        counted(count(findings, Verdict::Fault), "fault", "faults"),
        counted(count(findings, Verdict::Warning), "warning", "warnings"),
        format!("{} fine", count(findings, Verdict::Ok)),
    ];
    output.line("")?;
    Ok(output.line(sum.join(", "))?)
}
