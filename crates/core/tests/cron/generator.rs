//! Generates random expressions, each with its meaning as plain lists. The lists are generated together with the text,
//! not parsed from it, so the parser is tested as well.

use pointsman_testing::Rng;

/// One field: its text, its values, and whether each of them is listed singly.
#[derive(Clone, Debug)]
pub(crate) struct GeneratedField {
    pub(crate) text: String,
    pub(crate) values: Vec<i64>,
    pub(crate) each_value_listed_singly: bool,
}

/// A day of the month whose number depends on the month.
#[derive(Clone, Debug)]
pub(crate) enum SpecialMonthDay {
    /// The day this many days before the last day.
    Last(i64),
    LastWorkingDay,
    /// The working day nearest to this day.
    NearestWorkingDay(i64),
}

/// A weekday that does not match every week.
#[derive(Clone, Debug)]
pub(crate) enum SpecialWeekday {
    /// The weekday, and the number of its occurrence in the month.
    Nth(i64, i64),
    /// The last occurrence of the weekday in the month.
    Last(i64),
}

/// An expression and its meaning. Weekdays count from Sunday, 0.
#[derive(Clone, Debug)]
pub(crate) struct GeneratedExpression {
    pub(crate) text: String,
    pub(crate) seconds: GeneratedField,
    pub(crate) minutes: GeneratedField,
    pub(crate) hours: GeneratedField,
    pub(crate) months: GeneratedField,
    pub(crate) listed_month_days: Vec<i64>,
    pub(crate) special_month_day: Option<SpecialMonthDay>,
    pub(crate) listed_weekdays: Vec<i64>,
    pub(crate) special_weekday: Option<SpecialWeekday>,
    pub(crate) day_matches_either_field: bool,
    pub(crate) is_quartz: bool,
}

impl GeneratedExpression {
    /// The expression for every day at 00:00:00, in Quartz's dialect.
    pub(crate) fn every_midnight() -> Self {
        Self {
            text: "0 0 0 ? * *".into(),
            seconds: value_field(0),
            minutes: value_field(0),
            hours: value_field(0),
            months: star_field(1, 12),
            listed_month_days: (1..=31).collect(),
            special_month_day: None,
            listed_weekdays: (0..=6).collect(),
            special_weekday: None,
            day_matches_either_field: false,
            is_quartz: true,
        }
    }

    pub(crate) fn lists_clock_times(&self) -> bool {
        self.seconds.each_value_listed_singly
            && self.minutes.each_value_listed_singly
            && self.hours.each_value_listed_singly
    }
}

fn star_field(low: i64, high: i64) -> GeneratedField {
    GeneratedField { text: "*".into(), values: (low..=high).collect(), each_value_listed_singly: false }
}

fn value_field(number: i64) -> GeneratedField {
    GeneratedField { text: number.to_string(), values: vec![number], each_value_listed_singly: true }
}

/// The values from `first` to `last`, wrapping around the end of the field if need be.
fn range_values(first: i64, last: i64, step: i64, low: i64, high: i64) -> Vec<i64> {
    let mut values = Vec::new();
    let (mut value, mut steps_taken) = (first, 0);
    loop {
        if steps_taken % step == 0 {
            values.push(value);
        }
        if value == last {
            return values;
        }
        value = if value == high { low } else { value + 1 };
        steps_taken += 1;
    }
}

/// Generates a field with values from `low` to `high`: a `*`, a value, a list, a range or a step.
fn generate_field(rng: &mut Rng, low: i64, high: i64) -> GeneratedField {
    match rng.number_in(0, 9) {
        0..=2 => star_field(low, high),
        3..=4 => value_field(rng.number_in(low, high)),
        5 => {
            let values: Vec<i64> = (0..rng.number_in(2, 4)).map(|_| rng.number_in(low, high)).collect();
            let text = values.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
            GeneratedField { text, values, each_value_listed_singly: true }
        }
        6 => {
            let step = rng.number_in(2, (high - low).min(30));
            let values = range_values(low, high, step, low, high);
            GeneratedField { text: format!("*/{step}"), values, each_value_listed_singly: false }
        }
        7 => {
            let (first, step) = (rng.number_in(low, high), rng.number_in(1, (high - low).min(30)));
            let values = range_values(first, high, step, low, high);
            GeneratedField { text: format!("{first}/{step}"), values, each_value_listed_singly: false }
        }
        8 => {
            let (first, last) = (rng.number_in(low, high), rng.number_in(low, high));
            let values = range_values(first, last, 1, low, high);
            GeneratedField { text: format!("{first}-{last}"), values, each_value_listed_singly: false }
        }
        _ => {
            let (first, last, step) =
                (rng.number_in(low, high), rng.number_in(low, high), rng.number_in(1, 5));
            let extra = rng.number_in(low, high);
            let mut values = range_values(first, last, step, low, high);
            values.push(extra);
            GeneratedField {
                text: format!("{extra},{first}-{last}/{step}"),
                values,
                each_value_listed_singly: false,
            }
        }
    }
}

/// Generates the field of the hour, mostly with hours in which clocks change.
fn generate_hours(rng: &mut Rng) -> GeneratedField {
    if rng.chance_percent(40) { value_field(rng.number_in(0, 3)) } else { generate_field(rng, 0, 23) }
}

fn random_weekday_name_or_empty(rng: &mut Rng, day: i64) -> String {
    const WEEKDAY_NAMES_IN_MIXED_CASE: [&str; 7] = ["SUN", "mon", "Tue", "WED", "thu", "FRI", "sat"];
    if rng.chance_percent(50) { WEEKDAY_NAMES_IN_MIXED_CASE[day as usize].into() } else { String::new() }
}

/// Generates five fields, as in a crontab.
pub(crate) fn generate_vixie(rng: &mut Rng) -> GeneratedExpression {
    let (minutes, hours) = (generate_field(rng, 0, 59), generate_hours(rng));
    let listed_month_days =
        if rng.chance_percent(55) { star_field(1, 31) } else { generate_field(rng, 1, 31) };
    let months = if rng.chance_percent(70) { star_field(1, 12) } else { generate_field(rng, 1, 12) };
    let listed_weekdays = if rng.chance_percent(55) { star_field(0, 6) } else { generate_field(rng, 0, 6) };
    let text = [&minutes, &hours, &listed_month_days, &months, &listed_weekdays]
        .map(|field| field.text.as_str())
        .join(" ");
    let restricted = |field: &GeneratedField| !field.text.starts_with('*');
    GeneratedExpression {
        text,
        day_matches_either_field: restricted(&listed_month_days) && restricted(&listed_weekdays),
        seconds: value_field(0),
        minutes,
        hours,
        months,
        listed_month_days: listed_month_days.values,
        special_month_day: None,
        listed_weekdays: listed_weekdays.values,
        special_weekday: None,
        is_quartz: false,
    }
}

/// Generates six fields, with the second first.
pub(crate) fn generate_quartz(rng: &mut Rng) -> GeneratedExpression {
    let (seconds, minutes, hours) =
        (generate_field(rng, 0, 59), generate_field(rng, 0, 59), generate_hours(rng));
    let months = if rng.chance_percent(70) { star_field(1, 12) } else { generate_field(rng, 1, 12) };
    let mut expression =
        GeneratedExpression { seconds, minutes, hours, months, ..GeneratedExpression::every_midnight() };
    let (of_month, of_week) = generate_quartz_days(rng, &mut expression);
    let fields = [
        &expression.seconds.text,
        &expression.minutes.text,
        &expression.hours.text,
        &of_month,
        &expression.months.text,
        &of_week,
    ];
    expression.text = fields.map(String::as_str).join(" ");
    expression
}

/// Generates the day-of-month and the day-of-week field, and stores their meaning in `expression`.
fn generate_quartz_days(rng: &mut Rng, expression: &mut GeneratedExpression) -> (String, String) {
    let unrestricted_field = |rng: &mut Rng| if rng.chance_percent(50) { "?" } else { "*" }.to_owned();
    match rng.number_in(0, 7) {
        0 | 1 => (unrestricted_field(rng), "*".into()),
        2 => {
            let days = generate_field(rng, 1, 31);
            expression.listed_month_days = days.values;
            (days.text, unrestricted_field(rng))
        }
        3 => {
            let days = generate_field(rng, 1, 7);
            expression.listed_weekdays = days.values.iter().map(|day| day - 1).collect();
            (unrestricted_field(rng).replace('*', "?"), days.text)
        }
        4 => {
            let before = rng.number_in(0, 4);
            (expression.listed_month_days, expression.special_month_day) =
                (vec![], Some(SpecialMonthDay::Last(before)));
            (if before == 0 { "L".into() } else { format!("L-{before}") }, "?".into())
        }
        5 => {
            let day = rng.number_in(1, 31);
            expression.listed_month_days = vec![];
            if rng.chance_percent(30) {
                expression.special_month_day = Some(SpecialMonthDay::LastWorkingDay);
                return ("LW".into(), "?".into());
            }
            expression.special_month_day = Some(SpecialMonthDay::NearestWorkingDay(day));
            (format!("{day}W"), "?".into())
        }
        choice => {
            let (day, nth) = (rng.number_in(0, 6), rng.number_in(1, 5));
            let name = random_weekday_name_or_empty(rng, day);
            let name = if name.is_empty() { (day + 1).to_string() } else { name };
            expression.listed_weekdays = vec![];
            if choice == 6 {
                expression.special_weekday = Some(SpecialWeekday::Nth(day, nth));
                return ("?".into(), format!("{name}#{nth}"));
            }
            expression.special_weekday = Some(SpecialWeekday::Last(day));
            ("?".into(), format!("{name}L"))
        }
    }
}
