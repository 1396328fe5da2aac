//! Prints findings as text or JSON.

use pointsman_store::finding::{Finding, FindingSeverity};

use crate::failure::CommandResult;
use crate::output::{Output, escape_controls, format_count};

pub(super) fn findings_to_json(findings: &[Finding]) -> serde_json::Value {
    serde_json::json!({
        "findings": findings,
        "warnings": count_with_severity(findings, FindingSeverity::Warning),
        "faults": count_with_severity(findings, FindingSeverity::Fault),
    })
}

fn count_with_severity(findings: &[Finding], severity: FindingSeverity) -> u64 {
    findings.iter().filter(|finding| finding.severity == severity).count() as u64
}

/// Prints one line per check, its advice below, and the totals.
pub(super) fn print_findings(output: Output, findings: &[Finding]) -> CommandResult {
    let width = findings.iter().map(|finding| finding.name.len()).max().unwrap_or(0);
    for finding in findings {
        let name = format!("{:<width$}", finding.name);
        let paint = output.paint;
        let (mark, name) = match finding.severity {
            FindingSeverity::Ok => (paint.green("✓"), paint.dim(&name)),
            FindingSeverity::Warning => (paint.yellow("!"), paint.yellow(&name)),
            FindingSeverity::Fault => (paint.red("✗"), paint.red(&name)),
        };
        output.print_with_hanging_indent(
            &format!("{mark}  {name}  "),
            &escape_controls(&finding.observation),
        )?;
        if let Some(advice) = &finding.advice {
            output.print_with_hanging_indent(&format!("{:width$}     → ", ""), &escape_controls(advice))?;
        }
    }
    let totals = [
        format!("{} failed", count_with_severity(findings, FindingSeverity::Fault)),
        format_count(count_with_severity(findings, FindingSeverity::Warning), "warning", "warnings"),
        format!("{} passed", count_with_severity(findings, FindingSeverity::Ok)),
    ];
    output.print_line("")?;
    Ok(output.print_line(totals.join(", "))?)
}
