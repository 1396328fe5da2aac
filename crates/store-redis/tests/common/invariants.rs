//! The invariants of document 001 in their true form, looked at in the real keys while everything else goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::place::{Hand, Place};
use super::until;

const SCRIPT: &str = include_str!("invariants.lua");
/// So long it lets the others go on between two looks.
const BREATH: Duration = Duration::from_millis(2);

/// What is wrong now.
pub(crate) fn findings(hand: &mut Hand, at_rest: bool) -> anyhow::Result<Vec<String>> {
    let (prefix, at_rest) = (hand.prefix.clone(), if at_rest { "1" } else { "0" });
    Ok(hand.try_ask(&["EVAL", SCRIPT, "0", &prefix, at_rest])?.texts())
}

/// Waits until all that was left is journaled, and nothing of the workers is left over.
pub(crate) async fn rest(place: &Place) {
    let mut hand = place.connect();
    let mut found = vec![];
    let come = until("all is at rest", async || {
        found = findings(&mut hand, true).unwrap();
        found.is_empty()
    });
    come.await;
}

/// Looks all the time, on a connection of its own, until it is ended.
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    found: Arc<Mutex<Vec<String>>>,
    thread: JoinHandle<u64>,
}

impl Watch {
    pub(crate) fn start(place: &Place) -> Self {
        let (stop, found) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Vec<String>>>::default());
        let (place, stopped, wrong) = (place.clone(), stop.clone(), found.clone());
        let thread = std::thread::spawn(move || {
            let (mut hand, mut looks) = (None, 0);
            while !stopped.load(Ordering::Relaxed) {
                // A server that is away is asked again when it is back.
                hand = hand.or_else(|| place.try_connect().ok());
                match hand.as_mut().map(|hand| findings(hand, false)) {
                    Some(Ok(found)) => {
                        wrong.lock().unwrap().extend(found);
                        looks += 1;
                    }
                    Some(Err(_)) | None => hand = None,
                }
                std::thread::sleep(BREATH);
            }
            looks
        });
        Self { stop, found, thread }
    }

    pub(crate) fn has_found_something(&self) -> bool {
        !self.found.lock().unwrap().is_empty()
    }

    /// What was wrong, and how often it has looked.
    pub(crate) fn stop(self) -> (Vec<String>, u64) {
        self.stop.store(true, Ordering::Relaxed);
        let looks = self.thread.join().unwrap();
        let found = std::mem::take(&mut *self.found.lock().unwrap());
        (found, looks)
    }

    /// Ends it; nothing was ever wrong.
    pub(crate) fn end(self) {
        let (found, looks) = self.stop();
        let shown: Vec<_> = found.iter().take(10).collect();
        assert!(found.is_empty(), "{} things were wrong: {shown:#?}", found.len());
        assert!(looks > 0, "it has looked");
    }
}
