//! The list of behaviours of copies between stores of different kinds.

/// Creates a test for each copy behaviour, in a module for each topic. Takes a type that implements
/// [`StoreLocation`](crate::copy::StoreLocation).
#[macro_export]
macro_rules! copy_suite {
    ($location:ty) => {
        $crate::copy_tests! {
            $location;
            interrupted {
                a_copy_interrupted_after_every_page_can_be_completed
            }
            large_store {
                many_events_keep_their_ids_when_copied_to_the_tested_kind
                many_events_keep_their_ids_when_copied_to_the_other_kind
            }
            concurrent_access {
                a_server_aborts_the_copy_if_it_joins_the_target_before_the_first_page
                a_copy_stops_if_another_copy_writes_to_its_target_first
                a_copy_fails_if_its_source_is_written_to_meanwhile
                a_store_with_a_live_server_cannot_be_opened_for_a_copy
            }
            refusals {
                a_non_empty_target_is_refused_with_its_contents
                a_finished_copy_is_not_repeated
                an_interrupted_copy_continues_only_from_the_same_source
                an_incomplete_target_cannot_be_a_source
                a_source_changed_after_an_interruption_must_be_copied_again
                only_complete_copies_can_be_verified
                the_progress_note_is_not_part_of_the_copied_data
            }
            round_trips {
                a_store_copied_to_the_tested_kind_is_equal_and_continues
                a_store_copied_to_the_tested_kind_and_back_is_equal_and_continues
                a_store_copied_to_the_other_kind_is_equal_and_continues
                a_store_copied_within_its_kind_is_equal_and_continues
            }
        }
    };
}

/// Creates the tests of [`copy_suite!`](crate::copy_suite).
#[doc(hidden)]
#[macro_export]
macro_rules! copy_tests {
    ($location:ty; $($topic:ident { $($behaviour:ident)+ })+) => {$(
        mod $topic {
            use super::*;

            $(
                #[tokio::test]
                async fn $behaviour() {
                    $crate::copy::$topic::$behaviour::<$location>().await;
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
    fn every_copy_behaviour_is_listed_in_the_suite() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/copy");
        let listed: BTreeSet<_> = include_str!("copy_suite.rs").lines().map(str::trim).collect();
        let mut found = 0;
        for topic in include_str!("mod.rs").lines().filter_map(|line| line.strip_prefix("pub mod ")) {
            let file = folder.join(format!("{}.rs", topic.trim_end_matches(';')));
            let text = std::fs::read_to_string(file).expect("the topic has a file");
            for line in text.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                if let Some(name) = line.strip_suffix("<L: StoreLocation>() {") {
                    assert!(listed.contains(name), "{topic} {name} is not in the suite");
                    found += 1;
                }
            }
        }
        assert!(found > 15, "only {found} behaviours were found");
    }
}
