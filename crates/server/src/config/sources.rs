//! Reads the section `sources`: collections that are synchronised at planned times or on request.
//!
//! A source runs like a handler but gets no events. Its schedule applies to all its collections, and a collection can
//! override it: another `schedule`, another `timezone`, or `schedule: never`.
//!
//! ```text
//!  sources.shop ─┬─▶ a handler with its collections ─────▶ the engine
//!                └─▶ a schedule `shop/orders` for each collection that has one
//! ```

use std::collections::BTreeMap;

use pointsman_core::cron::{self, Dialect, Expression, Zone};
use pointsman_core::fire::{FireAction, OverlapPolicy};
use pointsman_core::handler::AttemptEventPolicy;
use pointsman_core::store::NewCollectionRun;
use pointsman_core::task::retry::RetryPolicy;
use pointsman_core::{
    CollectionName, HandlerDef, HandlerName, Priority, SourceCollection, SourceDef, Tenant,
};
use pointsman_engine::ScheduleSpec;
use pointsman_engine::handlers::http::NetworkAccess;

use super::decode::{AllowedKeys, CheckedMap, parse_scalar, read_list_items, read_map_entries};
use super::fault::Findings;
use super::handler_run::{self, HandlerRunConfig};
use super::handlers::{
    HandlerConfig, NameLocations, read_max_crashes, read_observe_policy, read_unique_name,
};
use super::location::SettingLocation;
use super::retry;
use super::schedule_timing::{self, SchedulePolicy};
use super::schedules::ScheduleConfig;
use super::secrets::SecretResolver;
use super::yaml::{YamlEntry, YamlKind, YamlNode};

pub(super) const SOURCE_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "a source",
    names: &[
        "run",
        "collections",
        "schedule",
        "timezone",
        "dialect",
        "catch_up",
        "catch_up_within",
        "jitter",
        "tenant",
        "retry",
        "crashes",
        "observe",
    ],
    not_yet_supported: &[],
};
const COLLECTION_KEYS: AllowedKeys = AllowedKeys {
    described_thing: "a collection",
    names: &["name", "schedule", "timezone", "dialect", "priority"],
    not_yet_supported: &[],
};

/// The schedule of a collection that is synchronised on request only.
const NEVER_SCHEDULED: &str = "never";

/// The section `sources`.
#[derive(Debug, Default)]
pub(super) struct SourcesSection {
    pub(super) sources: Vec<HandlerConfig>,
    /// The schedules of the collections.
    pub(super) schedules: Vec<ScheduleConfig>,
}

pub(super) fn read_sources(
    node: &YamlNode,
    network: &NetworkAccess,
    names: &mut NameLocations,
    resolver: &mut SecretResolver,
    findings: &mut Findings,
) -> SourcesSection {
    let mut section = SourcesSection::default();
    for entry in read_map_entries(node, "`sources`", findings).unwrap_or_default() {
        let name = read_unique_name(entry, names, findings);
        if let Some((source, schedules)) = read_source(entry, name, network, resolver, findings) {
            section.sources.push(source);
            section.schedules.extend(schedules);
        }
    }
    section
}

/// Reads a source, even one with an invalid name, to find its other faults.
fn read_source(
    entry: &YamlEntry,
    name: Option<HandlerName>,
    network: &NetworkAccess,
    resolver: &mut SecretResolver,
    findings: &mut Findings,
) -> Option<(HandlerConfig, Vec<ScheduleConfig>)> {
    let fields = CheckedMap::from_node_with_known_keys(&entry.value, &SOURCE_KEYS, findings)?;
    let run = match fields.get("run") {
        Some(node) => handler_run::read_handler_run(node, network, resolver, findings),
        None => Some(HandlerRunConfig::Pull),
    };
    let tenant = fields.read_or_default("tenant", Tenant::default(), findings, |n, f| {
        parse_scalar(n, f, str::parse::<Tenant>)
    });
    let retry = fields.read_or_default("retry", RetryPolicy::default(), findings, retry::read_retry);
    let crashes = fields.get("crashes").and_then(|n| read_max_crashes(n, findings));
    let observe = fields.read_or_default("observe", AttemptEventPolicy::All, findings, read_observe_policy);
    let policy = SchedulePolicy::read(&fields, findings);
    let timing = SyncTiming::read_for_source(&fields, findings);
    let collections = read_collections(entry, &fields, &timing, findings);
    let (name, run) = (name?, run?);
    let schedules =
        collections.iter().filter_map(|collection| collection.schedule_config(&name, policy)).collect();
    let collections =
        collections.into_iter().map(|collection| (collection.name, collection.priority)).collect();
    let defaults = HandlerDef::new(name);
    let def = HandlerDef {
        retry,
        max_crashes: crashes.unwrap_or(defaults.max_crashes),
        attempt_event_policy: observe,
        pull: matches!(run, HandlerRunConfig::Pull),
        source: Some(SourceDef { tenant, collections }),
        ..defaults
    };
    Some((HandlerConfig { def, run, location: entry.key_location.clone() }, schedules))
}

/// When a collection is synchronised.
#[derive(Clone, Debug)]
struct SyncTiming {
    trigger: SyncTrigger,
    zone: Zone,
    dialect: Dialect,
}

#[derive(Clone, Debug)]
enum SyncTrigger {
    OnRequest,
    /// The cron expression and its location.
    OnSchedule(Expression, SettingLocation),
}

impl SyncTiming {
    fn read_for_source(fields: &CheckedMap, findings: &mut Findings) -> Self {
        let inherited = Self { trigger: SyncTrigger::OnRequest, zone: Zone::utc(), dialect: Dialect::Auto };
        Self::read(fields, &inherited, findings)
    }

    fn read_for_collection(fields: &CheckedMap, source: &Self, findings: &mut Findings) -> Self {
        if let (None, Some(node)) = (fields.get("schedule"), fields.get("dialect")) {
            let message = "`dialect` applies to a collection's own `schedule`, and this one has none";
            findings.add_fault(&node.location, message);
        }
        Self::read(fields, source, findings)
    }

    /// Reads the settings of a map. Those that are missing are inherited.
    fn read(fields: &CheckedMap, inherited: &Self, findings: &mut Findings) -> Self {
        let zone = schedule_timing::read_time_zone(fields, inherited.zone.clone(), findings);
        let dialect = schedule_timing::read_dialect(fields, inherited.dialect, findings);
        let trigger = match fields.get("schedule") {
            Some(node) => SyncTrigger::read(node, dialect, findings),
            None => inherited.trigger.clone(),
        };
        Self { trigger, zone, dialect }
    }
}

impl SyncTrigger {
    fn read(node: &YamlNode, dialect: Dialect, findings: &mut Findings) -> Self {
        if matches!(&node.kind, YamlKind::Scalar { text, .. } if text == NEVER_SCHEDULED) {
            return Self::OnRequest;
        }
        match schedule_timing::read_cron_expression(node, dialect, findings) {
            Some(expression) => Self::OnSchedule(expression, node.location.clone()),
            None => Self::OnRequest,
        }
    }
}

#[derive(Debug)]
struct CollectionConfig {
    name: CollectionName,
    priority: Priority,
    timing: SyncTiming,
}

impl CollectionConfig {
    /// The schedule of the collection; none if it is synchronised on request only. There is at most one task of a
    /// collection at a time, so that overlapping firings are skipped.
    fn schedule_config(&self, source: &HandlerName, policy: SchedulePolicy) -> Option<ScheduleConfig> {
        let SyncTrigger::OnSchedule(expression, location) = &self.timing.trigger else { return None };
        let pair = SourceCollection { source: source.clone(), collection: self.name.clone() };
        let when = cron::Schedule::new(expression.clone(), self.timing.zone.clone());
        let name = pair.schedule_name();
        let schedule = ScheduleSpec::new(
            name,
            when,
            FireAction::RunCollection(NewCollectionRun { source_collection: pair, priority: None }),
        );
        let schedule = policy.apply_to(ScheduleSpec { overlap: OverlapPolicy::Skip, ..schedule });
        Some(ScheduleConfig { schedule, location: location.clone() })
    }
}

fn read_collections(
    entry: &YamlEntry,
    fields: &CheckedMap,
    source: &SyncTiming,
    findings: &mut Findings,
) -> Vec<CollectionConfig> {
    let Some(node) = fields.get("collections") else {
        let message = format!("the source {:?} needs `collections`: what it synchronises", entry.key);
        findings.add_fault(&entry.key_location, message);
        return vec![];
    };
    let Some(items) = read_list_items(node, "`collections`", findings) else { return vec![] };
    if items.is_empty() {
        findings.add_fault(&node.location, "a source needs at least one collection");
    }
    let mut name_locations: BTreeMap<CollectionName, SettingLocation> = BTreeMap::new();
    let mut collections = Vec::with_capacity(items.len());
    for item in items {
        let Some(collection) = read_collection(item, source, findings) else { continue };
        if let Some(first) = name_locations.get(&collection.name) {
            let message = format!("the collection {:?} is already at {first}", collection.name.as_str());
            findings.add_fault(&item.location, message);
            continue;
        }
        name_locations.insert(collection.name.clone(), item.location.clone());
        collections.push(collection);
    }
    collections
}

/// Reads a collection: a name, or a map with more settings.
fn read_collection(
    node: &YamlNode,
    source: &SyncTiming,
    findings: &mut Findings,
) -> Option<CollectionConfig> {
    if matches!(node.kind, YamlKind::Scalar { .. }) {
        let name = parse_scalar(node, findings, str::parse::<CollectionName>)?;
        return Some(CollectionConfig { name, priority: Priority::default(), timing: source.clone() });
    }
    let fields = CheckedMap::from_node_with_known_keys(node, &COLLECTION_KEYS, findings)?;
    let name = fields
        .get_required("name", COLLECTION_KEYS.described_thing, findings)
        .and_then(|n| parse_scalar(n, findings, str::parse::<CollectionName>));
    let priority = schedule_timing::read_priority(&fields, findings);
    let timing = SyncTiming::read_for_collection(&fields, source, findings);
    Some(CollectionConfig { name: name?, priority, timing })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pointsman_core::fire::CatchUpPolicy;

    use super::super::secrets::Environment;
    use super::super::testing::{fault_messages, read_value_from_yaml};
    use super::*;

    fn read_all_sources(node: &YamlNode, findings: &mut Findings) -> Option<SourcesSection> {
        let env = Environment::default();
        Some(read_sources(
            node,
            &NetworkAccess::default(),
            &mut NameLocations::new(),
            &mut SecretResolver::new(&env),
            findings,
        ))
    }

    /// The name, expression and time zone of each schedule.
    fn name_cron_and_zone_of_schedules(section: &SourcesSection) -> Vec<(&str, &str, &str)> {
        fn name_cron_and_zone(schedule_config: &ScheduleConfig) -> (&str, &str, &str) {
            let ScheduleSpec { name, cron: when, .. } = &schedule_config.schedule;
            (name.as_str(), when.expression().as_str(), when.zone().name())
        }
        section.schedules.iter().map(name_cron_and_zone).collect()
    }

    #[test]
    fn a_source_without_run_is_pulled() {
        let section = read_value_from_yaml(
            "a: {collections: [x]}\nb: {run: {command: [sh]}, collections: [x]}",
            read_all_sources,
        )
        .unwrap();
        let runs: Vec<(bool, &str)> = section.sources.iter().map(|s| (s.def.pull, s.run.kind())).collect();
        assert_eq!(runs, [(true, "pull"), (false, "command")]);
    }

    #[test]
    fn a_source_becomes_a_handler_with_collections() {
        let text =
            "shop: {tenant: lab, crashes: 1, retry: {max: 9}, collections: [a, {name: b, priority: 200}]}";
        let section = read_value_from_yaml(text, read_all_sources).unwrap();
        let def = &section.sources[0].def;
        let source = def.source.as_ref().unwrap();
        assert_eq!((def.name.as_str(), def.max_crashes, def.retry.max_retries), ("shop", 1, 9));
        assert_eq!(source.tenant.as_str(), "lab");
        let collection_priorities: Vec<(&str, u16)> =
            source.collections.iter().map(|(n, p)| (n.as_str(), p.get())).collect();
        assert_eq!(collection_priorities, [("a", 100), ("b", 200)]);
        assert!(section.schedules.is_empty(), "both run on request only");
        assert_eq!(def.attempt_event_policy, AttemptEventPolicy::All);
        let unobserved =
            read_value_from_yaml("a: {observe: none, collections: [x]}", read_all_sources).unwrap();
        assert_eq!(unobserved.sources[0].def.attempt_event_policy, AttemptEventPolicy::None);
    }

    #[test]
    fn collections_inherit_omitted_settings_from_their_source() {
        let text = "shop:\n  schedule: '@hourly'\n  timezone: Europe/Berlin\n  collections:\n  - a\n\
                    \x20 - {name: b, timezone: UTC}\n\
                    \x20 - {name: c, schedule: every 5m}\n\
                    \x20 - {name: d, schedule: never}\n";
        assert_eq!(
            name_cron_and_zone_of_schedules(&read_value_from_yaml(text, read_all_sources).unwrap()),
            [
                ("shop/a", "@hourly", "Europe/Berlin"),
                ("shop/b", "@hourly", "UTC"),
                ("shop/c", "every 5m", "Europe/Berlin"),
            ]
        );
    }

    #[test]
    fn a_collection_schedule_uses_the_cron_dialect_of_its_source() {
        let text = "a: {dialect: quartz, collections: [{name: x, schedule: '0 3 * * 1'}, \
                    {name: y, schedule: '0 3 * * 1', dialect: vixie}]}";
        let section = read_value_from_yaml(text, read_all_sources).unwrap();
        let descriptions: Vec<String> = section
            .schedules
            .iter()
            .map(|schedule_config| schedule_config.schedule.cron.expression().describe())
            .collect();
        assert!(descriptions[0].contains("Sunday") && descriptions[1].contains("Monday"), "{descriptions:?}");
    }

    #[test]
    fn a_collection_schedule_creates_sync_runs_and_skips_overlaps() {
        let text =
            "shop: {schedule: '@daily', catch_up: none, catch_up_within: 1h, jitter: 5s, collections: [a]}";
        let section = read_value_from_yaml(text, read_all_sources).unwrap();
        let ScheduleConfig { schedule, location } = &section.schedules[0];
        let run = NewCollectionRun { source_collection: "shop/a".parse().unwrap(), priority: None };
        assert_eq!(schedule.action, FireAction::RunCollection(run));
        assert_eq!((schedule.overlap, schedule.catch_up), (OverlapPolicy::Skip, CatchUpPolicy::None));
        assert_eq!(schedule.catch_up_window, Duration::from_secs(3600));
        assert_eq!(schedule.jitter, Duration::from_secs(5));
        assert_eq!(
            location.to_string(),
            "test.yml:1:18",
            "an inherited expression has the location of the source"
        );
    }

    #[test]
    fn every_fault_of_a_source_is_reported() {
        let text = "a: {}\n\
                    b: {collections: []}\n\
                    c/d: {run: push, overlap: queue, collections: [x y, {schedule: '0 75 * * *'}]}\n\
                    e: {schedule: nonsense, timezone: Mars/Olympus, collections: [x, y, {name: x, priority: 0}]}\n\
                    f: {catchup: one, tenant: a b, collections: [{name: x, dialect: quartz, shedule: '@daily'}, []]}\n\
                    g: {collections: {name: x}}\n\
                    h: {cron: '@daily', collections: [{name: x, cron: '@daily'}]}\n";
        assert_eq!(
            fault_messages(text, read_all_sources),
            [
                "the source \"a\" needs `collections`: what it synchronises",
                "a source needs at least one collection",
                "\"c/d\" contains '/'; a name is made of letters, digits, `.`, `_` and `-`",
                "this is not a way to run a handler; write `{http: URL}`, `{command: [PROGRAM, …]}` or `pull`",
                "unknown setting \"overlap\" of a source",
                "\"x y\" contains ' '; a collection is made of letters, digits, `.`, `_` and `-`",
                "a collection needs `name`",
                "hour field: hours are 0 to 23, got `75`",
                "`nonsense` is not known; write `@yearly`, `@monthly`, `@weekly`, `@daily`, `@hourly`, \
                 `fortnightly` or an interval like `every 90s`",
                "\"Mars/Olympus\" is not a time zone; write one like `UTC`, `Europe/Berlin` or `America/New_York`",
                "the collection \"x\" is already at test.yml:4:63",
                "0 is too small; the least is 1",
                "unknown setting \"catchup\" of a source; did you mean `catch_up`?",
                "\"a b\" contains ' '; a tenant is made of letters, digits, `.`, `_` and `-`",
                "`dialect` applies to a collection's own `schedule`, and this one has none",
                "unknown setting \"shedule\" of a collection; did you mean `schedule`?",
                "a collection must be a map, not a list",
                "`collections` must be a list, not a map",
                "unknown setting \"cron\" of a source; did you mean `schedule`?",
                "unknown setting \"cron\" of a collection; did you mean `schedule`?",
            ]
        );
    }
}
