//! The list of cluster behaviours.

/// Creates a test for each cluster behaviour. Takes an expression that returns a future of a
/// [`TestCluster`](crate::cluster::TestCluster); it is evaluated once for each test.
#[macro_export]
macro_rules! cluster_suite {
    ($cluster:expr) => {
        $crate::cluster_tests! {
            $cluster;
            pruning {
                a_deleted_object_does_not_come_back_from_the_cache_of_another_node
                emitting_while_another_node_prunes_keeps_prev_links_intact
                retrying_while_another_node_prunes_keeps_the_object
            }
            racing {
                racing_emits_are_journaled_once_and_in_order
                racing_claims_are_disjoint_and_keep_lane_order
                concurrency_limit_applies_to_all_nodes_together
                rate_limit_applies_to_all_nodes_together
                a_rule_set_on_one_node_applies_to_all_immediately
                a_registration_on_one_node_is_visible_to_all
                a_node_with_a_very_stale_cache_catches_up
                an_expired_node_claims_nothing_and_cannot_finish_its_tasks
                a_task_running_on_one_node_can_be_cancelled_on_another
                racing_orders_are_added_once
            }
            orders {
                an_order_suspended_on_another_node_stops_after_its_step
                stopping_a_chain_or_a_chain_node_applies_to_the_whole_cluster
                a_changed_chain_definition_applies_to_the_whole_cluster
            }
            random_walk {
                a_random_walk_of_three_nodes_leaves_the_store_consistent
                a_second_random_walk_of_three_nodes_leaves_the_store_consistent
            }
        }
        $crate::round_robin_tests! {
            $cluster;
            claims {
                claims_go_by_priority_then_age
                prefetched_tasks_are_claimed_first
                fences_strictly_increase
                racing_nodes_never_claim_the_same_task
            }
            concurrency_limits {
                concurrency_limit_applies_to_tasks_claimed_by_an_append
                concurrency_limit_applies_to_prefetched_tasks
                every_attempt_end_frees_a_concurrency_slot
                lanes_and_concurrency_limits_both_apply
                racing_nodes_respect_the_concurrency_limit
                rules_and_concurrency_limits_both_apply
            }
            lanes {
                a_halted_head_blocks_its_lane_until_retried
                a_retrying_head_blocks_its_lane
                a_prefetched_head_blocks_its_lane
                cancelling_a_task_behind_the_head_does_not_unblock_the_lane
            }
            out_of_order_tasks {
                out_of_order_tasks_run_one_at_a_time_in_the_order_they_were_retried
            }
            object_retention {
                an_unused_object_is_deleted_and_its_prev_links_restart
                an_object_with_an_unfinished_task_stays
                an_object_is_deleted_once_its_last_task_has_ended
                a_retried_task_keeps_its_object
            }
            object_lanes {
                a_halted_head_is_shown_until_retried_or_cancelled
            }
            order_ids {
                the_id_of_a_finished_order_is_refused
                a_refused_order_id_names_how_the_order_ended
                a_repeated_order_batch_returns_its_first_receipt
                racing_order_batches_with_one_idempotency_key_are_added_once
                a_repeated_run_request_returns_its_first_run
            }
            order_tenants {
                different_tenants_can_use_the_same_order_id
                a_command_affects_only_the_order_of_its_tenant
            }
            order_random_walk {
                a_random_order_walk_matches_its_event_stream
                a_second_random_order_walk_matches_its_event_stream
            }
            per_key_concurrency {
                every_attempt_end_frees_a_per_key_slot
                running_tasks_of_an_object_never_exceed_the_per_key_limit
            }
            pull_workers {
                renewing_the_lease_of_a_cancelled_task_is_refused
                an_expired_lease_counts_as_a_crash
                a_renewed_lease_does_not_expire
                racing_workers_never_claim_the_same_task
            }
            rate_limits {
                starts_match_the_rate_limiter_over_time
                no_time_window_has_more_starts_than_rate_and_burst
            }
            rescue {
                a_node_can_query_which_of_its_attempts_were_lost
                no_task_gets_stuck_with_an_expired_or_left_node
                a_rescue_frees_only_the_dead_nodes_tasks
            }
            notifications {
                listeners_are_notified_when_a_limit_is_removed
                listeners_are_notified_of_freed_slots_runs_fires_adoptions_and_replays
                listeners_are_notified_when_waiting_tasks_become_ready
            }
            sources {
                a_collection_has_at_most_one_unfinished_run
                racing_run_requests_create_one_run
            }
            sync_handlers {
                a_success_failure_or_snooze_opens_the_sync_gate
                sync_gates_and_lanes_both_apply
            }
            random_walk {
                a_random_walk_matches_the_model
                a_second_random_walk_matches_the_model
                a_third_random_walk_matches_the_model
            }
        }
    };
}

/// Creates tests of nodes that call the store concurrently.
#[doc(hidden)]
#[macro_export]
macro_rules! cluster_tests {
    ($cluster:expr; $($topic:ident { $($behaviour:ident)+ })+) => {$(
        mod $topic {
            use super::*;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    let cluster = $cluster.await;
                    $crate::cluster::$topic::$behaviour(&cluster).await;
                }
            )+
        }
    )+};
}

/// Creates tests that run single-node behaviours on a round-robin store.
#[doc(hidden)]
#[macro_export]
macro_rules! round_robin_tests {
    ($cluster:expr; $($topic:ident { $($behaviour:ident)+ })+) => {
        mod round_robin {
            use super::*;

            $(
                mod $topic {
                    use super::*;

                    $(
                        #[tokio::test]
                        async fn $behaviour() {
                            let cluster = $cluster.await;
                            $crate::$topic::$behaviour(&$crate::cluster::RoundRobinHarness(&cluster)).await;
                            $crate::cluster::TestCluster::assert_consistent(&cluster).await;
                        }
                    )+
                }
            )+
        }
    };
}

#[cfg(test)]
mod tests {
    /// A behaviour that is not listed is never run.
    #[test]
    fn every_behaviour_is_listed_in_the_suite() {
        let listed: Vec<&str> = include_str!("suite.rs").lines().map(str::trim).collect();
        let mut found = 0;
        for text in [
            include_str!("orders.rs"),
            include_str!("pruning.rs"),
            include_str!("racing.rs"),
            include_str!("random_walk.rs"),
        ] {
            for line in text.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                let (name, _) = line.split_once('(').expect("a function has arguments");
                assert!(listed.contains(&name), "{name} is not in the suite");
                found += 1;
            }
        }
        assert!(found > 12, "only {found} behaviours were found");
    }
}
