//! The list of all behaviours, and the macro that makes a test of each.

/// Makes a test of every behaviour, in a module a topic. Takes an expression that gives a
/// [`Harness`](crate::Harness); it is evaluated anew for each test.
///
/// The tests run on tokio, which the store's own crate must have among its dev-dependencies.
#[macro_export]
macro_rules! suite {
    ($harness:expr) => {
        $crate::topics! {
            $harness;
            claims {
                a_claim_gives_only_the_handlers_it_names
                a_claim_gives_no_more_than_it_asks_for
                more_counts_ready_tasks_only
                more_counts_what_is_scheduled_too
                a_claimed_task_is_locked_by_its_node
                priority_decides_then_age
                nothing_is_claimed_before_it_is_due
                a_retry_and_a_snooze_are_told_as_next_due
                a_crowd_that_falls_due_at_once_runs_whole
                due_times_survive_a_restart
                scheduling_looks_no_further_ahead_than_told
                nothing_is_scheduled_before_it_is_due
                what_is_scheduled_is_claimed_first
                scheduled_tasks_survive_a_restart
                fences_always_grow
                an_append_can_claim_what_it_brings
                a_finish_can_claim_what_it_frees
                nothing_is_claimed_unasked
                racing_nodes_never_get_the_same_task
            }
            effects {
                success_keeps_the_result
                attempts_are_recorded_in_order
                three_runs_then_error
                a_snooze_and_a_release_cost_no_retry
                a_target_may_ask_for_a_wait
                emits_are_journaled_with_the_end
                emits_commit_with_a_failure_and_a_snooze_too
                a_stale_fence_changes_nothing
                an_attempt_ends_once
                a_task_that_never_was_cannot_end
                good_and_stale_endings_travel_together
                a_cancelled_attempt_is_fenced_off
            }
            fairness {
                a_flood_delays_a_single_task_by_one_round
                one_claim_serves_every_queue
                tenants_of_one_handler_are_queues_of_their_own
                idleness_is_not_saved_up
                two_busy_queues_share_evenly
                looking_ahead_is_fair_too
                a_queue_that_cannot_run_takes_no_turn
                fairness_survives_a_restart
            }
            idempotency {
                the_same_key_gets_the_same_answer
                the_same_key_with_other_content_is_refused
                keys_hold_within_one_append
                keys_belong_to_a_tenant
                keys_survive_a_restart
                racing_duplicates_make_one_event
                old_keys_are_all_forgotten
            }
            journal {
                ids_ascend_strictly
                an_id_tells_when_it_was_given
                a_clock_that_steps_back_never_makes_an_id_smaller
                a_leap_ahead_is_capped
                prev_is_the_preceding_event_of_the_object
                events_without_a_key_have_no_prev
                prev_links_events_of_one_emission_and_of_one_append
                prev_survives_a_restart
                many_emissions_are_answered_in_the_order_asked
                an_append_of_nothing_changes_nothing
                an_event_is_kept_exactly_as_emitted
                a_value_may_be_large
                emitters_at_the_same_time_share_one_order
            }
            lanes {
                a_lane_runs_one_task_at_a_time_in_journal_order
                lanes_run_side_by_side
                lanes_of_different_handlers_are_independent
                tasks_without_order_run_freely
                tasks_without_a_key_run_freely
                a_retrying_head_holds_its_lane
                a_snoozing_head_holds_its_lane
                a_delayed_head_holds_its_lane
                a_task_is_delayed_in_the_middle_of_its_lane_too
                a_released_head_keeps_its_place
                priority_ranks_heads_never_tasks_within_a_lane
                a_parked_head_lets_its_lane_go_on
                a_halted_head_holds_its_lane_until_it_is_retried
                a_halted_head_holds_its_lane_until_it_is_dropped
                a_task_without_a_lane_halts_nothing
                a_cancelled_head_lets_its_lane_go_on
                cancelling_behind_the_head_moves_nobody_forward
                a_scheduled_head_holds_its_lane
                a_lane_survives_a_restart
                prev_sent_is_told_for_each_handler
                a_resend_carries_the_same_id_and_prev
            }
            late {
                a_parked_task_that_is_retried_comes_late
                a_late_task_moves_nobody_forward
                a_late_task_holds_nobody_up
                a_late_task_that_fails_again_is_parked_again
                lateness_survives_a_restart
            }
            lifecycle {
                every_command_on_a_new_task
                every_command_on_a_scheduled_task
                every_command_on_a_locked_task
                every_command_on_a_done_task
                every_command_on_a_task_in_error
                every_command_on_a_missing_task
            }
            logs {
                lines_keep_their_order_over_attempts_and_ends
                a_line_is_kept_as_written
                identical_lines_are_all_kept
                lines_with_a_stale_fence_are_dropped
                a_log_is_read_page_by_page
                a_task_that_never_was_has_no_log
            }
            missing {
                every_waiting_task_of_a_lost_handler_is_parked
                held_and_gated_tasks_are_parked_too
                a_handler_without_a_node_loses_nothing
                what_runs_ends_as_it_began
                what_fails_after_the_loss_is_parked_by_the_next_sweep
                missing_tasks_are_taken_up_only_on_request
                what_was_delayed_stays_delayed
                the_lane_goes_on_without_the_missing
                adoption_is_by_handler
                missing_tasks_are_never_pruned
                a_missing_task_can_be_dropped
                a_crowd_of_missing_tasks_is_taken_up_whole
            }
            queues {
                counters_follow_a_task_through_its_life
                gated_and_delayed_tasks_wait
                each_tenant_has_its_own_queue
            }
            reading {
                an_empty_journal_reads_as_empty
                reading_goes_on_where_it_stopped
                reading_stops_where_it_is_told
                reading_backwards_begins_with_the_newest
                filters_let_through_what_the_core_says
                what_does_not_match_is_scanned_past
                a_foreign_cursor_is_torn
                one_event_is_shown_with_its_tasks
                an_object_is_shown_with_its_events
            }
            rescue {
                every_start_is_a_new_node
                a_silent_node_loses_its_tasks
                a_node_that_is_heard_keeps_its_tasks
                only_the_dead_nodes_tasks_are_freed
                a_node_that_was_given_up_is_told_so
                a_task_that_kills_its_nodes_ends_in_error
                a_node_that_leaves_leaves_nothing_stuck
                nothing_gets_stuck_with_a_node_that_is_gone
                scheduled_tasks_outlive_a_node
                a_crash_in_a_halting_lane_halts_it
            }
            restart {
                everything_acknowledged_is_there
                what_the_old_process_ran_is_rescued
                a_fence_outlives_a_restart
                every_state_survives
                an_empty_store_survives_too
            }
            retention {
                the_journal_keeps_at_most_a_tenth_more_than_told
                the_journal_forgets_by_age
                pruning_what_is_young_changes_nothing
                an_unfinished_task_keeps_its_event
                an_objects_last_id_outlives_its_events
                the_head_outlives_all_events
                history_outlives_the_journal
                history_is_pruned_by_count
                history_is_pruned_by_age_with_its_logs
                a_clock_that_ran_ahead_keeps_no_history_alive
                history_with_long_logs_goes_whole
                what_has_not_ended_is_never_pruned
                a_parked_task_can_be_retried_while_it_is_remembered
                a_parked_task_cannot_be_retried_without_its_event
            }
            routing {
                parents_come_first_and_lists_keep_their_order
                synchronous_tasks_come_before_queued_ones
                a_handler_gets_one_task_however_often_it_is_bound
                a_task_is_named_after_its_handler_and_type
                routes_are_fixed_when_an_event_is_journaled
                a_removed_route_takes_no_task_away
                what_is_registered_can_be_read_back
                routes_survive_a_restart
                an_event_without_handlers_has_no_tasks
            }
            rules {
                a_held_handler_starts_nothing
                what_was_scheduled_is_new_again
                what_runs_may_end
                on_release_everything_runs_in_order
                pause_and_block_stand_independently
                a_rule_for_a_tenant_holds_that_tenant
                a_rule_may_stand_before_the_first_task
                rules_survive_a_restart
                a_rule_set_again_replaces_itself
                a_lane_that_moves_while_held_stays_held
            }
            signals {
                growth_and_work_are_told
                work_that_becomes_ready_is_told
                work_that_falls_due_sooner_is_told
                what_is_told_can_be_read
                a_closed_store_refuses_and_keeps_what_it_took
            }
            sync_handlers {
                synchronous_tasks_run_in_list_order_then_the_queued_ones
                each_end_of_a_first_attempt_lets_the_next_ones_run
                a_released_attempt_has_not_ended
                a_failed_one_is_retried_beside_the_others
                a_cancelled_one_lets_the_next_ones_run
                cancelling_the_second_lets_nobody_past_the_first
                a_lost_one_lets_the_next_ones_run
                a_crashed_one_lets_the_next_ones_run
                a_task_lets_the_next_one_run_only_once
                a_late_task_waits_at_the_gate_too
                a_late_synchronous_task_leaves_nobody_behind
                gates_and_lanes_both_hold
                other_events_do_not_wait_at_the_gate
                a_gate_survives_a_restart
            }
            tasks {
                a_task_is_found_by_its_name
                tasks_are_listed_newest_first_page_by_page
                tasks_are_found_by_what_they_are
                a_clock_that_steps_back_hides_no_task
                a_listed_task_is_whole
                a_cancelled_task_says_so
                a_retried_task_begins_with_fresh_budgets
                names_of_two_stores_differ
            }
            walk {
                a_walk_of_many_steps_agrees_with_the_model
                another_walk_agrees_with_the_model
                a_third_walk_agrees_with_the_model
            }
        }
    };
}

/// The inner half of [`suite!`](crate::suite).
#[doc(hidden)]
#[macro_export]
macro_rules! topics {
    ($harness:expr; $($topic:ident { $($behaviour:ident)+ })+) => {$(
        mod $topic {
            use super::*;

            $(
                #[tokio::test]
                async fn $behaviour() {
                    $crate::$topic::$behaviour(&$harness).await;
                }
            )+
        }
    )+};
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    /// A behaviour that nobody runs proves nothing.
    #[test]
    fn every_behaviour_is_listed() {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let listed: BTreeSet<_> = include_str!("suite.rs").lines().map(str::trim).collect();
        let mut found = 0;
        for topic in include_str!("lib.rs").lines().filter_map(|line| line.strip_prefix("pub mod ")) {
            let topic = topic.trim_end_matches(';');
            let text = std::fs::read_to_string(src.join(format!("{topic}.rs")))
                .or_else(|_| std::fs::read_to_string(src.join(topic).join("mod.rs")))
                .expect("the topic has a file");
            for line in text.lines().filter(|line| line.ends_with("(harness: &dyn Harness) {")) {
                if let Some((name, _)) =
                    line.strip_prefix("pub async fn ").and_then(|rest| rest.split_once('('))
                {
                    assert!(listed.contains(name), "{topic}::{name} is not in the suite");
                    found += 1;
                }
            }
        }
        assert!(found > 150, "only {found} behaviours were found");
    }
}
