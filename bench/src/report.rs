//! Results, as a table for people and as data for programs.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Events, tasks or claims in a second.
    PerSecond,
    Milliseconds,
    Megabytes,
    Rows,
    Bytes,
}

impl Unit {
    /// What stands behind a number.
    pub fn sign(self) -> &'static str {
        match self {
            Self::PerSecond => "/s",
            Self::Milliseconds => " ms",
            Self::Megabytes => " MB",
            Self::Rows => " rows",
            Self::Bytes => " bytes",
        }
    }
}

/// One figure beside what it is compared with.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    pub name: String,
    pub value: f64,
    pub unit: Unit,
    /// What it is measured against: the name and the value of the other side.
    pub against: Option<(String, f64)>,
    /// `value / against`.
    pub ratio: Option<f64>,
    /// What is to be reached, in words.
    pub goal: Option<String>,
    pub reached: Option<bool>,
}

impl Figure {
    pub fn new(name: impl Into<String>, value: f64, unit: Unit) -> Self {
        Self { name: name.into(), value, unit, against: None, ratio: None, goal: None, reached: None }
    }

    pub fn against(mut self, name: impl Into<String>, value: f64) -> Self {
        self.ratio = (value > 0.0).then(|| self.value / value);
        self.against = Some((name.into(), value));
        self
    }

    /// The ratio is to be at least this.
    pub fn at_least(mut self, ratio: f64) -> Self {
        self.goal = Some(format!("≥ {ratio:.2} ×"));
        self.reached = self.ratio.map(|r| r >= ratio);
        self
    }

    /// The ratio is to be at most this.
    pub fn at_most(mut self, ratio: f64) -> Self {
        self.goal = Some(format!("≤ {ratio:.2} ×"));
        self.reached = self.ratio.map(|r| r <= ratio);
        self
    }

    /// The value is to be at most this times the other side, and so much more, because what is small may double.
    pub fn no_more_than(mut self, ratio: f64, more: f64) -> Self {
        self.goal = Some(format!("≤ {ratio:.2} × + {more}{}", self.unit.sign()));
        self.reached = self.against.as_ref().map(|(_, other)| self.value <= other * ratio + more);
        self
    }

    /// The value itself is to be below this.
    pub fn below(mut self, limit: f64) -> Self {
        self.goal = Some(format!("< {limit}{}", self.unit.sign()));
        self.reached = Some(self.value < limit);
        self
    }
}

/// How things went over time.
#[derive(Clone, Debug, Serialize)]
pub struct Course {
    pub name: String,
    /// When it was looked at, in seconds since the begin.
    pub times: Vec<f64>,
    /// What was looked at: at each of the times a value.
    pub lines: Vec<Line>,
}

/// One thing over time.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    pub name: String,
    pub unit: Unit,
    pub values: Vec<f64>,
}

impl Course {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), times: vec![], lines: vec![] }
    }

    pub(crate) fn add(&mut self, name: impl Into<String>, unit: Unit, values: impl Iterator<Item = f64>) {
        self.lines.push(Line { name: name.into(), unit, values: values.collect() });
    }
}

/// All that a run has measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    pub figures: Vec<Figure>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub courses: Vec<Course>,
}

impl From<Vec<Figure>> for Report {
    fn from(figures: Vec<Figure>) -> Self {
        Self { figures, courses: vec![] }
    }
}

impl Report {
    pub(crate) fn extend(&mut self, other: Self) {
        self.figures.extend(other.figures);
        self.courses.extend(other.courses);
    }
}

/// The value below which `part` (0 to 1) of the samples lie.
pub(crate) fn percentile(samples: &mut [f64], part: f64) -> f64 {
    if samples.is_empty() {
        return 0.0;
    }
    samples.sort_by(f64::total_cmp);
    samples[((samples.len() - 1) as f64 * part).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        let mut samples: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut samples, 0.5), 50.0);
        assert_eq!(percentile(&mut samples, 0.99), 99.0);
        assert_eq!(percentile(&mut [], 0.5), 0.0);
    }

    #[test]
    fn a_limit_is_told_with_its_unit() {
        let figure = Figure::new("x", 20.0, Unit::Megabytes).below(30.0);
        assert_eq!((figure.goal.as_deref(), figure.reached), (Some("< 30 MB"), Some(true)));
    }

    #[test]
    fn what_is_small_may_double() {
        let reached = |value, other| {
            Figure::new("x", value, Unit::Megabytes).against("before", other).no_more_than(1.2, 1.0).reached
        };
        assert_eq!((reached(0.2, 0.1), reached(200.0, 100.0)), (Some(true), Some(false)));
        assert_eq!((reached(0.0, 0.0), reached(120.0, 100.0)), (Some(true), Some(true)));
    }

    #[test]
    fn goals_are_judged_by_the_ratio() {
        let figure = Figure::new("x", 5.0, Unit::PerSecond).against("bare", 10.0).at_least(0.5);
        assert_eq!((figure.ratio, figure.reached), (Some(0.5), Some(true)));
        assert_eq!(
            Figure::new("x", 6.0, Unit::Milliseconds).against("bare", 2.0).at_most(2.5).reached,
            Some(false)
        );
    }
}
