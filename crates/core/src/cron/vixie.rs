//! Parses the day fields of a crontab: weekdays from 0, Sunday, which is also 7.
//!
//! When both fields are restricted, a day needs to match only one of them. A field counts as restricted unless it
//! begins with `*`, so with `*/2` a day must match both fields: that is how cron has always interpreted it.

use super::Dialect::Vixie;
use super::bad_expression::BadExpression;
use super::days::{DayFieldMatch, DayFields, MonthDayField, WeekdayField};
use super::field::{self, CronField};
use super::text_span::TextSpan;

/// Parses the two day fields of an expression.
pub(super) fn parse_days(
    month_field: TextSpan<'_>,
    week_field: TextSpan<'_>,
) -> Result<DayFields, BadExpression> {
    reject_quartz_characters(CronField::DayOfMonth, month_field, &['?', '#', 'L', 'l', 'W', 'w'])?;
    reject_quartz_characters(CronField::DayOfWeek, week_field, &['?', '#', 'L', 'l'])?;
    let month = field::parse_values(CronField::DayOfMonth, month_field, Vixie)?.set;
    let week = field::parse_values(CronField::DayOfWeek, week_field, Vixie)?.set;
    let (month_is_star, week_is_star) = (month_field.text.starts_with('*'), week_field.text.starts_with('*'));
    let day_match = if month_is_star || week_is_star { DayFieldMatch::Both } else { DayFieldMatch::Either };
    Ok(DayFields {
        day_of_month: MonthDayField { listed_days: month, special_days: [].into(), is_star: month_is_star },
        day_of_week: WeekdayField { listed_days: week, special_days: [].into(), is_star: week_is_star },
        day_match,
    })
}

/// Rejects characters that only Quartz allows. No abbreviation of a weekday contains an `L`, so names stay allowed.
fn reject_quartz_characters(
    field: CronField,
    part: TextSpan<'_>,
    characters: &[char],
) -> Result<(), BadExpression> {
    let Some((at, character)) = part.text.chars().enumerate().find(|(_, c)| characters.contains(c)) else {
        return Ok(());
    };
    let problem = if character == '?' {
        "`?` belongs to Quartz expressions; write `*` here".to_owned()
    } else {
        format!(
            "`{character}` belongs to Quartz expressions; put the second first, or set the dialect to quartz"
        )
    };
    Err(field.error(part.column + at, problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cron::number_set::NumberSet;

    fn parse_days_from_text(month_field: &str, week_field: &str) -> Result<DayFields, BadExpression> {
        parse_days(TextSpan::from_text(month_field), TextSpan { text: week_field, column: 9 })
    }

    #[test]
    fn either_day_field_is_enough_only_if_both_are_restricted() {
        assert_eq!(parse_days_from_text("13", "5").unwrap().day_match, DayFieldMatch::Either);
        assert_eq!(parse_days_from_text("*", "5").unwrap().day_match, DayFieldMatch::Both);
        assert_eq!(parse_days_from_text("*/2", "5").unwrap().day_match, DayFieldMatch::Both);
        assert_eq!(parse_days_from_text("13", "*/2").unwrap().day_match, DayFieldMatch::Both);
        assert_eq!(
            parse_days_from_text("13", "fri-sun").unwrap().day_of_week.listed_days,
            NumberSet::from_members([0, 5, 6])
        );
    }

    #[test]
    fn quartz_characters_are_rejected_with_a_hint() {
        let error = parse_days_from_text("L", "*").unwrap_err();
        assert_eq!((error.field, error.column), (Some(CronField::DayOfMonth), 1));
        assert!(error.problem.contains("dialect"), "{error}");
        assert_eq!(parse_days_from_text("*", "FRI#2").unwrap_err().column, 12);
        assert!(parse_days_from_text("?", "*").unwrap_err().problem.contains("write `*`"));
        assert!(parse_days_from_text("*", "WED").is_ok());
    }
}
