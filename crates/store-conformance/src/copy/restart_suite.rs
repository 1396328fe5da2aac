//! The list of restart behaviours that are also run with a copy at each restart.

/// Creates a test for every behaviour that survives a restart, for a [`Harness`](crate::Harness) that copies the
/// store to another location at each restart.
#[macro_export]
macro_rules! copy_restart_suite {
    ($harness:expr) => {
        $crate::topic_tests! {
            $harness;
            audit {
                audit_entries_are_listed_newest_first_in_pages
            }
            caused_events {
                an_event_view_includes_all_events_it_caused
                step_events_are_caused_by_the_event_that_created_the_order
            }
            chain_changes {
                an_order_at_a_removed_chain_node_is_stranded
                a_running_step_can_finish_at_a_removed_chain_node
                removing_a_chain_strands_its_orders
                a_stopped_chain_node_stays_stopped_for_its_new_handler
                chains_can_be_read_back_as_registered
            }
            chain_control {
                a_rule_blocks_a_chain
                chain_state_survives_registration_and_restart
            }
            claims {
                due_times_survive_a_restart
                prefetched_tasks_survive_a_restart
                fences_strictly_increase
            }
            concurrency_limits {
                concurrency_limit_survives_a_restart
            }
            engine_events {
                published_engine_events_are_journaled
                changed_configuration_files_are_published
            }
            fairness {
                busy_queues_share_claims_evenly_after_a_restart
            }
            idempotency {
                idempotency_keys_survive_a_restart
            }
            journal {
                event_ids_increase_when_the_clock_steps_back
                prev_survives_a_restart
                an_event_value_can_be_large
            }
            lanes {
                a_halted_head_blocks_its_lane_until_retried
                lane_order_survives_a_restart
                a_repeated_attempt_carries_the_same_event_id_and_prev
            }
            out_of_order_tasks {
                the_out_of_order_flag_survives_a_restart
                a_lane_with_out_of_order_tasks_continues_after_a_restart
            }
            fire_ledger {
                fires_are_listed_latest_first_in_pages
                every_fire_outcome_is_stored
                fires_expire_with_the_task_history
            }
            logs {
                log_lines_keep_their_order_across_attempts
            }
            missing_tasks {
                adopted_tasks_of_one_object_run_one_at_a_time
                missing_tasks_are_never_pruned
            }
            nodes {
                announced_node_capabilities_are_stored
            }
            order_lists {
                order_statistics_count_every_state
                orders_survive_a_restart
                a_running_step_survives_a_restart
                an_order_view_names_the_failure_that_suspended_it
            }
            order_creation {
                an_order_outlives_its_event
                events_create_orders_only_while_the_chain_is_registered
                a_recorded_fire_creates_no_second_order
            }
            order_commands {
                a_suspended_order_does_not_run
                an_order_value_can_be_changed
            }
            order_ids {
                the_id_of_a_finished_order_is_refused
                a_refused_order_id_names_how_the_order_ended
                an_order_that_followed_on_error_counts_as_failed
                a_repeated_order_batch_returns_its_first_receipt
            }
            order_tenants {
                different_tenants_can_use_the_same_order_id
            }
            order_random_walk {
                a_random_order_walk_matches_its_event_stream
                a_second_random_order_walk_matches_its_event_stream
            }
            orders {
                a_planned_order_starts_at_its_time
                generated_order_ids_are_unique
            }
            schedule_overlaps {
                unfinished_tasks_of_the_last_fire_cause_a_skip
            }
            per_key_concurrency {
                per_key_slots_survive_a_restart
            }
            pull_workers {
                a_renewed_lease_does_not_expire
            }
            queue_counters {
                queue_counters_follow_a_task_through_its_states
            }
            rate_limits {
                rate_limit_state_survives_a_restart
            }
            registrants {
                several_registrations_are_merged
                downtime_of_all_nodes_does_not_expire_registrations
            }
            replay {
                a_repeated_replay_creates_no_duplicate_tasks
                a_long_replay_continues_in_batches
                unfinished_replayed_tasks_keep_their_events
            }
            rescue {
                every_join_gets_a_new_node_id
            }
            restart {
                acknowledged_events_and_their_tasks_survive_a_restart
                tasks_of_the_old_process_are_rescued
                a_fence_stays_valid_across_a_restart
                every_task_state_survives_a_restart
                an_empty_store_survives_a_restart
            }
            retention {
                an_unfinished_task_keeps_its_event
                an_objects_last_event_id_outlives_its_events
                the_journal_head_outlives_all_events
            }
            routing {
                the_registration_can_be_read_back
                routes_survive_a_restart
            }
            rules {
                rules_survive_a_restart
                rules_of_different_scope_kinds_with_one_name_are_independent
            }
            schedules {
                a_new_schedule_starts_when_it_is_first_registered
                a_fire_creates_its_collection_run
                a_recorded_fire_does_not_change
                a_paused_schedule_skips_its_times
                caught_up_times_no_longer_count_as_skipped
                processed_up_to_survives_a_restart
            }
            step_retries {
                a_failed_step_is_retried_after_its_delay
            }
            source_queues {
                a_paused_collection_starts_nothing_and_delays_no_other
            }
            sources {
                a_collection_has_at_most_one_unfinished_run
                runs_of_an_undefined_collection_are_missing_until_adopted
                runs_survive_a_restart
            }
            order_steps {
                finished_steps_expire_with_the_task_history
            }
            sync_handlers {
                sync_gate_state_survives_a_restart
            }
            circuit_breakers {
                circuit_state_survives_a_restart
            }
            weighted_round_robin {
                weights_change_with_the_registration_and_survive_a_restart
                ageing_raises_the_priority_of_waiting_tasks
                tasks_of_a_key_keep_their_order_across_a_restart
            }
            random_walk {
                a_random_walk_matches_the_model
                a_second_random_walk_matches_the_model
                a_third_random_walk_matches_the_model
            }
        }
    };
}
