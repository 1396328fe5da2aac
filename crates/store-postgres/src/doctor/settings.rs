//! Checks settings of the server that lose data or slow the store down.

use std::collections::HashMap;
use std::time::Duration;

use pointsman_store::finding::{Finding, FindingSeverity};
use tokio_postgres::Error;

use super::{CheckResult, Doctor, format_shortened_list};
use crate::error::quote_identifier;
use crate::session::query;

/// A server setting and the condition under which it is wrong.
struct SettingCheck {
    name: &'static str,
    /// The recommended value.
    recommended_value: &'static str,
    severity: FindingSeverity,
    is_wrong: fn(&ServerSettings, &str) -> bool,
    /// The consequence of a wrong value.
    consequence: &'static str,
}

const SETTING_CHECKS: [SettingCheck; 10] = [
    SettingCheck {
        name: "fsync",
        recommended_value: "on",
        severity: FindingSeverity::Fault,
        is_wrong: |_, value| value == "off",
        consequence: "a crash of the machine can destroy the whole database",
    },
    SettingCheck {
        name: "full_page_writes",
        recommended_value: "on",
        severity: FindingSeverity::Fault,
        is_wrong: |_, value| value == "off",
        consequence: "a crash of the machine can leave pages half written",
    },
    SettingCheck {
        name: "synchronous_commit",
        recommended_value: "on",
        severity: FindingSeverity::Fault,
        // `local` waits for the disk, and without synchronous standbys there is nothing else to wait for.
        is_wrong: |settings, value| {
            value == "off" || value == "local" && !settings.value("synchronous_standby_names").is_empty()
        },
        consequence: "commits return before they are durable, and events emitted in SQL can be lost in a crash",
    },
    SettingCheck {
        name: "autovacuum",
        recommended_value: "on",
        severity: FindingSeverity::Warning,
        is_wrong: |_, value| value == "off",
        consequence: "tables grow without end, and claims become slower and slower",
    },
    SettingCheck {
        name: "track_counts",
        recommended_value: "on",
        severity: FindingSeverity::Warning,
        is_wrong: |_, value| value == "off",
        consequence: "autovacuum does not know which tables need it",
    },
    SettingCheck {
        name: "statement_timeout",
        recommended_value: "0",
        severity: FindingSeverity::Warning,
        is_wrong: |_, value| is_timeout_shorter_than(value, Duration::from_secs(60)),
        consequence: "a writer may wait 15 s for the write lock, and long lists take time to read",
    },
    SettingCheck {
        name: "idle_in_transaction_session_timeout",
        recommended_value: "0",
        severity: FindingSeverity::Warning,
        is_wrong: |_, value| is_timeout_shorter_than(value, Duration::from_secs(10)),
        consequence: "a node that is briefly slow is disconnected; writers set 10 s for themselves",
    },
    SettingCheck {
        name: "idle_session_timeout",
        recommended_value: "0",
        severity: FindingSeverity::Warning,
        is_wrong: |_, value| value != "0",
        consequence: "idle listening connections are closed, and nodes are notified later",
    },
    SettingCheck {
        name: "lock_timeout",
        recommended_value: "0",
        severity: FindingSeverity::Warning,
        is_wrong: |_, value| is_timeout_shorter_than(value, Duration::from_secs(1)),
        consequence: "a read during the creation of a partition may fail; writers set 15 s for themselves",
    },
    SettingCheck {
        name: "transaction_timeout",
        recommended_value: "0",
        severity: FindingSeverity::Warning,
        is_wrong: |_, value| is_timeout_shorter_than(value, Duration::from_secs(60)),
        consequence: "a writer may wait 15 s for the write lock, and long lists take time to read",
    },
];

/// Settings without a check, which the conditions of checks read.
const SETTINGS_READ_BY_CONDITIONS: [&str; 1] = ["synchronous_standby_names"];

/// The settings of this session by name, each with its value and its source.
struct ServerSettings(HashMap<String, (String, String)>);

impl ServerSettings {
    fn value(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |(value, _)| value.as_str())
    }
}

impl Doctor {
    pub(super) async fn check_settings(&self) -> CheckResult<()> {
        let names: Vec<&str> =
            SETTING_CHECKS.iter().map(|check| check.name).chain(SETTINGS_READ_BY_CONDITIONS).collect();
        let mut settings = ServerSettings(HashMap::new());
        // Not in a read-only transaction as the other queries, because that changes some settings.
        for row in self.session.query(query!("doctor/list_settings", TEXT_ARRAY), &[&names]).await? {
            settings.0.insert(row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?));
        }
        let mut findings: Vec<Finding> =
            SETTING_CHECKS.iter().filter_map(|check| check.evaluate(&settings, self)).collect();
        if findings.is_empty() {
            findings.push(Finding::ok("settings", "none loses data or slows Pointsman down"));
        }
        findings.extend(self.check_roles_with_asynchronous_commit().await?);
        Ok((findings, ()))
    }

    /// Finds roles whose commits do not wait for the disk, whatever the server's setting is.
    async fn check_roles_with_asynchronous_commit(&self) -> Result<Option<Finding>, Error> {
        let mut roles = Vec::new();
        for row in self.query_read_only(query!("doctor/list_roles_with_asynchronous_commit"), &[]).await? {
            let (role, is_database_only, setting): (&str, bool, &str) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let owner = if role.is_empty() { "all roles".into() } else { quote_identifier(role) };
            roles.push(format!(
                "{setting} for {owner}{}",
                if is_database_only { " in this database" } else { "" }
            ));
        }
        Ok((!roles.is_empty()).then(|| {
            Finding::warning("roles", format_shortened_list(&roles)).with_advice(
                "Events that such a role emits in SQL can be lost in a crash, although its commit succeeded. \
                 Undo it where that matters: ALTER ROLE … RESET synchronous_commit, or ALTER ROLE … IN \
                 DATABASE … RESET synchronous_commit.",
            )
        }))
    }

    /// Returns the statement that corrects a setting at its source.
    fn advice_for_setting(&self, check: &SettingCheck, source: &str) -> String {
        let SettingCheck { name, recommended_value, .. } = check;
        let (role, database) =
            (quote_identifier(self.endpoint.role()), quote_identifier(self.endpoint.database()));
        match source {
            "user" => format!("ALTER ROLE {role} RESET {name}"),
            "database" => format!("ALTER DATABASE {database} RESET {name}"),
            "database user" => format!("ALTER ROLE {role} IN DATABASE {database} RESET {name}"),
            "client" => format!("Remove {name} from the URL's options."),
            "command line" => format!("Remove {name} from the command line of the server."),
            _ => format!("ALTER SYSTEM SET {name} = {recommended_value}; SELECT pg_reload_conf()"),
        }
    }
}

impl SettingCheck {
    /// Returns a finding if the value is wrong; none if it is right, or if this server does not have the setting.
    fn evaluate(&self, settings: &ServerSettings, doctor: &Doctor) -> Option<Finding> {
        let (value, source) = settings.0.get(self.name)?;
        if !(self.is_wrong)(settings, value) {
            return None;
        }
        let found = format!("{value}: {}", self.consequence);
        let advice = doctor.advice_for_setting(self, source);
        Some(Finding { name: self.name, severity: self.severity, observation: found, advice: Some(advice) })
    }
}

/// True if a timeout in milliseconds is set and shorter than `minimum`.
fn is_timeout_shorter_than(value: &str, minimum: Duration) -> bool {
    value.parse().is_ok_and(|ms: u64| ms > 0 && Duration::from_millis(ms) < minimum)
}
