//! Faults and warnings of a configuration, each with its location.
//!
//! ```text
//! pointsman.yml:12:5: unknown setting `tiemout`; did you mean `timeout`?
//!    12 |     tiemout: 10s
//!       |     ^
//! ```
//!
//! A line that contains a secret is never shown, and no message repeats a secret value.

use std::fmt;

use super::location::SettingLocation;

/// The most characters of a line in an excerpt.
const MAX_EXCERPT_WIDTH: usize = 100;
/// The most faults that are printed. The rest are only counted.
const MAX_SHOWN_FAULTS: usize = 200;

/// One fault of a configuration.
#[derive(Clone, Debug)]
pub struct ConfigFault {
    location: SettingLocation,
    message: String,
}

impl ConfigFault {
    /// The file, line and column, or the variable or flag.
    pub fn location(&self) -> String {
        self.location.to_string()
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// The line of the fault with a caret below its column; none if the line contains a secret or there is no line.
    pub fn excerpt(&self) -> Option<String> {
        self.location.config_text.line_unless_secret(self.location.line).map(|text| self.format_excerpt(text))
    }

    /// The excerpt for clients of the API, without lines that contain URLs or commands.
    pub fn excerpt_for_api(&self) -> Option<String> {
        self.location
            .config_text
            .line_unless_hidden_from_api(self.location.line)
            .map(|text| self.format_excerpt(text))
    }

    /// Formats a line with its number and a caret below the column of the fault.
    fn format_excerpt(&self, text: &str) -> String {
        let (excerpt, before) = excerpt_around_column(text, self.location.column);
        format!("{:>5} | {excerpt}\n      | {before}^", self.location.line)
    }
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.message)?;
        self.excerpt().map_or(Ok(()), |excerpt| write!(f, "\n{excerpt}"))
    }
}

/// The part of a line around a column, and the blanks that put a caret below that column.
fn excerpt_around_column(line: &str, column: usize) -> (String, String) {
    let at = column.saturating_sub(1);
    let skip = if at >= MAX_EXCERPT_WIDTH { at - MAX_EXCERPT_WIDTH / 2 } else { 0 };
    // Control characters in a configuration must not reach the terminal that shows its faults.
    let clean = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
    let excerpt: String = line.chars().skip(skip).take(MAX_EXCERPT_WIDTH).map(clean).collect();
    let before = excerpt.chars().take(at - skip).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    (excerpt, before)
}

/// All faults of a configuration, sorted by location. Never empty.
#[derive(Clone, Debug)]
pub struct ConfigFaults(Vec<ConfigFault>);

impl ConfigFaults {
    pub fn iter(&self) -> impl Iterator<Item = &ConfigFault> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Always false: `ConfigFaults` contains at least one fault.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for ConfigFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in self.0.iter().take(MAX_SHOWN_FAULTS) {
            writeln!(f, "{fault}")?;
        }
        match self.0.len() {
            n if n > MAX_SHOWN_FAULTS => {
                write!(f, "{n} faults, of which the first {MAX_SHOWN_FAULTS} are shown")
            }
            1 => write!(f, "1 fault"),
            n => write!(f, "{n} faults"),
        }
    }
}

impl std::error::Error for ConfigFaults {}

/// A warning: something that is valid but probably not intended.
#[derive(Clone, Debug)]
pub struct ConfigWarning(ConfigFault);

impl ConfigWarning {
    pub(super) fn new(location: &SettingLocation, message: impl Into<String>) -> Self {
        Self(ConfigFault { location: location.clone(), message: message.into() })
    }
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.location, self.0.message)
    }
}

/// Collects faults and warnings while a configuration is read, so that reading continues after each.
#[derive(Debug, Default)]
pub(super) struct Findings {
    faults: Vec<ConfigFault>,
    warnings: Vec<ConfigWarning>,
}

impl Findings {
    pub(super) fn add_fault(&mut self, location: &SettingLocation, message: impl Into<String>) {
        self.faults.push(ConfigFault { location: location.clone(), message: message.into() });
    }

    pub(super) fn add_warning(&mut self, location: &SettingLocation, message: impl Into<String>) {
        self.warnings.push(ConfigWarning::new(location, message));
    }

    /// The result with its warnings, or all faults. A reader without a result has reported a fault; if it has not, a
    /// fault at `location` is added.
    pub(super) fn into_result<T>(
        mut self,
        read: Option<T>,
        location: &SettingLocation,
    ) -> Result<(T, Vec<ConfigWarning>), ConfigFaults> {
        match read {
            Some(read) if self.faults.is_empty() => {
                self.warnings.sort_by(|a, b| a.0.location.compare_in_reading_order(&b.0.location));
                return Ok((read, self.warnings));
            }
            None if self.faults.is_empty() => self.add_fault(location, "this cannot be read"),
            Some(_) | None => {}
        }
        self.faults.sort_by(|a, b| a.location.compare_in_reading_order(&b.location));
        Err(ConfigFaults(self.faults))
    }
}

#[cfg(test)]
mod tests {
    use super::super::location::{ConfigText, SettingOrigin};
    use super::*;

    fn test_location(text: &str, line: usize, column: usize) -> SettingLocation {
        SettingLocation {
            config_text: ConfigText::new(SettingOrigin::File("a.yml".into()), 0, text.into()),
            line,
            column,
        }
    }

    #[test]
    fn a_fault_is_formatted_with_its_line_and_a_caret() {
        let mut findings = Findings::default();
        findings.add_fault(&test_location("one\n\tkey: x\n", 2, 7), "no good");
        findings.add_fault(&test_location("one\n\tkey: x\n", 1, 1), "nor this");
        let excerpt = findings.into_result(Some(()), &test_location("", 0, 0)).unwrap_err().to_string();
        assert_eq!(
            excerpt,
            "a.yml:1:1: nor this\n    1 | one\n      | ^\n\
             a.yml:2:7: no good\n    2 | \tkey: x\n      | \t     ^\n2 faults"
        );
    }

    #[test]
    fn excerpts_of_long_lines_are_cut_and_control_characters_replaced() {
        let line = "x".repeat(300) + "\u{1b}[31m";
        let (excerpt, before) = excerpt_around_column(&line, 301);
        assert_eq!(before.chars().count(), MAX_EXCERPT_WIDTH / 2);
        assert_eq!(excerpt.chars().nth(MAX_EXCERPT_WIDTH / 2), Some('\u{fffd}'));
    }
}
