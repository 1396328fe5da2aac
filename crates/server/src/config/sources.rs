//! `sources`: what is synchronised, one collection at a time, at planned times or on request.
//!
//! A source is run like a handler but gets no events. What it says of its schedule holds for all its
//! collections, and a collection may say otherwise of itself: another `schedule`, another `timezone`, or
//! `schedule: never`.
//!
//! ```text
//!  sources.shop ─┬─▶ a handler with its collections ─────▶ the engine
//!                └─▶ a schedule `shop/orders` for each collection that has one
//! ```

use std::collections::BTreeMap;

use pointsman_core::cron::{self, Dialect, Expression, Zone};
use pointsman_core::fire::{Makes, Overlap};
use pointsman_core::handler::Observe;
use pointsman_core::store::NewRun;
use pointsman_core::task::retry::RetryPolicy;
use pointsman_core::{CollectionName, HandlerDef, HandlerName, Pair, Priority, SourceDef, Tenant};
use pointsman_engine::Schedule;
use pointsman_engine::handlers::http::NetworkAccess;

use super::decode::{Fields, Keys, entries, items, parsed};
use super::fault::Findings;
use super::handlers::{Handler, Names, claim_name, crashes, observe};
use super::place::Place;
use super::retry;
use super::run::{self, Run};
use super::schedules::Planned;
use super::secret::Vault;
use super::timing::{self, Policy};
use super::yaml::{Entry, Kind, Node};

pub(super) const KEYS: Keys = Keys {
    of: "a source",
    known: &[
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
    later: &[],
};
const COLLECTION: Keys =
    Keys { of: "a collection", known: &["name", "schedule", "timezone", "dialect", "priority"], later: &[] };

/// Instead of an expression: only on request.
const NEVER: &str = "never";

/// What the section comes to.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub(super) sources: Vec<Handler>,
    /// Those of the collections.
    pub(super) schedules: Vec<Planned>,
}

pub(super) fn read(
    node: &Node,
    network: &NetworkAccess,
    names: &mut Names,
    vault: &mut Vault,
    findings: &mut Findings,
) -> Section {
    let mut section = Section::default();
    for entry in entries(node, "`sources`", findings).unwrap_or_default() {
        let name = claim_name(entry, names, findings);
        if let Some((source, schedules)) = source(entry, name, network, vault, findings) {
            section.sources.push(source);
            section.schedules.extend(schedules);
        }
    }
    section
}

/// Reads a source also where its name is at fault, to find its other faults.
fn source(
    entry: &Entry,
    name: Option<HandlerName>,
    network: &NetworkAccess,
    vault: &mut Vault,
    findings: &mut Findings,
) -> Option<(Handler, Vec<Planned>)> {
    let fields = Fields::open(&entry.value, &KEYS, findings)?;
    let run = match fields.get("run") {
        Some(node) => run::read(node, network, vault, findings),
        None => Some(Run::Pull),
    };
    let tenant = fields.or("tenant", Tenant::default(), findings, |n, f| parsed(n, f, str::parse::<Tenant>));
    let retry = fields.or("retry", RetryPolicy::default(), findings, retry::read);
    let crashes = fields.get("crashes").and_then(|n| crashes(n, findings));
    let observe = fields.or("observe", Observe::All, findings, observe);
    let policy = Policy::read(&fields, findings);
    let timing = Timing::of_source(&fields, findings);
    let collections = collections(entry, &fields, &timing, findings);
    let (name, run) = (name?, run?);
    let schedules = collections.iter().filter_map(|collection| collection.planned(&name, policy)).collect();
    let collections = collections.into_iter().map(|one| (one.name, one.priority)).collect();
    let plain = HandlerDef::new(name);
    let def = HandlerDef {
        retry,
        crashes: crashes.unwrap_or(plain.crashes),
        observe,
        pull: matches!(run, Run::Pull),
        source: Some(SourceDef { tenant, collections }),
        ..plain
    };
    Some((Handler { def, run, place: entry.at.clone() }, schedules))
}

/// When something is synchronised.
#[derive(Clone, Debug)]
struct Timing {
    plan: Plan,
    zone: Zone,
    dialect: Dialect,
}

#[derive(Clone, Debug)]
enum Plan {
    OnRequest,
    /// The expression, and where it is written.
    At(Expression, Place),
}

impl Timing {
    fn of_source(fields: &Fields, findings: &mut Findings) -> Self {
        let usual = Self { plan: Plan::OnRequest, zone: Zone::utc(), dialect: Dialect::Auto };
        Self::read(fields, &usual, findings)
    }

    fn of_collection(fields: &Fields, source: &Self, findings: &mut Findings) -> Self {
        if let (None, Some(node)) = (fields.get("schedule"), fields.get("dialect")) {
            let message = "`dialect` says how a collection's own `schedule` is read, and this one has none";
            findings.fault(&node.place, message);
        }
        Self::read(fields, source, findings)
    }

    /// What is said here, and otherwise what is usual.
    fn read(fields: &Fields, usual: &Self, findings: &mut Findings) -> Self {
        let zone = timing::zone(fields, usual.zone.clone(), findings);
        let dialect = timing::dialect(fields, usual.dialect, findings);
        let plan = match fields.get("schedule") {
            Some(node) => Plan::read(node, dialect, findings),
            None => usual.plan.clone(),
        };
        Self { plan, zone, dialect }
    }
}

impl Plan {
    fn read(node: &Node, dialect: Dialect, findings: &mut Findings) -> Self {
        if matches!(&node.kind, Kind::Scalar { text, .. } if text == NEVER) {
            return Self::OnRequest;
        }
        match timing::expression(node, dialect, findings) {
            Some(expression) => Self::At(expression, node.place.clone()),
            None => Self::OnRequest,
        }
    }
}

#[derive(Debug)]
struct Collection {
    name: CollectionName,
    priority: Priority,
    timing: Timing,
}

impl Collection {
    /// Its schedule, if it is not synchronised on request only. One task of a pair at a time is all there ever
    /// is, so that a time that finds one is skipped.
    fn planned(&self, source: &HandlerName, policy: Policy) -> Option<Planned> {
        let Plan::At(expression, place) = &self.timing.plan else { return None };
        let pair = Pair { source: source.clone(), collection: self.name.clone() };
        let when = cron::Schedule::new(expression.clone(), self.timing.zone.clone());
        let name = pair.schedule();
        let schedule = Schedule::new(name, when, Makes::Run(NewRun { pair, priority: None }));
        let schedule = policy.applied(Schedule { overlap: Overlap::Skip, ..schedule });
        Some(Planned { schedule, place: place.clone() })
    }
}

fn collections(entry: &Entry, fields: &Fields, source: &Timing, findings: &mut Findings) -> Vec<Collection> {
    let Some(node) = fields.get("collections") else {
        let message = format!("the source {:?} needs `collections`: what it synchronises", entry.key);
        findings.fault(&entry.at, message);
        return vec![];
    };
    let Some(items) = items(node, "`collections`", findings) else { return vec![] };
    if items.is_empty() {
        findings.fault(&node.place, "a source needs at least one collection");
    }
    let mut seen: BTreeMap<CollectionName, Place> = BTreeMap::new();
    let mut collections = Vec::with_capacity(items.len());
    for item in items {
        let Some(collection) = collection(item, source, findings) else { continue };
        if let Some(first) = seen.get(&collection.name) {
            let message = format!("the collection {:?} is already at {first}", collection.name.as_str());
            findings.fault(&item.place, message);
            continue;
        }
        seen.insert(collection.name.clone(), item.place.clone());
        collections.push(collection);
    }
    collections
}

/// A collection's name, or a map that says more.
fn collection(node: &Node, source: &Timing, findings: &mut Findings) -> Option<Collection> {
    if matches!(node.kind, Kind::Scalar { .. }) {
        let name = parsed(node, findings, str::parse::<CollectionName>)?;
        return Some(Collection { name, priority: Priority::default(), timing: source.clone() });
    }
    let fields = Fields::open(node, &COLLECTION, findings)?;
    let name = fields
        .need("name", COLLECTION.of, findings)
        .and_then(|n| parsed(n, findings, str::parse::<CollectionName>));
    let priority = timing::priority(&fields, findings);
    let timing = Timing::of_collection(&fields, source, findings);
    Some(Collection { name: name?, priority, timing })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pointsman_core::fire::CatchUp;

    use super::super::secret::Env;
    use super::super::testing::{faults_of, read as read_text};
    use super::*;

    fn all(node: &Node, findings: &mut Findings) -> Option<Section> {
        let env = Env::default();
        Some(read(node, &NetworkAccess::default(), &mut Names::new(), &mut Vault::new(&env), findings))
    }

    /// Name, expression and zone of each schedule.
    fn told(section: &Section) -> Vec<(&str, &str, &str)> {
        fn tell(planned: &Planned) -> (&str, &str, &str) {
            let Schedule { name, when, .. } = &planned.schedule;
            (name.as_str(), when.expression().as_str(), when.zone().name())
        }
        section.schedules.iter().map(tell).collect()
    }

    #[test]
    fn a_source_is_pulled_unless_it_says_how_it_runs() {
        let section =
            read_text("a: {collections: [x]}\nb: {run: {command: [sh]}, collections: [x]}", all).unwrap();
        let runs: Vec<(bool, &str)> = section.sources.iter().map(|s| (s.def.pull, s.run.kind())).collect();
        assert_eq!(runs, [(true, "pull"), (false, "command")]);
    }

    #[test]
    fn a_source_is_a_handler_with_collections() {
        let text =
            "shop: {tenant: lab, crashes: 1, retry: {max: 9}, collections: [a, {name: b, priority: 200}]}";
        let section = read_text(text, all).unwrap();
        let def = &section.sources[0].def;
        let source = def.source.as_ref().unwrap();
        assert_eq!((def.name.as_str(), def.crashes, def.retry.max), ("shop", 1, 9));
        assert_eq!(source.tenant.as_str(), "lab");
        let told: Vec<(&str, u16)> = source.collections.iter().map(|(n, p)| (n.as_str(), p.get())).collect();
        assert_eq!(told, [("a", 100), ("b", 200)]);
        assert!(section.schedules.is_empty(), "both run on request only");
        assert_eq!(def.observe, Observe::All);
        let quiet = read_text("a: {observe: none, collections: [x]}", all).unwrap();
        assert_eq!(quiet.sources[0].def.observe, Observe::None);
    }

    #[test]
    fn collections_inherit_what_they_do_not_say() {
        let text = "shop:\n  schedule: '@hourly'\n  timezone: Europe/Berlin\n  collections:\n  - a\n\
                    \x20 - {name: b, timezone: UTC}\n\
                    \x20 - {name: c, schedule: every 5m}\n\
                    \x20 - {name: d, schedule: never}\n";
        assert_eq!(
            told(&read_text(text, all).unwrap()),
            [
                ("shop/a", "@hourly", "Europe/Berlin"),
                ("shop/b", "@hourly", "UTC"),
                ("shop/c", "every 5m", "Europe/Berlin"),
            ]
        );
    }

    #[test]
    fn a_collections_expression_is_read_in_the_dialect_of_its_source() {
        let text = "a: {dialect: quartz, collections: [{name: x, schedule: '0 3 * * 1'}, \
                    {name: y, schedule: '0 3 * * 1', dialect: vixie}]}";
        let section = read_text(text, all).unwrap();
        let words: Vec<String> =
            section.schedules.iter().map(|planned| planned.schedule.when.expression().describe()).collect();
        assert!(words[0].contains("Sunday") && words[1].contains("Monday"), "{words:?}");
    }

    #[test]
    fn a_schedule_of_a_collection_makes_runs_and_never_overlaps() {
        let text =
            "shop: {schedule: '@daily', catch_up: none, catch_up_within: 1h, jitter: 5s, collections: [a]}";
        let section = read_text(text, all).unwrap();
        let Planned { schedule, place } = &section.schedules[0];
        let run = NewRun { pair: "shop/a".parse().unwrap(), priority: None };
        assert_eq!(schedule.makes, Makes::Run(run));
        assert_eq!((schedule.overlap, schedule.catch_up), (Overlap::Skip, CatchUp::None));
        assert_eq!(schedule.catch_up_within, Duration::from_secs(3600));
        assert_eq!(schedule.jitter, Duration::from_secs(5));
        assert_eq!(place.to_string(), "test.yml:1:18", "an inherited expression stands at the source");
    }

    #[test]
    fn every_fault_is_told() {
        let text = "a: {}\n\
                    b: {collections: []}\n\
                    c/d: {run: push, overlap: queue, collections: [x y, {schedule: '0 75 * * *'}]}\n\
                    e: {schedule: nonsense, timezone: Mars/Olympus, collections: [x, y, {name: x, priority: 0}]}\n\
                    f: {catchup: one, tenant: a b, collections: [{name: x, dialect: quartz, shedule: '@daily'}, []]}\n\
                    g: {collections: {name: x}}\n\
                    h: {cron: '@daily', collections: [{name: x, cron: '@daily'}]}\n";
        assert_eq!(
            faults_of(text, all),
            [
                "the source \"a\" needs `collections`: what it synchronises",
                "a source needs at least one collection",
                "\"c/d\" contains '/'; a name is made of letters, digits, `.`, `_` and `-`",
                "this is not a way to run; write `{http: URL}`, `{command: [PROGRAM, …]}` or `pull`",
                "unknown setting \"overlap\" of a source",
                "\"x y\" contains ' '; a collection is made of letters, digits, `.`, `_` and `-`",
                "a collection needs `name`",
                "column 3 (hour): hours are 0 to 23, got `75`",
                "column 1: `nonsense` is not known; write `@yearly`, `@monthly`, `@weekly`, `@daily`, `@hourly`, \
                 `fortnightly` or an interval like `every 90s`",
                "\"Mars/Olympus\" is not a time zone; write one like `UTC`, `Europe/Berlin` or `America/New_York`",
                "the collection \"x\" is already at test.yml:4:63",
                "0 is too small; the least is 1",
                "unknown setting \"catchup\" of a source; did you mean `catch_up`?",
                "\"a b\" contains ' '; a tenant is made of letters, digits, `.`, `_` and `-`",
                "`dialect` says how a collection's own `schedule` is read, and this one has none",
                "unknown setting \"shedule\" of a collection; did you mean `schedule`?",
                "a collection must be a map, not a list",
                "`collections` must be a list, not a map",
                "unknown setting \"cron\" of a source; did you mean `schedule`?",
                "unknown setting \"cron\" of a collection; did you mean `schedule`?",
            ]
        );
    }
}
