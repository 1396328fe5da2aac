//! Sources and targets that a copy refuses.

use pointsman_store::store_copy::{COPY_PROGRESS_TEXT_NAME, CopyError, TableKind};

use super::{StoreLocation, run_blocking};
use crate::fixture::*;

pub async fn a_non_empty_target_is_refused_with_its_contents<L: StoreLocation>() {
    let source = L::create_with_sample_data(L::OTHER_KIND).await;
    for kind in [L::TESTED_KIND, L::OTHER_KIND] {
        let target = create_store_with_handler::<L>(kind).await;
        let copied = source.copy_to(&target).await;
        assert!(
            matches!(&copied, Err(CopyError::TargetNotEmpty(contents)) if contents.contains("handlers (1)")),
            "{copied:?}"
        );
        assert_copy_succeeds(&source, &L::create_empty(kind).await).await;
    }
}

pub async fn a_finished_copy_is_not_repeated<L: StoreLocation>() {
    let source = L::create_with_sample_data(L::OTHER_KIND).await;
    for kind in [L::TESTED_KIND, L::OTHER_KIND] {
        let target = L::create_empty(kind).await;
        assert_copy_succeeds(&source, &target).await;
        let again = source.copy_to(&target).await;
        assert!(matches!(again, Err(CopyError::AlreadyCopied)), "{again:?}");
    }
}

pub async fn an_interrupted_copy_continues_only_from_the_same_source<L: StoreLocation>() {
    let source = L::create_with_sample_data(L::OTHER_KIND).await;
    let other = create_store_with_handler::<L>(L::OTHER_KIND).await;
    for kind in [L::TESTED_KIND, L::OTHER_KIND] {
        let target = L::create_empty(kind).await;
        copy_three_pages(&source, &target).await;
        let copied = other.copy_to(&target).await;
        assert!(matches!(copied, Err(CopyError::OtherCopyUnfinished)), "{copied:?}");
        assert_copy_succeeds(&source, &target).await;
    }
}

pub async fn an_incomplete_target_cannot_be_a_source<L: StoreLocation>() {
    let source = L::create_with_sample_data(L::OTHER_KIND).await;
    for kind in [L::TESTED_KIND, L::OTHER_KIND] {
        let part = L::create_empty(kind).await;
        copy_three_pages(&source, &part).await;
        let copied = part.copy_to(&L::create_empty(L::OTHER_KIND).await).await;
        assert!(matches!(copied, Err(CopyError::SourceIncomplete)), "{copied:?}");
    }
}

pub async fn a_source_changed_after_an_interruption_must_be_copied_again<L: StoreLocation>() {
    for (from, to) in [(L::OTHER_KIND, L::TESTED_KIND), (L::TESTED_KIND, L::OTHER_KIND)] {
        let (source, target) = (L::create_with_sample_data(from).await, L::create_empty(to).await);
        copy_three_pages(&source, &target).await;
        let store = source.open(START_TIME).await;
        expect_ok(store.join_node("again", START_TIME).await);
        store.close();
        let copied = source.copy_to(&target).await;
        assert!(matches!(copied, Err(CopyError::SourceChangedSinceStart)), "{copied:?}");
        assert_copy_succeeds(&source, &L::create_empty(to).await).await;
    }
}

pub async fn only_complete_copies_can_be_verified<L: StoreLocation>() {
    let source = L::create_with_sample_data(L::OTHER_KIND).await;
    for kind in [L::TESTED_KIND, L::OTHER_KIND] {
        let target = L::create_empty(kind).await;
        copy_three_pages(&source, &target).await;
        assert_verify_refused(&source, &target).await;
        assert_copy_succeeds(&source, &target).await;
        let same = source.verify_copy(&target).await.unwrap_or_else(|error| panic!("{error:?}"));
        assert!(same.differing_tables().is_empty() && same.count_copied_rows() > 100, "{same:?}");
        // All data is there, but the copy is not marked as finished.
        write_progress_note(&target).await;
        assert_verify_refused(&source, &target).await;
    }
}

pub async fn the_progress_note_is_not_part_of_the_copied_data<L: StoreLocation>() {
    assert_eq!(COPY_PROGRESS_TEXT_NAME, "move", "stores exclude the row of this name from the copied data");
    for kind in [L::TESTED_KIND, L::OTHER_KIND] {
        let target = L::create_empty(kind).await;
        write_progress_note(&target).await;
        let (note, texts) = run_blocking(move || {
            let mut target = target.open_target();
            (expect_ok(target.read_copy_progress()), expect_ok(target.count_rows(TableKind::NamedTexts)))
        })
        .await;
        assert_eq!((note.as_deref(), texts), (Some("a note"), Some(0)));
    }
}

/// Creates a store that contains one handler and nothing else.
async fn create_store_with_handler<L: StoreLocation>(kind: L::Kind) -> L {
    let location = L::create_empty(kind).await;
    let store = location.open(START_TIME).await;
    expect_ok(store.register_definitions(RegistrationBuilder::single_handler().build(), START_TIME).await);
    store.close();
    location
}

async fn assert_copy_succeeds<L: StoreLocation>(from: &L, to: &L) {
    let report = from.copy_to(to).await.unwrap_or_else(|error| panic!("{from:?} to {to:?}: {error:?}"));
    assert!(report.differing_tables().is_empty(), "{report:?}");
}

async fn copy_three_pages<L: StoreLocation>(from: &L, to: &L) {
    from.copy_at_most_pages_to(to, 3).await.expect_err("it has more than three pages");
}

/// Writes a progress note, as an unfinished copy does.
async fn write_progress_note<L: StoreLocation>(location: &L) {
    let location = location.clone();
    let written = run_blocking(move || {
        let mut target = location.open_target();
        expect_ok(target.read_copy_progress());
        expect_ok(target.write_rows_and_progress(TableKind::NamedTexts, vec![], "a note"))
    });
    assert!(written.await, "no other copy writes to the target");
}

/// Asserts that a verification refuses an unfinished copy, whether it is given as the target or as the source.
async fn assert_verify_refused<L: StoreLocation>(source: &L, target: &L) {
    let forward = source.verify_copy(target).await;
    assert!(matches!(forward, Err(CopyError::TargetIncomplete)), "{forward:?}");
    let reverse = target.verify_copy(source).await;
    assert!(matches!(reverse, Err(CopyError::SourceIncomplete)), "{reverse:?}");
}
