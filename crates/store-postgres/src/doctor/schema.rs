//! Checks the privileges of the role and the state of the schema.

use pointsman_store::finding::{Finding, FindingSeverity};
use pointsman_store::store_copy::COPY_PROGRESS_TEXT_NAME;

use super::{BEGIN_READ_ONLY, CheckResult, Doctor, format_shortened_list};
use crate::migrate::{self, SchemaState};
use crate::privileges::RolePrivileges;
use crate::schema_objects::list_schema_object_names;
use crate::session::query;

impl Doctor {
    /// Checks privileges, layout and completeness of the schema; returns whether the store's tables can be read.
    pub(super) async fn check_schema(&self) -> CheckResult<bool> {
        let privileges_finding = self.check_privileges().await?;
        if privileges_finding.severity != FindingSeverity::Ok {
            return Ok((vec![privileges_finding], false));
        }
        let schema_state = migrate::read_schema_state(&self.session, &self.endpoint, self.migrations).await;
        let newest = self.migrations.len();
        let is_newest = matches!(schema_state, Ok(SchemaState::Applied(applied)) if applied == newest);
        let layout_finding = match schema_state {
            Ok(SchemaState::Absent | SchemaState::Empty) => {
                Finding::ok("layout", "there are no tables yet; the first node creates them")
            }
            Ok(SchemaState::Applied(_)) if is_newest => {
                Finding::ok("layout", format!("{newest}, the newest"))
            }
            Ok(SchemaState::Applied(older)) => Finding::ok(
                "layout",
                format!("{older}; the next node of this version migrates it to {newest}"),
            )
            .with_advice("Make a backup first; older versions cannot open it afterwards."),
            Err(error) => Finding::from_open_error("layout", &error),
        };
        let mut findings = vec![privileges_finding, layout_finding];
        let mut is_complete = false;
        if is_newest {
            let object_findings = self.check_schema_objects_and_copy().await?;
            is_complete = object_findings.iter().all(|finding| finding.severity != FindingSeverity::Fault);
            findings.extend(object_findings);
        }
        Ok((findings, is_complete))
    }

    /// Checks that every object of the layout exists, and that no store copy is unfinished.
    async fn check_schema_objects_and_copy(&self) -> Result<Vec<Finding>, tokio_postgres::Error> {
        self.session.execute_batch(BEGIN_READ_ONLY).await?;
        let findings = self.schema_object_and_copy_findings().await;
        self.session.execute_batch("ROLLBACK").await?;
        findings
    }

    async fn schema_object_and_copy_findings(&self) -> Result<Vec<Finding>, tokio_postgres::Error> {
        let missing = migrate::list_missing_schema_objects(&self.session).await?;
        if !missing.is_empty() {
            return Ok(vec![
                Finding::fault("missing", format!("{} of the schema pointsman", format_shortened_list(&missing))).with_advice(
                    "It was removed. Stop all nodes, and restore a backup; creating it again does not repair a store \
                     that ran without it.",
                ),
            ]);
        }
        let copy_progress =
            self.session.query(query!("meta/read_named_text", TEXT), &[&COPY_PROGRESS_TEXT_NAME]).await?;
        let unfinished_copy = Finding::fault("move", "a copy into this store has not finished")
            .with_advice("Run the same `pointsman move` again, or use another target.");
        let nothing_missing = Finding::ok("missing", "nothing");
        Ok(if copy_progress.is_empty() {
            vec![nothing_missing]
        } else {
            vec![nothing_missing, unfinished_copy]
        })
    }

    async fn check_privileges(&self) -> Result<Finding, tokio_postgres::Error> {
        let rows = self
            .query_read_only(query!("server/read_privileges", TEXT_ARRAY), &[&list_schema_object_names()])
            .await?;
        let Some(row) = rows.first() else { return Ok(Finding::fault("rights", "unknown")) };
        let privileges = RolePrivileges::from_row(row)?;
        Ok(match privileges.describe_missing() {
            None => Finding::ok("rights", privileges.describe_sufficient()),
            Some(missing) => Finding::fault("rights", missing).with_advice(format!(
                "Run as an owner: {}",
                privileges.grant_statement(self.endpoint.database())
            )),
        })
    }
}
