//! `pointsman schedules next`: explains an expression and lists its next times. Needs no server.

use clap::Args;
use pointsman_core::Timestamp;
use pointsman_core::cron::{Dialect, Expression, Schedule, Zone};

use crate::config::{ConfigArgs, load_config_for_display};
use crate::failure::{CommandResult, Failure};
use crate::output::Output;

/// Explain an expression and list its next times
///
/// Times are printed in UTC and in the schedule's time zone. Without an expression, every schedule of the configuration
/// is explained.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman schedules next
  pointsman schedules next '0 3 * * *' --timezone Europe/Berlin
  pointsman schedules next '0 0/5 8-18 ? * MON-FRI' --count 10
  pointsman schedules next 'every 90s' -o json

Five fields are Vixie cron (0 and 7 are Sunday), six or seven are Quartz (seconds first, 1 is Sunday).")]
pub(super) struct NextFiresCommand {
    /// Cron expression, `@daily` or the like, or `every 90s`
    expression: Option<String>,
    /// Time zone
    #[arg(long, default_value = "UTC", requires = "expression")]
    timezone: Zone,
    /// Cron dialect: auto, vixie, quartz
    #[arg(long, default_value = "auto", requires = "expression")]
    dialect: Dialect,
    /// Number of times to list
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
    #[command(flatten)]
    config: ConfigArgs,
}

impl NextFiresCommand {
    pub(super) fn run(&self, output: Output) -> CommandResult {
        let schedules = self.collect_schedules()?;
        let previews: Vec<SchedulePreview> =
            schedules.iter().map(|(name, schedule)| self.preview_schedule(name, schedule)).collect();
        if output.is_json() {
            return Ok(output.print_json(&serde_json::json!({ "schedules": previews }))?);
        }
        if previews.is_empty() {
            return Ok(output.print_line("No schedules. Configure them under `schedules:` and `sources:`.")?);
        }
        previews.iter().try_for_each(|preview| preview.print(output))
    }

    /// The given expression under its own text, or the schedules of the configuration under their names.
    fn collect_schedules(&self) -> CommandResult<Vec<(String, Schedule)>> {
        if let Some(text) = &self.expression {
            let expression = Expression::parse(text, self.dialect)
                .map_err(|error| Failure::usage(format!("{text:?} is not an expression: {error}")))?;
            return Ok(vec![(text.clone(), Schedule::new(expression, self.timezone.clone()))]);
        }
        let config = load_config_for_display(&self.config.to_inputs())?;
        let schedules = config.schedules.into_iter().map(|planned| planned.schedule);
        Ok(schedules.map(|schedule| (schedule.name.to_string(), schedule.cron)).collect())
    }

    fn preview_schedule(&self, name: &str, schedule: &Schedule) -> SchedulePreview {
        let now = pointsman_engine::machine_clock_now();
        let next_times: Vec<Timestamp> = schedule.upcoming(now).take(self.count.into()).collect();
        SchedulePreview {
            name: name.into(),
            description: schedule.expression().describe(),
            timezone: schedule.zone().name().into(),
            local_times: next_times.iter().map(|time| schedule.zone().format_local(*time)).collect(),
            next_times,
            warnings: schedule.warnings(now),
        }
    }
}

/// The description and the next times of one schedule.
#[derive(Debug, serde::Serialize)]
struct SchedulePreview {
    name: String,
    #[serde(rename = "means")]
    description: String,
    timezone: String,
    #[serde(rename = "next")]
    next_times: Vec<Timestamp>,
    /// The next times in the time zone.
    #[serde(rename = "local")]
    local_times: Vec<String>,
    warnings: Vec<String>,
}

impl SchedulePreview {
    fn print(&self, output: Output) -> CommandResult {
        output.print_line(&self.name)?;
        // The description of an interval contains the time zone.
        let zone = if self.description.ends_with("in UTC") { "" } else { &format!(" ({})", self.timezone) };
        output.print_line(format!("  {}{zone}", self.description))?;
        for (time, local) in self.next_times.iter().zip(&self.local_times) {
            let time = time.to_string().replace(".000000Z", "Z");
            let local = if self.timezone == "UTC" { String::new() } else { format!("   {local}") };
            output.print_line(format!("  {time}{local}"))?;
        }
        for warning in &self.warnings {
            output.print_line(format!("  {} {warning}", output.paint.yellow("warning:")))?;
        }
        Ok(())
    }
}
