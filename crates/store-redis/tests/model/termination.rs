//! Searches for runs that never terminate.

use std::collections::HashMap;

use stateright::Model;

use crate::actions::Action;
use crate::outbox::OutboxModel;
use crate::state::State;

/// A state on the current path, the action that led to it, and the actions not tried yet.
struct SearchStep {
    state: State,
    reached_by: Option<Action>,
    untried_actions: Vec<Action>,
}

/// Searches depth first for a run that returns to an earlier state, because such a run may never finish. Returns the actions
/// of the cycle.
pub(crate) fn find_cycle(outbox: &OutboxModel) -> Option<Vec<Action>> {
    // Whether all runs from a state were explored; if not, the state is on the current path.
    let mut explored: HashMap<State, bool> = HashMap::new();
    let mut path: Vec<SearchStep> =
        outbox.init_states().into_iter().map(|state| new_search_step(outbox, state, None)).collect();
    explored.extend(path.iter().map(|step| (step.state.clone(), false)));
    while let Some(step) = path.last_mut() {
        let Some(action) = step.untried_actions.pop() else {
            explored.insert(step.state.clone(), true);
            path.pop();
            continue;
        };
        let next = outbox.next_state(&step.state, action).filter(|next| outbox.within_boundary(next));
        let Some(next) = next else { continue };
        match explored.get(&next) {
            Some(true) => {}
            Some(false) => {
                let cycle = path.into_iter().skip_while(|step| step.state != next).skip(1);
                return Some(cycle.filter_map(|step| step.reached_by).chain([action]).collect());
            }
            None => {
                explored.insert(next.clone(), false);
                path.push(new_search_step(outbox, next, Some(action)));
            }
        }
    }
    None
}

fn new_search_step(outbox: &OutboxModel, state: State, reached_by: Option<Action>) -> SearchStep {
    let mut untried = vec![];
    outbox.actions(&state, &mut untried);
    SearchStep { state, reached_by, untried_actions: untried }
}
