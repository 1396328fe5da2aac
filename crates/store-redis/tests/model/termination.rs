//! Searches for runs that never terminate.

use std::collections::HashMap;

use stateright::Model;

use crate::actions::Action;
use crate::outbox::OutboxModel;
use crate::state::State;

/// A state on the way, how it was reached, and what can still be done in it.
struct SearchStep {
    state: State,
    by: Option<Action>,
    ahead: Vec<Action>,
}

/// Looks for a run that comes to where it was before: what goes on for ever may never get anything done. Answers what happens
/// over and over again.
pub(crate) fn find_cycle(outbox: &OutboxModel) -> Option<Vec<Action>> {
    // Whether all runs from a state have been looked at; if not, it lies on the way.
    let mut known: HashMap<State, bool> = HashMap::new();
    let mut way: Vec<SearchStep> =
        outbox.init_states().into_iter().map(|state| search_step(outbox, state, None)).collect();
    known.extend(way.iter().map(|place| (place.state.clone(), false)));
    while let Some(here) = way.last_mut() {
        let Some(action) = here.ahead.pop() else {
            known.insert(here.state.clone(), true);
            way.pop();
            continue;
        };
        let next = outbox.next_state(&here.state, action).filter(|next| outbox.within_boundary(next));
        let Some(next) = next else { continue };
        match known.get(&next) {
            Some(true) => {}
            Some(false) => {
                let again = way.into_iter().skip_while(|place| place.state != next).skip(1);
                return Some(again.filter_map(|place| place.by).chain([action]).collect());
            }
            None => {
                known.insert(next.clone(), false);
                way.push(search_step(outbox, next, Some(action)));
            }
        }
    }
    None
}

fn search_step(outbox: &OutboxModel, state: State, by: Option<Action>) -> SearchStep {
    let mut ahead = vec![];
    outbox.actions(&state, &mut ahead);
    SearchStep { state, by, ahead }
}
