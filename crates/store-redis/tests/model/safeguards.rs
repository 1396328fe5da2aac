//! Safeguards of the outbox. Each can be disabled to show which property it protects.

/// Makes a switch of each.
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
    /// A pop answers with what is in flight already, if there is something.
    idempotent_begin,
    /// A pop is refused to a worker that is not responsible for the object.
    begin_checks_owner,
    /// Whether events are left is looked at in the very step that lets go of the object.
    release_checks_queue,

    /// A commit is refused if somebody else has committed since its transaction began.
    commit_checks_version,
    /// A worker's commit is refused if the worker is not responsible for the object any more.
    commit_checks_owner,
    /// A commit that takes events is refused if what is in flight has another id.
    commit_checks_event_id,
    /// What a commit acknowledges is taken from wherever it is by then: it may have gone into flight, or been taken over.
    acknowledgement_finds_moved_events,
    /// A commit that is sent again finds that it was applied.
    resend_checks_mark,
    /// It does so even if somebody else has committed meanwhile.
    marks_are_kept,
    /// No two authors make the same mark.
    unique_marks,
    /// The id that was given to an event in flight is not used if it has been journaled meanwhile, for another.
    assigned_ids_must_be_new,

    /// Objects that workers without a heartbeat hold are put in line again.
    requeue,
    /// Whoever takes an object whose owner has no heartbeat takes it over, and does not leave it to the owner.
    takeover,
    /// A takeover moves the event that is in flight.
    takeover_moves_event,
    /// A takeover moves its id.
    takeover_moves_id,
    /// A process that is started has a name that no other ever had.
    unique_workers,

    /// A direct emit first serves what is in flight and queued for its object.
    emit_journals_outbox_first,
    /// It serves all of that, however many pieces it takes.
    emit_journals_whole_outbox,
}

impl Safeguards {
    /// All but what is taken out.
    pub(crate) fn without(take_out: impl FnOnce(&mut Self)) -> Self {
        let mut safeguards = Self::all();
        take_out(&mut safeguards);
        safeguards
    }
}
