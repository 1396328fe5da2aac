//! The behaviours of several nodes.

/// Makes a test of each behaviour of several nodes. Takes an expression that gives a future of a
/// [`Cluster`](crate::company::Cluster); it is evaluated anew for each test.
#[macro_export]
macro_rules! company {
    ($cluster:expr) => {
        $crate::together! {
            $cluster;
            pruning {
                a_deleted_object_does_not_come_back_from_the_cache_of_another_node
                nodes_that_emit_while_others_prune_keep_chains_whole
                nodes_that_retry_while_others_prune_keep_the_object
            }
            racing {
                racing_emits_are_journaled_once_and_in_order
                racing_claims_never_meet_and_lanes_keep_their_order
                a_limit_holds_over_all_nodes
                a_rate_is_shared_by_all_nodes
                a_rule_set_on_one_holds_on_the_others_at_once
                what_is_registered_on_one_is_seen_by_the_others
                a_node_that_is_far_behind_catches_up
                a_node_that_was_given_up_gets_nothing_and_is_refused
                what_runs_on_one_is_cancelled_on_another
                racing_orders_are_added_once
            }
            orders {
                an_order_that_is_suspended_elsewhere_stays_where_its_step_ends
                what_is_set_on_a_chain_holds_on_all_nodes
                a_changed_chain_is_the_same_on_all_nodes
            }
            walk {
                a_random_walk_of_three_nodes_leaves_everything_in_order
                another_random_walk_of_three_nodes_leaves_everything_in_order
            }
        }
        $crate::in_chorus! {
            $cluster;
            claims {
                priority_decides_then_age
                what_is_scheduled_is_claimed_first
                fences_always_grow
                racing_nodes_never_get_the_same_task
            }
            concurrency {
                a_limit_holds_for_what_is_born_running
                a_limit_holds_for_what_is_scheduled
                every_end_frees_a_place
                lanes_and_limits_both_hold
                racing_nodes_keep_the_limit
                rules_and_limits_both_hold
            }
            lanes {
                a_halted_head_holds_its_lane_until_it_is_retried
                a_retrying_head_holds_its_lane
                a_scheduled_head_holds_its_lane
                cancelling_behind_the_head_moves_nobody_forward
            }
            late {
                late_tasks_run_one_at_a_time_in_the_order_they_were_retried
            }
            object_retention {
                an_unused_object_is_deleted_and_starts_a_new_chain
                an_object_with_an_unfinished_task_stays
                an_object_is_deleted_once_its_last_task_has_ended
                a_retried_task_keeps_its_object
            }
            objects {
                a_halted_head_is_told_until_it_is_retried_or_dropped
            }
            order_ids {
                a_finished_order_is_not_run_again
                a_refusal_says_how_the_order_ended
                a_repeated_batch_gets_its_first_answer
                racing_batches_under_a_key_add_once
                a_repeated_run_gets_its_first_answer
            }
            order_tenants {
                orders_of_two_tenants_share_a_key
                a_command_reaches_the_order_of_its_tenant
            }
            order_walk {
                a_walk_of_orders_agrees_with_its_stream
                another_walk_of_orders_agrees_with_its_stream
            }
            per_key {
                every_way_out_frees_a_place
                no_more_of_an_object_run_than_may
            }
            pull {
                a_cancelled_task_is_told_at_the_next_renewal
                a_lease_that_runs_out_counts_as_a_crash
                a_renewed_lease_runs_on
                racing_workers_never_get_the_same_task
            }
            rates {
                a_rate_is_kept_and_reached_over_time
                no_window_sees_more_starts_than_the_rate_and_its_burst
            }
            rescue {
                a_node_learns_which_attempts_lost_their_task
                nothing_gets_stuck_with_a_node_that_is_gone
                only_the_dead_nodes_tasks_are_freed
            }
            signals {
                a_lifted_limit_is_told
                work_from_elsewhere_is_told
                work_that_becomes_ready_is_told
            }
            sources {
                a_pair_has_one_task_at_a_time
                racing_runs_make_one
            }
            sync_handlers {
                each_end_of_a_first_attempt_lets_the_next_ones_run
                gates_and_lanes_both_hold
            }
            walk {
                a_walk_of_many_steps_agrees_with_the_model
                another_walk_agrees_with_the_model
                a_third_walk_agrees_with_the_model
            }
        }
    };
}

/// Nodes that do things at the same time.
#[doc(hidden)]
#[macro_export]
macro_rules! together {
    ($cluster:expr; $($topic:ident { $($behaviour:ident)+ })+) => {$(
        mod $topic {
            use super::*;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    let cluster = $cluster.await;
                    $crate::company::$topic::$behaviour(&cluster).await;
                }
            )+
        }
    )+};
}

/// What holds for one node, behaviour by behaviour, holds for many.
#[doc(hidden)]
#[macro_export]
macro_rules! in_chorus {
    ($cluster:expr; $($topic:ident { $($behaviour:ident)+ })+) => {
        mod chorus {
            use super::*;

            $(
                mod $topic {
                    use super::*;

                    $(
                        #[tokio::test]
                        async fn $behaviour() {
                            let cluster = $cluster.await;
                            $crate::$topic::$behaviour(&$crate::company::Choir(&cluster)).await;
                            $crate::company::Cluster::audit(&cluster).await;
                        }
                    )+
                }
            )+
        }
    };
}

#[cfg(test)]
mod tests {
    /// A behaviour that nobody runs proves nothing.
    #[test]
    fn every_behaviour_is_listed() {
        let listed: Vec<&str> = include_str!("suite.rs").lines().map(str::trim).collect();
        let mut found = 0;
        for text in [
            include_str!("orders.rs"),
            include_str!("pruning.rs"),
            include_str!("racing.rs"),
            include_str!("walk.rs"),
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
