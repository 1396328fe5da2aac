//! The behaviours of moves to a kind of place and from there.

/// Makes a test of every one of them, in a module a topic. Takes a type that is a [`Lair`](crate::moving::Lair).
#[macro_export]
macro_rules! transfers {
    ($lair:ty) => {
        $crate::transfer_topics! {
            $lair;
            cut {
                every_page_may_be_the_last_before_a_cut
            }
            many {
                many_are_numbered_as_before_here
                many_are_numbered_as_before_elsewhere
            }
            others {
                a_server_that_joins_at_the_target_is_noticed_before_anything_is_mixed
                two_who_move_to_one_place_do_not_mix
                a_source_that_is_written_to_meanwhile_is_not_moved
                what_a_server_has_is_in_use
            }
            refused {
                a_target_that_is_not_empty_says_what_is_in_it
                what_was_moved_is_not_moved_again
                a_move_goes_on_from_the_same_source_only
                what_is_there_in_part_is_not_moved_on
                a_source_that_was_used_in_between_is_moved_anew
                only_what_is_whole_is_verified
                a_note_is_no_part_of_what_is_moved
            }
            travels {
                everything_is_the_same_here_and_goes_on
                everything_is_the_same_when_it_comes_back_and_goes_on
                what_began_here_goes_on_elsewhere
                what_began_here_goes_on_at_other_places_of_its_kind
            }
        }
    };
}

/// The inner half of [`transfers!`](crate::transfers).
#[doc(hidden)]
#[macro_export]
macro_rules! transfer_topics {
    ($lair:ty; $($topic:ident { $($behaviour:ident)+ })+) => {$(
        mod $topic {
            use super::*;

            $(
                #[tokio::test]
                async fn $behaviour() {
                    $crate::moving::$topic::$behaviour::<$lair>().await;
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
    fn every_behaviour_of_moves_is_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/moving");
        let listed: BTreeSet<_> = include_str!("transfers.rs").lines().map(str::trim).collect();
        let mut found = 0;
        for topic in include_str!("mod.rs").lines().filter_map(|line| line.strip_prefix("pub mod ")) {
            let file = folder.join(format!("{}.rs", topic.trim_end_matches(';')));
            let text = std::fs::read_to_string(file).expect("the topic has a file");
            for line in text.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                if let Some(name) = line.strip_suffix("<L: Lair>() {") {
                    assert!(listed.contains(name), "{topic} {name} is not in the suite");
                    found += 1;
                }
            }
        }
        assert!(found > 15, "only {found} behaviours were found");
    }
}
