//! `schedules`: events that are emitted at set times.
//!
//! For now a schedule fires at every multiple of an interval since 1970 (`every 90s`).

use std::time::Duration;

use pointsman_core::event::{MAX_CONTEXT_BYTES, MAX_CONTEXT_ENTRIES};
use pointsman_core::names::is_reserved;
use pointsman_core::time::parse_config_duration;
use pointsman_core::{Context, HandlingKey, NewEvent, ObjectKey, Priority, Tenant, Timestamp};
use pointsman_engine::Schedule;

use super::decode::{Fields, Keys, entries, parsed, text, whole};
use super::fault::Findings;
use super::handlers::{Names, claim_name};
use super::json;
use super::yaml::Node;

pub(super) const KEYS: Keys = Keys {
    of: "a schedule",
    known: &["cron", "emit"],
    later: &["catch_up", "catch_up_within", "overlap", "jitter", "dialect", "timezone"],
};
pub(super) const EMIT: Keys = Keys {
    of: "an event to emit",
    known: &["type", "key", "sub", "value", "context", "tenant", "priority"],
    later: &["delay", "at"],
};

/// The shortest interval.
const SHORTEST: Duration = Duration::from_secs(1);

pub(super) fn read(node: &Node, names: &mut Names, findings: &mut Findings) -> Vec<Schedule> {
    let mut schedules = Vec::new();
    for entry in entries(node, "`schedules`", findings).unwrap_or_default() {
        let name = claim_name(entry, names, findings);
        let Some(fields) = Fields::open(&entry.value, &KEYS, findings) else { continue };
        let every = fields.need("cron", "a schedule", findings).and_then(|n| parsed(n, findings, interval));
        let emit = fields.need("emit", "a schedule", findings).and_then(|n| event(n, findings));
        if let (Some(name), Some(every), Some(emit)) = (name, every, emit) {
            schedules.push(Schedule { name: name.to_string(), every, emit });
        }
    }
    schedules
}

fn interval(text: &str) -> Result<Duration, String> {
    let Some(every) = text.strip_prefix("every ") else {
        return Err(format!("{text:?}: cron expressions are not supported yet; write one like `every 90s`"));
    };
    match parse_config_duration(every.trim()) {
        Ok(every) if every < SHORTEST => Err("a schedule fires at most once a second".into()),
        Ok(every) => Ok(every),
        Err(error) => Err(error.to_string()),
    }
}

fn event(node: &Node, findings: &mut Findings) -> Option<NewEvent> {
    let fields = Fields::open(node, &EMIT, findings)?;
    let kind = fields.need("type", "an event to emit", findings).and_then(|n| {
        let kind = parsed(n, findings, str::parse::<HandlingKey>)?;
        if is_reserved(&kind) {
            findings.fault(&n.place, format!("{:?} is a type of the engine itself", kind.as_str()));
        }
        Some(kind)
    });
    let mut some_key = |key| fields.get(key).and_then(|n| parsed(n, findings, str::parse::<ObjectKey>));
    let (key, sub) = (some_key("key"), some_key("sub"));
    let value = fields.get("value").and_then(|n| json::read(n, findings));
    let context = fields.or("context", Context::new(), findings, context);
    let tenant = fields.or("tenant", Tenant::default(), findings, |n, f| parsed(n, f, str::parse::<Tenant>));
    let priority = fields.or("priority", Priority::default(), findings, |n, f| {
        let number = whole(n, f, 1..=Priority::MAX.get().into())?;
        Priority::try_from(i64::try_from(number).ok()?).ok()
    });
    let plain = NewEvent::of(kind?);
    let value = value.unwrap_or(plain.value.clone());
    Some(NewEvent { key, sub, value, context, tenant, priority, ..plain })
}

fn context(node: &Node, findings: &mut Findings) -> Option<Context> {
    let entries = entries(node, "a context", findings)?;
    if entries.len() > MAX_CONTEXT_ENTRIES {
        findings.fault(&node.place, format!("a context has at most {MAX_CONTEXT_ENTRIES} entries"));
    }
    let mut context = Context::new();
    for entry in entries {
        let Some(value) = text(&entry.value, findings) else { continue };
        if entry.key.len() > MAX_CONTEXT_BYTES || value.len() > MAX_CONTEXT_BYTES {
            let message = format!("names and values of a context have at most {MAX_CONTEXT_BYTES} bytes");
            findings.fault(&entry.at, message);
        }
        if value.contains('\0') || entry.key.contains('\0') {
            findings.fault(&entry.at, "a context holds no NUL characters");
        }
        context.insert(entry.key.clone(), value.to_owned());
    }
    Some(context)
}

/// The next `count` times of a schedule after `now`.
pub(super) fn next_times(schedule: &Schedule, now: Timestamp, count: usize) -> Vec<Timestamp> {
    let every = i64::try_from(schedule.every.as_micros()).unwrap_or(i64::MAX).max(1);
    let first = (now.micros().div_euclid(every)).saturating_add(1).saturating_mul(every);
    let times = std::iter::successors(Some(Timestamp::from_micros(first)), |t| Some(t.plus(schedule.every)));
    times.take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{faults_of, read as read_text};
    use super::*;

    fn all(node: &Node, findings: &mut Findings) -> Option<Vec<Schedule>> {
        Some(read(node, &mut Names::new(), findings))
    }

    #[test]
    fn a_schedule_emits_an_event_with_a_value_of_any_shape() {
        let text =
            "beat: {cron: every 90s, emit: {type: a.b, key: 'k:1', value: {n: [1, x]}, priority: 200}}";
        let schedule = &read_text(text, all).unwrap()[0];
        assert_eq!((schedule.name.as_str(), schedule.every), ("beat", Duration::from_secs(90)));
        assert_eq!(schedule.emit.value.as_str(), r#"{"n":[1,"x"]}"#);
        assert_eq!(schedule.emit.priority.get(), 200);
    }

    #[test]
    fn every_fault_is_told() {
        let text = "a: {cron: '0 3 * * *', emit: {type: OrderStarted}, catch_up: one}\n\
                    b: {cron: every 0s, emit: {key: '', priority: 0}}\n\
                    c: {emit: {type: x, vlaue: 1}}\n";
        assert_eq!(
            faults_of(text, all),
            [
                "\"0 3 * * *\": cron expressions are not supported yet; write one like `every 90s`",
                "\"OrderStarted\" is a type of the engine itself",
                "`catch_up` is not supported yet",
                "a schedule fires at most once a second",
                "an event to emit needs `type`",
                "a key has 1 to 512 bytes, this one has 0",
                "0 is too small; the least is 1",
                "a schedule needs `cron`",
                "unknown setting \"vlaue\" of an event to emit; did you mean `value`?",
            ]
        );
    }

    #[test]
    fn times_are_the_multiples_of_the_interval() {
        let emit = NewEvent::of(HandlingKey::new("a").unwrap());
        let schedule = Schedule { name: "s".into(), every: Duration::from_secs(60), emit };
        let times = next_times(&schedule, Timestamp::from_millis(60_000), 3);
        assert_eq!(times, [120_000, 180_000, 240_000].map(Timestamp::from_millis));
    }
}
