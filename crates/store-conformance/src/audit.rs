//! Audit entries: recorded, and listed newest first.

use pointsman_core::store::AuditEntry;

use crate::Harness;
use crate::fixture::*;

fn audit_entry(fixture: &StoreFixture<'_>, n: usize) -> AuditEntry {
    let (actor, action) = ("ops \"the\" second".to_string(), ["pause", "retry", "run"][n % 3].to_string());
    AuditEntry { at: fixture.now, actor, action, target: format!("handler-{n}"), detail: "it's stuck".into() }
}

pub async fn audit_entries_are_listed_newest_first_in_pages(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    assert!(expect_ok(fixture.store.list_audit_entries(None, 10).await).is_empty());
    let mut entries = Vec::new();
    for n in 0..7 {
        entries.push(audit_entry(&fixture, n));
        expect_ok(fixture.store.append_audit_entry(entries[n].clone()).await);
        fixture.advance_clock(1);
    }
    entries.reverse();
    let fixture = fixture.reopen().await;
    let (mut before, mut found, mut numbers) = (None, Vec::new(), Vec::new());
    loop {
        let page = expect_ok(fixture.store.list_audit_entries(before, 3).await);
        assert!(page.len() <= 3);
        let Some((last, _)) = page.last() else { break };
        before = Some(*last);
        for (number, entry) in page {
            numbers.push(-number);
            found.push(entry);
        }
    }
    assert_eq!(found, entries);
    assert_strictly_ascending(&numbers);
}

pub async fn identical_audit_entries_are_all_kept(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    for _ in 0..5 {
        expect_ok(fixture.store.append_audit_entry(audit_entry(&fixture, 1)).await);
    }
    assert_eq!(expect_ok(fixture.store.list_audit_entries(None, 100).await).len(), 5);
}
