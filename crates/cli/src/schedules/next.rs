//! `pointsman schedules next`: what an expression means, and when it fires. Needs no server.

use clap::Args;
use pointsman_core::Timestamp;
use pointsman_core::cron::{Dialect, Expression, Schedule, Zone};

use crate::config::{ConfigArgs, viewed};
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Tell in words what an expression means, and when it fires next
///
/// Times are given in UTC, and beside it as the clocks of the schedule's time zone show them. Without an
/// expression, tells it of every schedule of the configuration.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman schedules next
  pointsman schedules next '0 3 * * *' --timezone Europe/Berlin
  pointsman schedules next '0 0/5 8-18 ? * MON-FRI' --count 10
  pointsman schedules next 'every 90s' -o json

Five fields are Vixie cron (0 and 7 are Sunday), six or seven are Quartz (seconds first, 1 is Sunday).")]
pub(super) struct Next {
    /// A cron expression, `@daily` or the like, or `every 90s`
    expression: Option<String>,
    /// Whose clocks it means
    #[arg(long, default_value = "UTC", requires = "expression")]
    timezone: Zone,
    /// How its fields are read: auto, vixie, quartz
    #[arg(long, default_value = "auto", requires = "expression")]
    dialect: Dialect,
    /// How many times to tell
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
    #[command(flatten)]
    config: ConfigArgs,
}

impl Next {
    pub(super) fn run(&self, output: Output) -> Result {
        let schedules = self.schedules()?;
        let told: Vec<Told> = schedules.iter().map(|(name, schedule)| self.tell(name, schedule)).collect();
        if output.is_json() {
            return Ok(output.json(&serde_json::json!({ "schedules": told }))?);
        }
        if told.is_empty() {
            return Ok(output.line("No schedules. They are configured under `schedules:` and `sources:`.")?);
        }
        told.iter().try_for_each(|schedule| schedule.print(output))
    }

    /// The one that was asked for, or those of the configuration, by name.
    fn schedules(&self) -> Result<Vec<(String, Schedule)>> {
        if let Some(text) = &self.expression {
            let expression = Expression::parse(text, self.dialect)
                .map_err(|error| Failure::usage(format!("{text:?} is not an expression: {error}")))?;
            return Ok(vec![(text.clone(), Schedule::new(expression, self.timezone.clone()))]);
        }
        let config = viewed(&self.config.sources())?;
        let schedules = config.schedules.into_iter().map(|planned| planned.schedule);
        Ok(schedules.map(|schedule| (schedule.name.to_string(), schedule.when)).collect())
    }

    fn tell(&self, name: &str, schedule: &Schedule) -> Told {
        let now = pointsman_engine::now();
        let next: Vec<Timestamp> = schedule.upcoming(now).take(self.count.into()).collect();
        Told {
            name: name.into(),
            means: schedule.expression().describe(),
            timezone: schedule.zone().name().into(),
            local: next.iter().map(|time| schedule.zone().local(*time)).collect(),
            next,
            warnings: schedule.warnings(now),
        }
    }
}

/// What is told of one schedule.
#[derive(Debug, serde::Serialize)]
struct Told {
    name: String,
    means: String,
    timezone: String,
    next: Vec<Timestamp>,
    /// The same times on the zone's clocks.
    local: Vec<String>,
    warnings: Vec<String>,
}

impl Told {
    fn print(&self, output: Output) -> Result {
        output.line(&self.name)?;
        // The words of an interval say so themselves.
        let zone = if self.means.ends_with("in UTC") { "" } else { &format!(" ({})", self.timezone) };
        output.line(format!("  {}{zone}", self.means))?;
        for (time, local) in self.next.iter().zip(&self.local) {
            let time = time.to_string().replace(".000000Z", "Z");
            let local = if self.timezone == "UTC" { String::new() } else { format!("   {local}") };
            output.line(format!("  {time}{local}"))?;
        }
        for warning in &self.warnings {
            output.line(format!("  {} {warning}", output.paint.busy("mind:")))?;
        }
        Ok(())
    }
}
