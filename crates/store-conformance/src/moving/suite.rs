//! The behaviours that survive a move.

/// Makes a test of every behaviour that survives a restart, for a [`Harness`](crate::Harness) that moves the store to another
/// at each.
#[macro_export]
macro_rules! moves {
    ($harness:expr) => {
        $crate::topics! {
            $harness;
            audit {
                deeds_are_read_newest_first_page_by_page
            }
            causes {
                what_an_event_caused_is_shown_with_it
                what_a_step_emits_is_caused_by_the_event_that_made_its_order
            }
            chain_changes {
                an_order_waits_at_a_node_that_is_gone
                a_running_step_ends_though_its_node_is_gone
                a_removed_chain_strands_its_orders
                a_stopped_node_is_stopped_for_its_new_handler_too
                chains_are_read_back_as_registered
            }
            chains {
                a_rule_holds_a_chain
                how_a_chain_is_set_is_kept
            }
            claims {
                due_times_survive_a_restart
                scheduled_tasks_survive_a_restart
                fences_always_grow
            }
            concurrency {
                a_limit_holds_after_a_restart
            }
            engine_events {
                the_engine_tells_of_itself
                changed_files_are_told
            }
            fairness {
                fairness_survives_a_restart
            }
            idempotency {
                keys_survive_a_restart
            }
            journal {
                a_clock_that_steps_back_never_makes_an_id_smaller
                prev_survives_a_restart
                a_value_may_be_large
            }
            lanes {
                a_halted_head_holds_its_lane_until_it_is_retried
                a_lane_survives_a_restart
                a_resend_carries_the_same_id_and_prev
            }
            late {
                lateness_survives_a_restart
                a_lane_with_late_tasks_goes_on_after_a_restart
            }
            ledger {
                rows_are_read_latest_first_page_by_page
                every_outcome_reads_back
                rows_are_forgotten_with_the_history
            }
            logs {
                lines_keep_their_order_over_attempts_and_ends
            }
            missing {
                adopted_tasks_of_one_object_run_one_at_a_time
                missing_tasks_are_never_pruned
            }
            nodes {
                a_node_tells_what_it_can_run
            }
            order_lists {
                statistics_add_up_in_every_state
                orders_survive_a_restart
                a_running_step_survives_a_restart
                an_order_says_what_suspended_it
            }
            order_makers {
                an_order_outlives_its_event
                routes_to_chains_follow_their_registration
                a_settled_time_makes_no_second_order
            }
            order_steering {
                a_suspended_order_waits
                a_value_can_be_changed
            }
            order_ids {
                a_finished_order_is_not_run_again
                a_refusal_says_how_the_order_ended
                an_order_that_took_an_on_error_has_failed
                a_repeated_batch_gets_its_first_answer
            }
            order_tenants {
                orders_of_two_tenants_share_a_key
            }
            order_walk {
                a_walk_of_orders_agrees_with_its_stream
                another_walk_of_orders_agrees_with_its_stream
            }
            orders {
                a_planned_order_begins_at_its_time
                the_store_gives_every_order_an_id_of_its_own
            }
            overlaps {
                an_event_whose_tasks_have_not_ended_is_in_the_way
            }
            per_key {
                places_survive_a_restart
            }
            pull {
                a_renewed_lease_runs_on
            }
            queues {
                counters_follow_a_task_through_its_life
            }
            rates {
                a_pace_survives_a_restart
            }
            registrants {
                what_several_register_adds_up
                a_time_in_which_nobody_looked_does_not_count
            }
            replay {
                a_replay_makes_none_twice
                a_replay_goes_on_where_it_stopped
                an_unfinished_replay_keeps_its_events
            }
            rescue {
                every_start_is_a_new_node
            }
            restart {
                everything_acknowledged_is_there
                what_the_old_process_ran_is_rescued
                a_fence_outlives_a_restart
                every_state_survives
                an_empty_store_survives_too
            }
            retention {
                an_unfinished_task_keeps_its_event
                an_objects_last_id_outlives_its_events
                the_head_outlives_all_events
            }
            routing {
                what_is_registered_can_be_read_back
                routes_survive_a_restart
            }
            rules {
                rules_survive_a_restart
                rules_of_every_place_read_back
            }
            schedules {
                a_new_schedule_stands_where_it_was_planned
                a_firing_makes_its_run
                a_settled_time_stays_as_it_is
                a_held_schedule_skips_its_times
                what_is_made_up_for_is_unmet_no_longer
                what_was_settled_survives_a_restart
            }
            setbacks {
                a_failed_step_is_set_back
            }
            source_queues {
                a_held_collection_starts_nothing_and_nothing_else_waits
            }
            sources {
                a_pair_has_one_task_at_a_time
                runs_of_a_lost_collection_are_missing_until_adopted
                runs_survive_a_restart
            }
            steps {
                the_history_forgets_steps_that_have_ended
            }
            sync_handlers {
                a_gate_survives_a_restart
            }
            targets {
                a_targets_state_survives_a_restart
            }
            turns {
                weights_follow_their_registration_and_a_restart
                a_waiting_task_gains_priority_with_age
                a_restart_lets_no_key_jump_its_own_line
            }
            walk {
                a_walk_of_many_steps_agrees_with_the_model
                another_walk_agrees_with_the_model
                a_third_walk_agrees_with_the_model
            }
        }
    };
}
