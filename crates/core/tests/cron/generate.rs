//! Expressions made at random, each with what it means in plain lists. The lists are made beside the text, not
//! read from it, so the evaluator's parser is under test as well.

/// A small generator of numbers; the same seed gives the same expressions.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// From `low` to `high`, both included.
    pub(crate) fn roll(&mut self, low: i64, high: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + ((self.0 >> 11) % (high - low + 1) as u64) as i64
    }

    fn chance(&mut self, percent: i64) -> bool {
        self.roll(1, 100) <= percent
    }
}

/// One field: its text, its values, and whether each of them is named on its own.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) text: String,
    pub(crate) values: Vec<i64>,
    pub(crate) named: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum MonthDay {
    Last(i64),
    LastWeekday,
    Nearest(i64),
}

#[derive(Clone, Debug)]
pub(crate) enum WeekDay {
    Nth(i64, i64),
    Last(i64),
}

/// An expression and its meaning. Weekdays count from Sunday, 0.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) text: String,
    pub(crate) seconds: Field,
    pub(crate) minutes: Field,
    pub(crate) hours: Field,
    pub(crate) months: Field,
    pub(crate) month_days: Vec<i64>,
    pub(crate) month_mark: Option<MonthDay>,
    pub(crate) week_days: Vec<i64>,
    pub(crate) week_mark: Option<WeekDay>,
    pub(crate) either: bool,
    pub(crate) quartz: bool,
}

impl Spec {
    /// Every day at 00:00:00, in Quartz's dialect.
    pub(crate) fn midnight() -> Self {
        Self {
            text: "0 0 0 ? * *".into(),
            seconds: value(0),
            minutes: value(0),
            hours: value(0),
            months: star(1, 12),
            month_days: (1..=31).collect(),
            month_mark: None,
            week_days: (0..=6).collect(),
            week_mark: None,
            either: false,
            quartz: true,
        }
    }

    pub(crate) fn fixed(&self) -> bool {
        self.seconds.named && self.minutes.named && self.hours.named
    }
}

fn star(low: i64, high: i64) -> Field {
    Field { text: "*".into(), values: (low..=high).collect(), named: false }
}

fn value(number: i64) -> Field {
    Field { text: number.to_string(), values: vec![number], named: true }
}

/// From `first` to `last`, round the end of the field if need be.
fn walk(first: i64, last: i64, step: i64, low: i64, high: i64) -> Vec<i64> {
    let mut values = Vec::new();
    let (mut at, mut walked) = (first, 0);
    loop {
        if walked % step == 0 {
            values.push(at);
        }
        if at == last {
            return values;
        }
        at = if at == high { low } else { at + 1 };
        walked += 1;
    }
}

fn field(dice: &mut Dice, low: i64, high: i64) -> Field {
    match dice.roll(0, 9) {
        0..=2 => star(low, high),
        3..=4 => value(dice.roll(low, high)),
        5 => {
            let values: Vec<i64> = (0..dice.roll(2, 4)).map(|_| dice.roll(low, high)).collect();
            let text = values.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
            Field { text, values, named: true }
        }
        6 => {
            let step = dice.roll(2, (high - low).min(30));
            let values = walk(low, high, step, low, high);
            Field { text: format!("*/{step}"), values, named: false }
        }
        7 => {
            let (first, step) = (dice.roll(low, high), dice.roll(1, (high - low).min(30)));
            let values = walk(first, high, step, low, high);
            Field { text: format!("{first}/{step}"), values, named: false }
        }
        8 => {
            let (first, last) = (dice.roll(low, high), dice.roll(low, high));
            let values = walk(first, last, 1, low, high);
            Field { text: format!("{first}-{last}"), values, named: false }
        }
        _ => {
            let (first, last, step) = (dice.roll(low, high), dice.roll(low, high), dice.roll(1, 5));
            let extra = dice.roll(low, high);
            let mut values = walk(first, last, step, low, high);
            values.push(extra);
            Field { text: format!("{extra},{first}-{last}/{step}"), values, named: false }
        }
    }
}

/// Hours lie mostly where clocks are moved.
fn hours(dice: &mut Dice) -> Field {
    if dice.chance(40) { value(dice.roll(0, 3)) } else { field(dice, 0, 23) }
}

fn weekday_name(dice: &mut Dice, day: i64) -> String {
    const NAMES: [&str; 7] = ["SUN", "mon", "Tue", "WED", "thu", "FRI", "sat"];
    if dice.chance(50) { NAMES[day as usize].into() } else { String::new() }
}

/// Five fields, as a crontab has them.
pub(crate) fn vixie(dice: &mut Dice) -> Spec {
    let (minutes, hours) = (field(dice, 0, 59), hours(dice));
    let month_days = if dice.chance(55) { star(1, 31) } else { field(dice, 1, 31) };
    let months = if dice.chance(70) { star(1, 12) } else { field(dice, 1, 12) };
    let week_days = if dice.chance(55) { star(0, 6) } else { field(dice, 0, 6) };
    let text =
        [&minutes, &hours, &month_days, &months, &week_days].map(|field| field.text.as_str()).join(" ");
    let restricted = |field: &Field| !field.text.starts_with('*');
    Spec {
        text,
        either: restricted(&month_days) && restricted(&week_days),
        seconds: value(0),
        minutes,
        hours,
        months,
        month_days: month_days.values,
        month_mark: None,
        week_days: week_days.values,
        week_mark: None,
        quartz: false,
    }
}

/// Six or seven fields, with the second first.
pub(crate) fn quartz(dice: &mut Dice) -> Spec {
    let (seconds, minutes, hours) = (field(dice, 0, 59), field(dice, 0, 59), hours(dice));
    let months = if dice.chance(70) { star(1, 12) } else { field(dice, 1, 12) };
    let mut spec = Spec { seconds, minutes, hours, months, ..Spec::midnight() };
    let (of_month, of_week) = quartz_days(dice, &mut spec);
    let fields =
        [&spec.seconds.text, &spec.minutes.text, &spec.hours.text, &of_month, &spec.months.text, &of_week];
    spec.text = fields.map(String::as_str).join(" ");
    spec
}

fn quartz_days(dice: &mut Dice, spec: &mut Spec) -> (String, String) {
    let open = |dice: &mut Dice| if dice.chance(50) { "?" } else { "*" }.to_owned();
    match dice.roll(0, 7) {
        0 | 1 => (open(dice), "*".into()),
        2 => {
            let days = field(dice, 1, 31);
            spec.month_days = days.values;
            (days.text, open(dice))
        }
        3 => {
            let days = field(dice, 1, 7);
            spec.week_days = days.values.iter().map(|day| day - 1).collect();
            (open(dice).replace('*', "?"), days.text)
        }
        4 => {
            let before = dice.roll(0, 4);
            (spec.month_days, spec.month_mark) = (vec![], Some(MonthDay::Last(before)));
            (if before == 0 { "L".into() } else { format!("L-{before}") }, "?".into())
        }
        5 => {
            let day = dice.roll(1, 31);
            spec.month_days = vec![];
            if dice.chance(30) {
                spec.month_mark = Some(MonthDay::LastWeekday);
                return ("LW".into(), "?".into());
            }
            spec.month_mark = Some(MonthDay::Nearest(day));
            (format!("{day}W"), "?".into())
        }
        kind => {
            let (day, nth) = (dice.roll(0, 6), dice.roll(1, 5));
            let name = weekday_name(dice, day);
            let name = if name.is_empty() { (day + 1).to_string() } else { name };
            spec.week_days = vec![];
            if kind == 6 {
                spec.week_mark = Some(WeekDay::Nth(day, nth));
                return ("?".into(), format!("{name}#{nth}"));
            }
            spec.week_mark = Some(WeekDay::Last(day));
            ("?".into(), format!("{name}L"))
        }
    }
}
