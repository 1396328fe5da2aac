//! The list of all behaviours, and the macro that creates a test for each.

/// Creates a test for every behaviour, in a module for each topic. Takes an expression that returns a
/// [`Harness`](crate::Harness); it is evaluated once for each test.
///
/// The tests run on tokio, which the store's own crate must have among its dev-dependencies.
#[macro_export]
macro_rules! suite {
    ($harness:expr) => {
        $crate::order_suite!($harness);
        $crate::topic_tests! {
            $harness;
            audit {
                audit_entries_are_listed_newest_first_in_pages
                identical_audit_entries_are_all_kept
            }
            claims {
                a_claim_returns_only_tasks_of_the_handlers_it_names
                a_claim_returns_at_most_the_requested_number
                has_more_is_false_if_no_other_task_is_ready
                has_more_is_true_while_prefetched_tasks_remain
                a_claimed_task_is_locked_by_the_claiming_node
                claims_go_by_priority_then_age
                no_task_is_claimed_before_it_is_due
                claims_report_the_due_times_of_retries_and_snoozes
                many_tasks_due_at_once_are_all_claimed
                due_times_survive_a_restart
                scheduling_prefetches_at_most_the_requested_total
                no_task_is_prefetched_before_it_is_due
                prefetched_tasks_are_claimed_first
                prefetched_tasks_survive_a_restart
                fences_strictly_increase
                an_append_can_claim_the_tasks_it_creates
                finishing_an_attempt_can_claim_the_tasks_it_unblocks
                an_append_without_a_claim_claims_nothing
                racing_nodes_never_claim_the_same_task
            }
            concurrency_limits {
                running_tasks_never_exceed_the_concurrency_limit
                concurrency_limit_applies_across_tenants_and_nodes
                concurrency_limit_applies_to_tasks_claimed_by_an_append
                concurrency_limit_applies_to_tasks_claimed_by_a_finish
                concurrency_limit_applies_to_prefetched_tasks
                racing_nodes_respect_the_concurrency_limit
                every_attempt_end_frees_a_concurrency_slot
                concurrency_limit_changes_with_the_registration
                a_new_concurrency_limit_counts_already_running_tasks
                a_handler_at_its_limit_does_not_delay_other_handlers
                prefetch_skips_a_handler_at_its_limit
                prefetching_other_handlers_does_not_starve_a_limited_one
                concurrency_limit_survives_a_restart
                lanes_and_concurrency_limits_both_apply
                concurrency_limit_applies_to_sources_and_pull_workers
                rules_and_concurrency_limits_both_apply
                cancelling_the_task_of_the_next_tenant_in_turn_lets_another_tenant_run
                a_pull_worker_of_one_tenant_does_not_wait_for_other_tenants
            }
            attempt_ends {
                a_successful_task_stores_its_result
                attempts_are_recorded_in_order
                a_task_fails_permanently_after_three_attempts
                snoozing_and_releasing_use_no_retry
                a_failed_attempt_can_request_its_retry_time
                emitted_events_commit_with_the_end_of_the_attempt
                emitted_events_commit_with_failures_and_snoozes
                finishing_with_a_stale_fence_changes_nothing
                an_attempt_can_end_only_once
                an_unknown_task_cannot_be_finished
                valid_and_stale_attempts_in_one_call_get_separate_results
                a_cancelled_attempt_cannot_finish
            }
            fairness {
                a_busy_queue_delays_another_queue_by_at_most_one_round
                one_claim_serves_every_queue
                each_tenant_of_a_handler_has_its_own_queue
                an_idle_queue_earns_no_credit
                two_busy_queues_share_claims_evenly
                prefetch_is_fair_between_queues
                prefetched_tasks_of_one_queue_do_not_delay_another
                a_paused_queue_uses_no_round_robin_turn
                busy_queues_share_claims_evenly_after_a_restart
            }
            idempotency {
                a_repeated_idempotency_key_returns_the_first_receipt
                an_idempotency_key_with_different_content_is_refused
                idempotency_keys_apply_within_one_append
                idempotency_keys_are_scoped_to_a_tenant
                idempotency_keys_survive_a_restart
                racing_emits_with_one_idempotency_key_create_one_event
                old_idempotency_keys_expire_after_a_day
            }
            journal {
                event_ids_strictly_increase
                an_event_id_encodes_its_time
                event_ids_increase_when_the_clock_steps_back
                event_ids_follow_a_clock_jump_by_at_most_an_hour
                prev_is_the_preceding_event_of_the_object
                events_without_an_object_key_have_no_prev
                prev_links_events_of_one_batch_and_of_one_append
                prev_survives_a_restart
                receipts_are_in_the_order_of_the_batches
                an_empty_append_changes_nothing
                an_event_is_stored_exactly_as_emitted
                an_event_value_can_be_large
                prev_links_of_concurrent_emits_do_not_fork
            }
            lanes {
                a_lane_runs_one_task_at_a_time_in_journal_order
                different_lanes_run_concurrently
                lanes_of_different_handlers_are_independent
                tasks_of_an_unordered_handler_run_concurrently
                tasks_without_an_object_key_run_concurrently
                a_retrying_head_blocks_its_lane
                a_snoozed_head_blocks_its_lane
                a_delayed_head_blocks_its_lane
                a_delayed_task_blocks_its_lane_when_it_becomes_head
                a_released_head_keeps_its_lane_position
                priority_orders_lane_heads_but_not_tasks_within_a_lane
                a_permanently_failed_head_unblocks_its_lane
                a_halted_head_blocks_its_lane_until_retried
                a_halted_head_blocks_its_lane_until_cancelled
                a_failed_task_without_a_lane_does_not_halt
                a_cancelled_head_unblocks_its_lane
                cancelling_a_task_behind_the_head_does_not_unblock_the_lane
                a_prefetched_head_blocks_its_lane
                lane_order_survives_a_restart
                prev_sent_is_tracked_per_handler
                a_repeated_attempt_carries_the_same_event_id_and_prev
            }
            out_of_order_tasks {
                retrying_a_failed_task_marks_it_out_of_order
                an_out_of_order_task_goes_to_the_end_of_its_lane
                an_out_of_order_task_waits_for_the_lane_head
                later_tasks_wait_for_an_out_of_order_task
                out_of_order_tasks_run_one_at_a_time_in_the_order_they_were_retried
                every_retry_in_a_batch_gets_its_own_result
                cancelling_an_out_of_order_task_does_not_unblock_the_lane
                an_out_of_order_task_that_fails_again_follows_the_lane_failure_policy
                out_of_order_tasks_of_different_lanes_run_concurrently
                the_out_of_order_flag_survives_a_restart
                a_lane_with_out_of_order_tasks_continues_after_a_restart
            }
            fire_ledger {
                an_empty_fire_ledger_lists_nothing
                fires_are_listed_latest_first_in_pages
                every_fire_outcome_is_stored
                each_schedule_has_its_own_fire_ledger
                fires_expire_with_the_task_history
                pruning_the_journal_deletes_no_fires
            }
            task_lifecycle {
                every_command_on_a_new_task_follows_the_transition_table
                every_command_on_a_scheduled_task_follows_the_transition_table
                every_command_on_a_locked_task_follows_the_transition_table
                every_command_on_a_task_leased_by_a_worker_follows_the_transition_table
                every_command_on_a_done_task_follows_the_transition_table
                every_command_on_a_task_in_error_follows_the_transition_table
                every_command_on_a_missing_task_follows_the_transition_table
            }
            logs {
                log_lines_keep_their_order_across_attempts
                a_log_line_is_stored_as_written
                identical_log_lines_are_all_kept
                log_lines_with_a_stale_fence_are_dropped
                logs_are_read_in_pages
                an_unknown_task_has_no_log
            }
            missing_tasks {
                waiting_tasks_of_an_undefined_handler_become_missing
                paused_and_sync_gated_tasks_of_an_undefined_handler_become_missing
                tasks_of_a_handler_without_a_live_node_stay_new
                a_running_task_finishes_after_its_handler_is_undefined
                a_task_released_after_its_handler_is_undefined_becomes_missing
                missing_tasks_run_again_only_after_adoption
                an_adopted_task_keeps_its_due_time
                missing_tasks_do_not_block_their_lane
                adopted_tasks_of_one_object_run_one_at_a_time
                adopting_missing_tasks_affects_only_the_given_handler
                missing_tasks_are_never_pruned
                a_missing_task_can_be_cancelled
                many_missing_tasks_are_all_adopted
            }
            nodes {
                a_joined_node_is_listed
                announced_node_capabilities_are_stored
                a_nodes_clock_report_is_stored
                the_clock_of_the_store_server_never_goes_back
                a_heartbeat_updates_the_last_heartbeat_time_of_its_node
                running_tasks_are_counted_per_node
                nodes_that_left_or_expired_are_marked_gone
                all_live_nodes_are_listed
            }
            object_retention {
                an_unused_object_is_deleted_and_its_prev_links_restart
                many_unused_objects_are_deleted_in_batches
                an_object_with_an_event_in_the_journal_stays
                objects_with_journaled_events_do_not_lengthen_a_pruning_round
                an_object_with_a_recent_event_stays
                an_object_with_an_unfinished_task_stays
                an_object_is_deleted_once_its_last_task_has_ended
                a_retried_task_keeps_its_object
                a_task_of_a_deleted_object_cannot_be_retried
                objects_of_other_tenants_and_sub_objects_are_kept_separate
                kept_objects_do_not_lengthen_later_pruning_rounds
                many_old_unfinished_tasks_keep_their_objects
                a_task_backlog_does_not_lengthen_a_pruning_round
                few_unused_objects_are_deleted_once_an_hour
                a_pruning_round_continues_after_a_restart
            }
            object_lanes {
                lanes_show_their_head_and_the_number_of_tasks_behind_it
                a_lane_head_equals_its_task_without_attempts
                a_halted_head_is_shown_until_retried_or_cancelled
                empty_lanes_are_not_listed
                lane_heads_follow_lane_position_not_task_age
                each_tenant_has_its_own_lanes
                tasks_without_a_lane_are_not_listed
                existing_lanes_are_listed_after_a_handler_becomes_unordered
                waiting_tasks_of_a_long_lane_are_counted_up_to_a_limit
                at_most_a_fixed_number_of_lanes_is_listed
            }
            schedule_overlaps {
                unfinished_tasks_of_the_last_fire_cause_a_skip
                overlap_policy_queue_fires_beside_unfinished_tasks
                overlap_policy_cancel_cancels_unfinished_tasks
                overlap_policy_cancel_keeps_finished_tasks
                tasks_of_other_schedules_do_not_count_as_overlap
                a_skipped_time_does_not_replace_the_last_fire
                an_unfinished_collection_run_causes_a_skip
                overlap_policy_cancel_cancels_an_unfinished_collection_run
                overlap_policy_queue_reuses_an_unfinished_collection_run
                a_changed_expression_still_detects_the_overlap
            }
            per_key_concurrency {
                running_tasks_of_an_object_never_exceed_the_per_key_limit
                all_tasks_of_limited_keys_run_eventually
                a_backlog_of_one_object_does_not_delay_another
                the_per_key_limit_counts_each_tenant_separately
                delayed_tasks_use_no_per_key_slot
                every_attempt_end_frees_a_per_key_slot
                per_key_slots_survive_a_restart
                the_per_key_limit_changes_with_the_registration
                a_new_per_key_limit_applies_to_the_existing_backlog
                rules_and_the_per_key_limit_both_apply
                adopted_tasks_respect_the_per_key_limit
                tasks_in_lanes_still_run_after_their_handler_becomes_unordered
            }
            pull_workers {
                nodes_do_not_claim_pulled_tasks
                workers_claim_only_pulled_tasks
                a_task_claimed_by_a_worker_has_a_lease_and_can_finish
                a_renewed_lease_does_not_expire
                an_expired_lease_counts_as_a_crash
                a_task_fails_after_three_expired_leases
                a_worker_whose_lease_expired_cannot_renew_or_finish
                renewing_the_lease_of_a_cancelled_task_is_refused
                a_worker_can_claim_for_one_tenant
                a_nodes_death_does_not_affect_a_workers_lease
                an_expired_worker_lease_does_not_affect_a_nodes_task
                a_worker_claim_reports_the_next_due_time
                workers_claim_prefetched_tasks
                lanes_and_rules_apply_to_workers
                workers_can_pull_source_runs
                a_handler_can_switch_between_pull_and_push
                racing_workers_never_claim_the_same_task
                a_worker_gets_tasks_of_all_handlers_it_names
                handler_weights_apply_to_worker_claims
                worker_claims_do_not_count_against_a_handler_switched_to_push
            }
            queue_counters {
                queue_counters_follow_a_task_through_its_states
                sync_gated_and_delayed_tasks_count_as_waiting
                each_tenant_has_its_own_queue
            }
            rate_limits {
                starts_never_exceed_the_rate_limit
                starts_match_the_rate_limiter_over_time
                no_time_window_has_more_starts_than_rate_and_burst
                rate_limit_applies_across_tenants_and_nodes
                rate_limit_applies_to_appended_and_prefetched_tasks
                every_attempt_counts_against_the_rate_limit
                next_due_includes_the_next_start_allowed_by_the_rate_limit
                a_rate_limited_handler_does_not_delay_other_handlers
                rate_limit_state_survives_a_restart
                rate_limit_changes_with_the_registration
                rate_and_concurrency_limits_both_apply
                starts_while_the_clock_ran_ahead_do_not_block_the_handler
            }
            journal_reads {
                reading_an_empty_journal_returns_no_events
                reading_continues_from_the_scanned_position
                reading_stops_at_the_up_to_event_id
                reading_backwards_starts_with_the_newest
                filters_match_the_same_events_as_the_core_filter
                the_scanned_position_advances_past_unmatched_events
                a_cursor_beyond_the_head_reports_a_journal_gap
                an_event_view_includes_its_tasks
                an_object_view_includes_its_events
            }
            registrants {
                several_registrations_are_merged
                a_registration_replaces_only_that_of_its_name
                the_last_changed_definition_of_a_shared_handler_wins
                a_registration_without_a_live_node_expires_after_a_day
                a_registration_with_a_live_node_does_not_expire
                downtime_of_all_nodes_does_not_expire_registrations
            }
            replay {
                a_replay_creates_tasks_for_the_events_routed_to_a_new_handler
                a_repeated_replay_creates_no_duplicate_tasks
                events_already_sent_to_the_handler_are_not_replayed
                a_replay_covers_the_time_a_handler_was_undefined
                a_long_replay_continues_in_batches
                a_replay_starts_at_the_given_event
                replayed_tasks_keep_lane_order
                replayed_tasks_go_behind_waiting_tasks_of_their_lane
                replayed_tasks_run_after_all_others_of_their_queue
                expired_events_are_not_replayed
                unfinished_replayed_tasks_keep_their_events
                a_replayed_task_can_be_retried_and_adopted
                a_replay_for_a_handler_without_matching_routes_creates_nothing
                a_replayed_synchronous_task_blocks_no_other_task
                a_finished_replayed_task_is_found_by_its_event
            }
            rescue {
                every_join_gets_a_new_node_id
                a_node_without_heartbeats_loses_its_tasks
                a_node_with_heartbeats_keeps_its_tasks
                a_rescue_frees_only_the_dead_nodes_tasks
                an_expired_node_can_neither_send_heartbeats_nor_claim
                a_node_can_query_which_of_its_attempts_were_lost
                a_task_fails_after_three_crashes
                tasks_of_a_node_that_left_are_rescued
                no_task_gets_stuck_with_an_expired_or_left_node
                prefetched_tasks_survive_a_nodes_death
                repeated_crashes_halt_the_lane_of_a_halting_handler
            }
            restart {
                acknowledged_events_and_their_tasks_survive_a_restart
                tasks_of_the_old_process_are_rescued
                a_fence_stays_valid_across_a_restart
                every_task_state_survives_a_restart
                an_empty_store_survives_a_restart
            }
            retention {
                the_journal_keeps_at_most_a_tenth_more_than_its_retention_count
                the_journal_is_pruned_by_age
                pruning_recent_data_changes_nothing
                an_unfinished_task_keeps_its_event
                an_objects_last_event_id_outlives_its_events
                the_journal_head_outlives_all_events
                task_history_outlives_the_journal
                task_history_is_pruned_by_count
                task_history_is_pruned_by_age_with_its_logs
                a_task_ended_while_the_clock_ran_ahead_keeps_no_other_from_expiring
                task_history_with_long_logs_is_deleted_completely
                unfinished_tasks_are_never_pruned
                a_failed_task_can_be_retried_until_it_is_pruned
                a_failed_task_cannot_be_retried_without_its_event
            }
            routing {
                parent_routes_come_first_and_route_lists_keep_their_order
                synchronous_tasks_come_before_queued_ones
                a_handler_gets_one_task_however_many_routes_name_it
                a_task_id_contains_its_handler_and_event_type
                routes_are_fixed_when_an_event_is_journaled
                removing_a_route_keeps_existing_tasks
                the_registration_can_be_read_back
                routes_survive_a_restart
                an_event_without_handlers_has_no_tasks
            }
            rules {
                a_paused_or_blocked_handler_starts_no_task
                a_rule_returns_prefetched_tasks_to_new
                running_tasks_of_a_paused_handler_can_finish
                tasks_run_in_order_after_a_pause_is_lifted
                pause_and_block_rules_are_independent
                a_tenant_rule_blocks_only_that_tenant
                a_rule_can_be_set_before_the_first_task
                rules_survive_a_restart
                rules_of_different_scope_kinds_with_one_name_are_independent
                setting_a_rule_again_replaces_it
                a_lane_that_advances_while_paused_stays_paused
            }
            schedules {
                a_new_schedule_starts_when_it_is_first_registered
                a_fire_emits_its_event
                a_fire_creates_its_collection_run
                racing_requests_for_one_planned_time_fire_once
                a_recorded_fire_does_not_change
                planned_times_and_schedules_fire_independently
                fires_are_recorded_as_on_time_late_or_caught_up
                a_skip_request_records_the_planned_time_as_missed
                processed_up_to_never_moves_back
                a_paused_schedule_skips_its_times
                times_skipped_by_a_pause_can_be_caught_up
                missed_times_are_not_caught_up
                caught_up_times_no_longer_count_as_skipped
                catching_up_keeps_later_skipped_times
                schedule_rules_and_collection_rules_are_independent
                a_fire_for_an_unknown_collection_is_skipped
                a_changed_expression_restarts_the_schedule
                a_schedule_registered_again_within_a_day_continues
                a_schedule_not_registered_for_a_day_expires
                schedules_do_not_expire_while_no_node_registers_any
                processed_up_to_survives_a_restart
            }
            notifications {
                listeners_are_notified_of_new_events_and_ready_tasks
                listeners_are_notified_when_waiting_tasks_become_ready
                listeners_are_notified_of_freed_slots_runs_fires_adoptions_and_replays
                listeners_are_notified_when_a_limit_is_removed
                listeners_are_notified_of_earlier_due_times
                notified_events_are_already_readable
                a_closed_store_refuses_calls_and_keeps_its_data
            }
            source_queues {
                all_source_runs_of_a_tenant_are_ordered_by_priority_then_age
                all_sources_of_a_tenant_share_one_round_robin_turn
                sources_of_different_tenants_have_separate_queues
                a_paused_source_starts_nothing_and_delays_no_other
                a_paused_collection_starts_nothing_and_delays_no_other
                each_collection_has_its_own_queue_counters
            }
            sources {
                a_run_is_a_task_without_an_event
                a_collection_has_at_most_one_unfinished_run
                a_collection_can_run_again_after_any_end
                racing_run_requests_create_one_run
                an_unknown_collection_is_refused
                a_run_uses_its_own_priority_or_the_collections
                a_run_cannot_be_retried_while_another_is_unfinished
                runs_of_an_undefined_source_are_missing_until_adopted
                runs_of_an_undefined_collection_are_missing_until_adopted
                a_running_run_can_finish_after_its_source_is_undefined
                adoption_creates_no_second_run_of_a_collection
                a_collection_keeps_its_run_when_its_tenant_changes
                runs_survive_a_restart
                runs_are_found_by_source_and_collection
                a_run_emits_and_logs_like_any_other_task
                a_failed_run_is_retried
                runs_expire_by_task_history_retention_only
            }
            sync_handlers {
                synchronous_tasks_run_in_route_order_before_queued_ones
                a_success_failure_or_snooze_opens_the_sync_gate
                a_released_attempt_does_not_open_the_sync_gate
                a_failed_synchronous_task_is_retried_while_later_tasks_run
                cancelling_a_synchronous_task_opens_the_sync_gate
                cancelling_the_second_synchronous_task_does_not_bypass_the_first
                undefining_a_synchronous_handler_opens_the_sync_gate
                a_crashed_synchronous_task_opens_the_sync_gate
                a_synchronous_task_opens_the_sync_gate_only_once
                an_out_of_order_task_waits_at_the_sync_gate
                a_retried_synchronous_task_does_not_hold_back_later_tasks
                sync_gates_and_lanes_both_apply
                a_sync_gate_does_not_block_other_events
                sync_gate_state_survives_a_restart
            }
            circuit_breakers {
                a_busy_target_gets_no_attempts_until_its_retry_time
                a_shorter_busy_time_does_not_shorten_a_longer_one
                prefetched_tasks_wait_for_a_busy_target
                a_success_ends_the_busy_time
                a_busy_target_does_not_delay_other_handlers
                a_failing_target_opens_the_circuit_and_is_probed_by_one_task
                one_success_resets_the_failure_count
                attempts_without_a_target_report_do_not_change_the_circuit
                stale_attempts_do_not_change_the_circuit
                circuit_state_survives_a_restart
                circuit_state_survives_a_registration
                a_busy_target_blocks_claims_of_pull_workers
                a_busy_time_set_while_the_clock_ran_ahead_does_not_block_the_handler
            }
            tasks {
                a_task_is_read_by_its_id
                tasks_are_listed_newest_first_in_pages
                tasks_are_filtered_by_handler_tenant_key_status_and_time
                tasks_are_filtered_by_event_type_and_event
                tasks_are_filtered_by_error_reason
                time_filters_find_all_tasks_after_the_clock_stepped_back
                a_listed_task_equals_the_single_view_without_attempts
                a_cancelled_task_has_the_reason_cancelled
                a_retried_task_gets_fresh_retry_budgets
                task_ids_of_different_stores_differ
                a_created_from_filter_finds_tasks_created_after_a_clock_jump
                waiting_tasks_are_found_by_an_expired_event
            }
            weighted_round_robin {
                claims_follow_handler_weights
                claims_follow_tenant_weights
                weights_change_with_the_registration_and_survive_a_restart
                tenants_share_equally_however_many_handlers_they_use
                handler_weights_apply_within_one_tenant_only
                an_idle_tenant_earns_no_credit
                a_busy_tenant_delays_others_by_at_most_one_round
                a_long_lane_delays_another_lane_by_about_one_task
                a_busy_unordered_key_delays_another_key_by_about_one_task
                lanes_share_a_queue_evenly
                unordered_keys_share_a_queue_evenly
                priority_comes_before_round_robin_between_keys
                ageing_raises_the_priority_of_waiting_tasks
                low_priority_tasks_starve_only_without_ageing
                tasks_of_a_key_keep_their_order_across_a_restart
                changing_ageing_does_not_reorder_waiting_tasks
                round_robin_between_keys_is_separate_for_each_priority
            }
            random_walk {
                a_random_walk_matches_the_model
                a_second_random_walk_matches_the_model
                a_third_random_walk_matches_the_model
            }
            waiting_reasons {
                a_runnable_task_reports_its_queue_position
                the_queue_position_counts_tasks_by_priority
                running_and_finished_tasks_have_no_gates
                a_delayed_task_reports_its_due_time
                a_task_in_a_lane_reports_the_task_it_waits_for
                an_out_of_order_task_reports_the_task_it_waits_for
                a_queued_task_reports_the_synchronous_task_it_waits_for
                every_rule_blocking_a_task_is_reported
                a_task_reports_the_concurrency_limit_as_its_closed_gate
                a_task_reports_the_per_key_limit_as_its_closed_gate
                a_task_reports_the_rate_limit_as_its_closed_gate
                a_task_reports_a_busy_or_failing_target_as_its_closed_gate
                a_task_reports_that_no_live_node_can_run_it
                a_pulled_task_reports_that_no_pull_worker_polls_for_it
                a_missing_task_reports_its_undefined_handler
                source_runs_report_their_gates
                closed_gates_are_listed_in_the_order_they_are_passed
            }
        }
    };
}

/// Creates the tests of [`suite!`](crate::suite).
#[doc(hidden)]
#[macro_export]
macro_rules! topic_tests {
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

    /// A behaviour that is not listed is never run.
    #[test]
    fn every_behaviour_is_listed_in_the_suite() {
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
