//! The list of all behaviours, and the macro that makes a test of each.

/// Makes a test of every behaviour, in a module a topic. Takes an expression that gives a
/// [`Harness`](crate::Harness); it is evaluated anew for each test.
///
/// The tests run on tokio, which the store's own crate must have among its dev-dependencies.
#[macro_export]
macro_rules! suite {
    ($harness:expr) => {
        $crate::order_topics!($harness);
        $crate::topics! {
            $harness;
            audit {
                deeds_are_read_newest_first_page_by_page
                equal_deeds_are_all_kept
            }
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
            concurrency {
                no_more_run_than_may
                a_limit_holds_over_tenants_and_nodes
                a_limit_holds_for_what_is_born_running
                a_limit_holds_for_what_an_end_claims
                a_limit_holds_for_what_is_scheduled
                racing_nodes_keep_the_limit
                every_end_frees_a_place
                a_limit_follows_its_registration
                a_limit_set_on_what_runs_counts_it
                a_full_handler_delays_nobody
                looking_ahead_past_a_full_handler_delays_nobody
                looking_ahead_keeps_turns_for_a_narrow_handler
                a_limit_holds_after_a_restart
                lanes_and_limits_both_hold
                sources_and_workers_keep_limits_too
                rules_and_limits_both_hold
                whose_turn_it_is_may_leave_unserved
                a_worker_of_one_tenant_does_not_wait_for_anothers
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
                what_others_have_scheduled_delays_nobody
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
                a_late_task_goes_to_the_end_of_its_lane
                a_late_task_waits_for_the_head
                what_comes_after_a_late_task_waits_for_it
                late_tasks_run_one_at_a_time_in_the_order_they_were_retried
                each_of_a_batch_of_retries_is_answered
                cancelling_a_late_task_moves_nobody_forward
                a_late_task_that_fails_again_follows_the_lanes_policy
                lanes_of_late_tasks_run_side_by_side
                lateness_survives_a_restart
                a_lane_with_late_tasks_goes_on_after_a_restart
            }
            ledger {
                an_empty_ledger_reads_as_empty
                rows_are_read_latest_first_page_by_page
                every_outcome_reads_back
                ledgers_are_apart
                rows_are_forgotten_with_the_history
                pruning_the_journal_forgets_no_row
            }
            lifecycle {
                every_command_on_a_new_task
                every_command_on_a_scheduled_task
                every_command_on_a_locked_task
                every_command_on_a_fetched_task
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
                adopted_tasks_of_one_object_run_one_at_a_time
                adoption_is_by_handler
                missing_tasks_are_never_pruned
                a_missing_task_can_be_dropped
                a_crowd_of_missing_tasks_is_taken_up_whole
            }
            nodes {
                a_node_is_seen_as_it_joined
                a_node_tells_what_it_can_run
                a_node_reports_its_clock
                the_clock_of_a_server_can_be_read
                a_node_is_heard_of
                what_a_node_holds_is_counted
                a_node_that_left_or_was_given_up_is_gone
                those_that_live_are_all_told_of
            }
            object_retention {
                an_unused_object_is_deleted_and_starts_a_new_chain
                many_unused_objects_are_deleted_in_batches
                an_object_with_an_event_in_the_journal_stays
                objects_in_the_journal_are_not_visited
                an_object_with_a_recent_event_stays
                an_object_with_an_unfinished_task_stays
                an_object_is_deleted_once_its_last_task_has_ended
                a_retried_task_keeps_its_object
                a_task_of_a_deleted_object_cannot_be_retried
                objects_of_other_tenants_and_parents_of_subs_are_apart
                objects_that_stay_are_not_visited_again
                old_tasks_of_many_batches_keep_their_objects
                a_backlog_does_not_lengthen_a_round
                few_unused_objects_are_deleted_once_an_hour
                a_round_continues_after_a_restart
            }
            objects {
                lanes_tell_who_is_first_and_how_many_wait
                a_head_is_told_as_lists_have_it
                a_halted_head_is_told_until_it_is_retried_or_dropped
                lanes_in_which_nobody_stands_are_not_told
                lanes_go_by_place_and_not_by_age
                each_tenant_has_lanes_of_its_own
                what_stands_in_no_lane_is_not_told
                lanes_of_a_handler_that_gave_up_order_are_told
                long_lanes_are_counted_up_to_a_bound
                of_very_many_lanes_some_are_told
            }
            overlaps {
                an_event_whose_tasks_have_not_ended_is_in_the_way
                tasks_may_queue_up
                what_has_not_ended_may_be_cancelled
                what_has_ended_is_not_cancelled
                others_tasks_are_in_nobodys_way
                a_skipped_time_begins_nothing
                a_run_that_has_not_ended_is_in_the_way
                a_run_that_has_not_ended_may_be_cancelled
                a_queued_run_makes_no_second_one
                a_changed_expression_forgets_nothing_that_runs
            }
            per_key {
                no_more_of_an_object_run_than_may
                all_of_them_run_in_the_end
                a_crowd_of_one_object_delays_no_other
                objects_of_two_tenants_are_two_objects
                what_waits_for_its_time_takes_no_place
                every_way_out_frees_a_place
                places_survive_a_restart
                places_follow_their_registration
                a_limit_may_come_after_the_crowd
                a_rule_and_a_place_both_hold
                adopted_tasks_keep_the_limit
                who_stands_in_a_lane_is_not_lost_in_a_crowd
            }
            pull {
                nodes_are_given_no_pulled_tasks
                workers_are_given_nothing_else
                a_fetched_task_is_leased
                a_renewed_lease_runs_on
                a_lease_that_runs_out_counts_as_a_crash
                a_task_that_outlives_its_workers_ends_in_error
                a_worker_that_was_given_up_is_refused
                a_cancelled_task_is_told_at_the_next_renewal
                a_worker_may_name_its_tenant
                a_nodes_death_is_nothing_to_a_worker
                a_workers_death_is_nothing_to_a_node
                a_worker_is_told_when_the_next_task_falls_due
                what_is_scheduled_reaches_workers
                lanes_and_rules_hold_for_workers
                sources_may_be_pulled_too
                a_handler_may_become_pulled_and_back
                racing_workers_never_get_the_same_task
                a_worker_serves_all_handlers_it_names
                handlers_of_a_worker_have_their_weights
                a_handler_that_is_pulled_no_longer_has_no_debts
            }
            queues {
                counters_follow_a_task_through_its_life
                gated_and_delayed_tasks_wait
                each_tenant_has_its_own_queue
            }
            rates {
                no_more_begin_than_the_rate_allows
                a_rate_is_kept_and_reached_over_time
                no_window_sees_more_starts_than_the_rate_and_its_burst
                a_rate_holds_over_tenants_and_nodes
                a_rate_holds_for_what_is_born_running_and_what_was_scheduled
                a_retry_is_a_start
                the_next_start_is_told_with_what_falls_due
                a_paced_handler_delays_nobody
                a_pace_survives_a_restart
                a_rate_follows_its_registration
                a_rate_and_a_width_both_hold
                a_clock_that_ran_ahead_stalls_nobody
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
            registrants {
                what_several_register_adds_up
                a_registrant_replaces_only_what_is_its_own
                what_two_define_is_as_the_last_change_has_it
                who_has_no_node_for_a_day_is_forgotten
                who_has_a_live_node_is_not_forgotten
                a_time_in_which_nobody_looked_does_not_count
            }
            replay {
                a_new_handler_gets_what_it_would_have_been_sent
                a_replay_makes_none_twice
                what_it_was_sent_is_not_replayed
                a_handler_that_was_gone_gets_what_it_missed
                a_replay_goes_on_where_it_stopped
                a_replay_begins_where_it_is_told
                replayed_tasks_keep_the_order_of_their_lanes
                replayed_tasks_go_behind_what_waits_in_their_lane
                replayed_tasks_come_after_all_others_of_their_queue
                forgotten_events_are_not_replayed
                an_unfinished_replay_keeps_its_events
                a_replayed_task_lives_like_any_other
                who_would_be_sent_nothing_gets_nothing
                a_replayed_synchronous_task_runs_by_itself
                a_replay_that_has_ended_is_found_by_its_event
            }
            rescue {
                every_start_is_a_new_node
                a_silent_node_loses_its_tasks
                a_node_that_is_heard_keeps_its_tasks
                only_the_dead_nodes_tasks_are_freed
                a_node_that_was_given_up_is_told_so
                a_node_learns_which_attempts_lost_their_task
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
                rules_of_every_place_read_back
                a_rule_set_again_replaces_itself
                a_lane_that_moves_while_held_stays_held
            }
            schedules {
                a_new_schedule_stands_where_it_was_planned
                a_firing_emits_its_event
                a_firing_makes_its_run
                a_time_fires_once_whatever_races
                a_settled_time_stays_as_it_is
                every_time_and_every_schedule_fires_for_itself
                a_firing_is_on_time_late_or_caught_up
                a_time_may_be_let_go
                what_is_settled_never_goes_back
                a_held_schedule_skips_its_times
                what_was_held_can_be_caught_up
                what_was_missed_is_not_caught_up
                what_is_made_up_for_is_unmet_no_longer
                what_a_later_rule_held_stays_unmet
                rules_of_schedules_and_of_tasks_are_apart
                a_pair_that_has_gone_is_skipped
                another_expression_begins_anew
                a_schedule_that_comes_back_within_a_day_goes_on
                a_schedule_that_nobody_plans_for_a_day_is_forgotten
                nothing_is_forgotten_while_nobody_plans
                what_was_settled_survives_a_restart
            }
            signals {
                growth_and_work_are_told
                work_that_becomes_ready_is_told
                work_from_elsewhere_is_told
                a_lifted_limit_is_told
                work_that_falls_due_sooner_is_told
                what_is_told_can_be_read
                a_closed_store_refuses_and_keeps_what_it_took
            }
            source_queues {
                the_sources_of_a_tenant_are_one_queue_by_priority_then_age
                the_sources_of_a_tenant_take_one_queues_turns
                sources_of_two_tenants_are_two_queues
                a_held_source_starts_nothing_and_nothing_else_waits
                a_held_collection_starts_nothing_and_nothing_else_waits
                a_collection_has_counters_of_its_own
            }
            sources {
                a_run_is_a_task_without_an_event
                a_pair_has_one_task_at_a_time
                every_end_lets_the_pair_run_anew
                racing_runs_make_one
                an_unknown_pair_is_refused
                a_run_has_its_own_priority_or_the_collections
                a_run_cannot_be_retried_beside_another
                runs_of_a_lost_source_are_missing_until_adopted
                runs_of_a_lost_collection_are_missing_until_adopted
                a_run_ends_though_its_source_has_gone
                adopting_makes_no_second_run_beside_another
                a_pair_has_one_task_whoever_it_belongs_to
                runs_survive_a_restart
                runs_are_found_by_source_and_collection
                a_run_emits_and_logs_like_any_other_task
                a_failed_run_is_tried_again
                the_history_keeps_runs_and_the_journal_does_not_matter
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
            targets {
                a_busy_target_is_left_alone_until_it_said
                a_shorter_wait_does_not_cut_a_longer_one_short
                what_was_scheduled_leaves_the_target_alone_too
                a_target_that_is_well_is_left_alone_no_longer
                other_handlers_go_on
                a_target_that_keeps_failing_is_tried_singly
                one_good_answer_breaks_the_row
                an_attempt_need_not_tell
                a_zombie_has_no_word_on_the_target
                a_targets_state_survives_a_restart
                a_targets_state_outlives_a_registration
                workers_leave_a_target_alone_too
                a_clock_that_ran_ahead_stalls_nobody
            }
            tasks {
                a_task_is_found_by_its_name
                tasks_are_listed_newest_first_page_by_page
                tasks_are_found_by_what_they_are
                tasks_are_found_by_type_and_event
                tasks_are_found_by_why_they_ended
                a_clock_that_steps_back_hides_no_task
                a_listed_task_is_whole
                a_cancelled_task_says_so
                a_retried_task_begins_with_fresh_budgets
                names_of_two_stores_differ
                a_start_finds_what_was_made_after_a_leap
                an_events_tasks_are_found_as_long_as_they_wait
            }
            turns {
                a_handler_gets_turns_by_its_weight
                a_tenant_gets_turns_by_its_weight
                weights_follow_their_registration_and_a_restart
                tenants_come_before_queues
                weights_of_handlers_count_within_a_tenant
                a_tenant_that_slept_has_saved_nothing_up
                a_flood_delays_no_tenant_by_more_than_a_round
                a_crowded_lane_delays_another_by_about_one_task
                a_crowded_key_without_order_delays_another_by_about_one_task
                lanes_share_a_queue_evenly
                keys_without_order_share_a_queue_evenly
                priority_comes_before_the_turns_of_keys
                a_waiting_task_gains_priority_with_age
                ageing_ends_a_starving_tasks_wait
                a_restart_lets_no_key_jump_its_own_line
                a_change_of_ageing_puts_nobody_behind
                keys_take_turns_at_each_priority
            }
            walk {
                a_walk_of_many_steps_agrees_with_the_model
                another_walk_agrees_with_the_model
                a_third_walk_agrees_with_the_model
            }
            why {
                a_task_that_could_run_waits_for_its_turn
                those_ahead_are_counted_by_their_turn
                what_runs_or_has_ended_has_no_gates
                its_time_has_not_come
                its_lane_is_taken
                a_late_task_names_what_it_waits_for
                a_synchronous_task_comes_first
                every_rule_that_holds_it_is_told
                as_many_run_as_may
                its_object_has_as_many_as_it_may
                its_rate_is_used_up
                its_target_is_left_alone
                nobody_lives_who_can_run_it
                no_worker_asks_for_it
                its_handler_is_gone
                a_run_has_its_gates_too
                gates_come_in_order
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
        let listed: BTreeSet<_> = [include_str!("suite.rs"), include_str!("order_suite.rs")]
            .into_iter()
            .flat_map(str::lines)
            .map(str::trim)
            .collect();
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
        assert!(found > 480, "only {found} behaviours were found");
    }
}
