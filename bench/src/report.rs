//! The results of a run, which are printed as a table or as JSON.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MeasurementUnit {
    /// Events, tasks or claims per second.
    PerSecond,
    Milliseconds,
    Megabytes,
    Rows,
    Bytes,
}

impl MeasurementUnit {
    /// Returns the text that is appended to a number of this unit.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::PerSecond => "/s",
            Self::Milliseconds => " ms",
            Self::Megabytes => " MB",
            Self::Rows => " rows",
            Self::Bytes => " bytes",
        }
    }
}

/// One measured value, with the value that it is compared with.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    pub name: String,
    pub value: f64,
    pub unit: MeasurementUnit,
    /// The name and the value of the other side of the comparison.
    #[serde(rename = "against")]
    pub compared_with: Option<(String, f64)>,
    /// `value / compared_with`.
    pub ratio: Option<f64>,
    /// The goal, such as `≥ 0.50 ×`.
    pub goal: Option<String>,
    #[serde(rename = "reached")]
    pub goal_reached: Option<bool>,
}

impl Figure {
    pub fn new(name: impl Into<String>, value: f64, unit: MeasurementUnit) -> Self {
        Self {
            name: name.into(),
            value,
            unit,
            compared_with: None,
            ratio: None,
            goal: None,
            goal_reached: None,
        }
    }

    pub fn with_comparison(mut self, name: impl Into<String>, value: f64) -> Self {
        self.ratio = (value > 0.0).then(|| self.value / value);
        self.compared_with = Some((name.into(), value));
        self
    }

    /// Sets the goal that the ratio is at least this.
    pub fn with_min_ratio(mut self, ratio: f64) -> Self {
        self.goal = Some(format!("≥ {ratio:.2} ×"));
        self.goal_reached = self.ratio.map(|r| r >= ratio);
        self
    }

    /// Sets the goal that the ratio is at most this.
    pub fn with_max_ratio(mut self, ratio: f64) -> Self {
        self.goal = Some(format!("≤ {ratio:.2} ×"));
        self.goal_reached = self.ratio.map(|r| r <= ratio);
        self
    }

    /// Sets the goal that the value is at most this ratio of the other side plus `offset`, because small values may
    /// double.
    pub fn with_max_ratio_and_offset(mut self, ratio: f64, offset: f64) -> Self {
        self.goal = Some(format!("≤ {ratio:.2} × + {offset}{}", self.unit.suffix()));
        self.goal_reached =
            self.compared_with.as_ref().map(|(_, other)| self.value <= other * ratio + offset);
        self
    }

    /// Sets the goal that the value itself is below this.
    pub fn with_max_value(mut self, limit: f64) -> Self {
        self.goal = Some(format!("< {limit}{}", self.unit.suffix()));
        self.goal_reached = Some(self.value < limit);
        self
    }
}

/// Values that were sampled over time.
#[derive(Clone, Debug, Serialize)]
pub struct TimeSeries {
    pub name: String,
    /// The times of the samples, in seconds since the start.
    pub times: Vec<f64>,
    /// The sampled quantities, each with one value for each time.
    pub lines: Vec<TimeSeriesLine>,
}

/// One sampled quantity over time.
#[derive(Clone, Debug, Serialize)]
pub struct TimeSeriesLine {
    pub name: String,
    pub unit: MeasurementUnit,
    pub values: Vec<f64>,
}

impl TimeSeries {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), times: vec![], lines: vec![] }
    }

    pub(crate) fn add_line(
        &mut self,
        name: impl Into<String>,
        unit: MeasurementUnit,
        values: impl Iterator<Item = f64>,
    ) {
        self.lines.push(TimeSeriesLine { name: name.into(), unit, values: values.collect() });
    }
}

/// The results of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BenchReport {
    pub figures: Vec<Figure>,
    #[serde(rename = "courses", skip_serializing_if = "Vec::is_empty")]
    pub time_series: Vec<TimeSeries>,
}

impl From<Vec<Figure>> for BenchReport {
    fn from(figures: Vec<Figure>) -> Self {
        Self { figures, time_series: vec![] }
    }
}

impl BenchReport {
    pub(crate) fn extend(&mut self, other: Self) {
        self.figures.extend(other.figures);
        self.time_series.extend(other.time_series);
    }
}

/// Returns the value below which the fraction `quantile` (0 to 1) of the samples is.
pub(crate) fn percentile(samples: &mut [f64], quantile: f64) -> f64 {
    if samples.is_empty() {
        return 0.0;
    }
    samples.sort_by(f64::total_cmp);
    samples[((samples.len() - 1) as f64 * quantile).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_returns_the_nearest_sample() {
        let mut samples: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut samples, 0.5), 50.0);
        assert_eq!(percentile(&mut samples, 0.99), 99.0);
        assert_eq!(percentile(&mut [], 0.5), 0.0);
    }

    #[test]
    fn a_maximum_value_is_formatted_with_its_unit() {
        let figure = Figure::new("x", 20.0, MeasurementUnit::Megabytes).with_max_value(30.0);
        assert_eq!((figure.goal.as_deref(), figure.goal_reached), (Some("< 30 MB"), Some(true)));
    }

    #[test]
    fn small_values_may_grow_by_the_offset() {
        let reached = |value, other| {
            Figure::new("x", value, MeasurementUnit::Megabytes)
                .with_comparison("before", other)
                .with_max_ratio_and_offset(1.2, 1.0)
                .goal_reached
        };
        assert_eq!((reached(0.2, 0.1), reached(200.0, 100.0)), (Some(true), Some(false)));
        assert_eq!((reached(0.0, 0.0), reached(120.0, 100.0)), (Some(true), Some(true)));
    }

    #[test]
    fn ratio_goals_compare_value_and_other_side() {
        let figure = Figure::new("x", 5.0, MeasurementUnit::PerSecond)
            .with_comparison("bare", 10.0)
            .with_min_ratio(0.5);
        assert_eq!((figure.ratio, figure.goal_reached), (Some(0.5), Some(true)));
        assert_eq!(
            Figure::new("x", 6.0, MeasurementUnit::Milliseconds)
                .with_comparison("bare", 2.0)
                .with_max_ratio(2.5)
                .goal_reached,
            Some(false)
        );
    }
}
