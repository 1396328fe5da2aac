//! Safeguards of the outbox. Each can be disabled to show which property it protects.

/// Declares a switch for each safeguard.
macro_rules! safeguards {
    ($($(#[$meaning:meta])* $name:ident,)*) => {
        #[derive(Clone, Debug)]
        pub(crate) struct Safeguards {
            $($(#[$meaning])* pub(crate) $name: bool,)*
        }

        impl Safeguards {
            pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];

            pub(crate) fn all() -> Self {
                Self { $($name: true),* }
            }
        }
    };
}

safeguards! {
    /// A repeated begin returns the event that is already in flight.
    idempotent_begin,
    /// A begin is refused to a worker that does not own the object.
    begin_checks_owner,
    /// The release of an object checks in the same step whether events remain.
    release_checks_queue,

    /// A commit is refused if another commit happened since its transaction began.
    commit_checks_version,
    /// A worker's commit is refused if the worker no longer owns the object.
    commit_checks_owner,
    /// A commit that acknowledges events is refused if the event in flight has another id.
    commit_checks_event_id,
    /// A commit removes its acknowledged events from where they are now: they may have been moved in flight or taken over.
    acknowledgement_finds_moved_events,
    /// A resent commit finds that it was already applied.
    resend_checks_commit_id,
    /// A resent commit finds that it was already applied even if other commits happened meanwhile.
    commit_ids_are_kept,
    /// No two authors create the same commit id.
    unique_commit_ids,
    /// The assigned id of an event in flight is not used if another event was journaled with it meanwhile.
    assigned_ids_must_be_new,

    /// The scan for dead workers queues the objects of workers without a heartbeat again.
    requeue,
    /// A worker that claims an object whose owner has no heartbeat takes it over.
    takeover,
    /// A takeover moves the event in flight.
    takeover_moves_event,
    /// A takeover moves the assigned id of the event in flight.
    takeover_moves_id,
    /// Each started process has a worker id that was never used before.
    unique_workers,

    /// A direct emit first journals the events in flight and queued for its object.
    emit_journals_outbox_first,
    /// A direct emit journals the whole outbox of its object first, even if that takes several commits.
    emit_journals_whole_outbox,
}

impl Safeguards {
    /// Returns all safeguards except the disabled ones.
    pub(crate) fn without(disable: impl FnOnce(&mut Self)) -> Self {
        let mut safeguards = Self::all();
        disable(&mut safeguards);
        safeguards
    }
}
