//! `handlers`: what is to be done, and how each of them is treated.

use std::collections::{BTreeMap, BTreeSet};

use pointsman_core::handler::Observe;
use pointsman_core::task::retry::RetryPolicy;
use pointsman_core::{HandlerDef, HandlerName, LaneFailure, Order};
use pointsman_engine::handlers::http::NetworkAccess;

use super::decode::{Fields, Keys, entries, one_of, parsed, whole};
use super::fault::Findings;
use super::place::Place;
use super::run::{self, Run};
use super::secret::Vault;
use super::yaml::{Entry, Node};
use super::{limits, retry};

pub(super) const KEYS: Keys = Keys {
    of: "a handler",
    known: &[
        "run",
        "retry",
        "crashes",
        "order",
        "on_error",
        "concurrency",
        "concurrency_per_key",
        "rate",
        "weight",
        "ageing",
        "observe",
    ],
    later: &[],
};

/// A handler or a source as the configuration has it.
#[derive(Clone, Debug)]
pub struct Handler {
    pub def: HandlerDef,
    pub run: Run,
    pub(super) place: Place,
}

/// Names that have been given, and where. Handlers, sources and schedules share one namespace.
pub(super) type Names = BTreeMap<String, Place>;

/// Reads a name that nobody else may have.
pub(super) fn claim_name(entry: &Entry, names: &mut Names, findings: &mut Findings) -> Option<HandlerName> {
    let name =
        HandlerName::new(&entry.key).map_err(|error| findings.fault(&entry.at, error.to_string())).ok();
    if let Some(first) = names.get(&entry.key) {
        let message = format!(
            "the name {:?} is already given at {first}; handlers, sources and schedules share one namespace",
            entry.key
        );
        findings.fault(&entry.at, message);
        return None;
    }
    names.insert(entry.key.clone(), entry.at.clone());
    name
}

pub(super) fn read(
    node: &Node,
    network: &NetworkAccess,
    names: &mut Names,
    vault: &mut Vault,
    findings: &mut Findings,
) -> Vec<Handler> {
    let mut handlers = Vec::new();
    for entry in entries(node, "`handlers`", findings).unwrap_or_default() {
        let name = claim_name(entry, names, findings);
        let handler = handler(entry, name, network, vault, findings);
        handlers.extend(handler);
    }
    handlers
}

/// Reads a handler also where its name is at fault, to find its other faults.
fn handler(
    entry: &Entry,
    name: Option<HandlerName>,
    network: &NetworkAccess,
    vault: &mut Vault,
    findings: &mut Findings,
) -> Option<Handler> {
    let fields = Fields::open(&entry.value, &KEYS, findings)?;
    let run = match fields.get("run") {
        Some(node) => run::read(node, network, vault, findings),
        None => {
            findings.fault(&entry.at, format!("the handler {:?} needs `run`: what it does", entry.key));
            None
        }
    };
    let retry = fields.or("retry", RetryPolicy::default(), findings, retry::read);
    let crashes = fields.get("crashes").and_then(|n| crashes(n, findings));
    let order = fields.or("order", Order::default(), findings, |n, f| {
        one_of(n, f, &[("key", Order::Key), ("none", Order::None)])
    });
    let on_error = fields.or("on_error", LaneFailure::default(), findings, |n, f| {
        one_of(n, f, &[("park", LaneFailure::Park), ("halt", LaneFailure::Halt)])
    });
    if on_error == LaneFailure::Halt
        && order == Order::None
        && let Some(node) = fields.get("on_error")
    {
        findings
            .fault(&node.place, "`on_error: halt` stops a lane, and with `order: none` there are no lanes");
    }
    let limits = limits::read(&fields, order, findings);
    let observe = fields.or("observe", Observe::default(), findings, observe);
    let (run, plain) = (run?, HandlerDef::new(name?));
    let crashes = crashes.unwrap_or(plain.crashes);
    let pull = matches!(run, Run::Pull);
    let def = HandlerDef { order, on_error, retry, crashes, observe, limits, pull, ..plain };
    Some(Handler { def, run, place: entry.at.clone() })
}

/// How many nodes or workers may die running one task.
pub(super) fn crashes(node: &Node, findings: &mut Findings) -> Option<u32> {
    whole(node, findings, 0..=1_000_000).and_then(|count| u32::try_from(count).ok())
}

/// Which attempts the journal tells of.
pub(super) fn observe(node: &Node, findings: &mut Findings) -> Option<Observe> {
    let words = [("all", Observe::All), ("failures", Observe::Failures), ("none", Observe::None)];
    one_of(node, findings, &words)
}

/// The names that routes and chains may come upon.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) handlers: BTreeSet<HandlerName>,
    pub(super) sources: BTreeSet<HandlerName>,
}

/// Reads the name of a handler that must exist.
pub(super) fn reference(node: &Node, known: &Known, findings: &mut Findings) -> Option<HandlerName> {
    let name = parsed(node, findings, str::parse::<HandlerName>)?;
    is_known(node, &name, known, "gets no events", findings).then_some(name)
}

/// Whether there is such a handler; told of if there is none. `but`: what a source, which is none, does not do.
pub(super) fn is_known(
    node: &Node,
    name: &HandlerName,
    known: &Known,
    but: &str,
    findings: &mut Findings,
) -> bool {
    let Known { handlers, sources } = known;
    let there = handlers.contains(name);
    if sources.contains(name) {
        findings.fault(&node.place, format!("{:?} is a source, and a source {but}", name.as_str()));
    } else if !there {
        let near = super::nearest::hint(name.as_str(), handlers.iter().map(HandlerName::as_str));
        findings.fault(&node.place, format!("there is no handler {:?}{near}", name.as_str()));
    }
    there
}

#[cfg(test)]
mod tests {
    use super::super::secret::Env;
    use super::super::testing::{faults_of, read as read_text};
    use super::*;

    fn all(node: &Node, findings: &mut Findings) -> Option<Vec<Handler>> {
        let env = Env::default();
        Some(read(node, &NetworkAccess::default(), &mut Names::new(), &mut Vault::new(&env), findings))
    }

    #[test]
    fn a_handler_keeps_the_defaults_it_does_not_change() {
        let handlers = read_text("a: {run: {command: [sh]}, order: none, crashes: 0}", all).unwrap();
        let want =
            HandlerDef { order: Order::None, crashes: 0, ..HandlerDef::new(HandlerName::new("a").unwrap()) };
        assert_eq!(handlers[0].def, want);
    }

    #[test]
    fn a_pulled_handler_and_its_limits() {
        let handlers = read_text("a: {run: pull, concurrency: 2, rate: 10/s}", all).unwrap();
        let Handler { def, run, .. } = &handlers[0];
        assert!(def.pull && matches!(run, Run::Pull));
        assert_eq!((def.limits.concurrency, def.limits.rate), (Some(2), "10/s".parse().ok()));
        assert_eq!(
            faults_of("a: {run: pull, concurrency_per_key: 2}", all),
            [
                "tasks of one object run one at a time to keep their order; set `order: none` to let more of them run"
            ]
        );
    }

    #[test]
    fn a_handler_says_which_attempts_are_told_of() {
        let text = "a: {run: pull}\nb: {run: pull, observe: all}\nc: {run: pull, observe: none}";
        let handlers = read_text(text, all).unwrap();
        let observed: Vec<Observe> = handlers.iter().map(|handler| handler.def.observe).collect();
        assert_eq!(observed, [Observe::Failures, Observe::All, Observe::None]);
    }

    #[test]
    fn every_fault_of_every_handler_is_told() {
        assert_eq!(
            faults_of(
                "a/b: {run: {command: []}}\n\
                 c: {order: key}\n\
                 d: {run: {command: [sh]}, order: none, on_error: halt, observe: some, oder: key}\n",
                all
            ),
            [
                "\"a/b\" contains '/'; a name is made of letters, digits, `.`, `_` and `-`",
                "a command needs at least the name of a program",
                "the handler \"c\" needs `run`: what it does",
                "`on_error: halt` stops a lane, and with `order: none` there are no lanes",
                "\"some\" is not one of all, failures, none",
                "unknown setting \"oder\" of a handler; did you mean `order`?",
            ]
        );
    }
}
