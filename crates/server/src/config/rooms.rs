//! `rooms`: which parts of Pointsman this process runs.

use pointsman_engine::Rooms;

use super::decode::{items, text};
use super::fault::Findings;
use super::nearest::hint;
use super::yaml::{Kind, Node};

/// Every room there is. The sequencer is named for completeness: with the embedded store it is a part of every
/// process that emits.
pub(super) const NAMES: &[&str] = &["http", "sequencer", "scheduler", "worker", "clock", "rescuer", "pruner"];

/// The rooms of the engine, and whether HTTP is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) engine: Rooms,
    pub(super) http: bool,
}

/// A list, or names separated by commas as a flag or a variable has them.
pub(super) fn read(node: &Node, findings: &mut Findings) -> Option<Chosen> {
    let mut chosen = Chosen {
        engine: Rooms { scheduler: false, worker: false, clock: false, rescuer: false, pruner: false },
        http: false,
    };
    let mut open = |name: &str, at: &Node, findings: &mut Findings| match name {
        "http" => chosen.http = true,
        "sequencer" => {}
        "scheduler" => chosen.engine.scheduler = true,
        "worker" => chosen.engine.worker = true,
        "clock" => chosen.engine.clock = true,
        "rescuer" => chosen.engine.rescuer = true,
        "pruner" => chosen.engine.pruner = true,
        other => {
            let near = hint(other, NAMES.iter().copied());
            findings.fault(&at.place, format!("there is no room {other:?}{near}"));
        }
    };
    let mut any = false;
    if let Kind::Scalar { text, .. } = &node.kind {
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            open(name, node, findings);
            any = true;
        }
    } else {
        for item in items(node, "`rooms`", findings)? {
            if let Some(name) = text(item, findings) {
                open(name, item, findings);
            }
            any = true;
        }
    }
    if !any {
        findings.fault(&node.place, "a process without any room does nothing");
    }
    Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{faults_of, read as read_text};
    use super::*;

    #[test]
    fn rooms_are_a_list_or_words_with_commas() {
        let all = format!("[{}]", NAMES.join(", "));
        assert_eq!(read_text(&all, read), Ok(Chosen { engine: Rooms::default(), http: true }));
        let some = read_text("http, worker", read).unwrap();
        assert!(some.http && some.engine.worker && !some.engine.clock);
        assert_eq!(read_text("[http, worker]", read), Ok(some));
    }

    #[test]
    fn unknown_rooms_and_none_at_all_are_faults() {
        assert_eq!(faults_of("[wroker]", read), ["there is no room \"wroker\"; did you mean `worker`?"]);
        assert_eq!(faults_of("[]", read), ["a process without any room does nothing"]);
    }
}
