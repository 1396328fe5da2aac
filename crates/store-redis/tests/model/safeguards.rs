//! What keeps the outbox right. Each can be taken out, to see what it is for.

#[derive(Clone, Debug)]
pub(crate) struct Safeguards {
    /// A pop answers with what is in flight already, if there is something.
    pub(crate) idempotent_pop: bool,
    /// A pop is refused to a worker that is not responsible for the object.
    pub(crate) pop_knows_owner: bool,
    /// Whether events are left is looked at in the very step that lets go of the object.
    pub(crate) release_looks: bool,

    /// A commit is refused if somebody else has committed since its transaction began.
    pub(crate) commit_knows_version: bool,
    /// A worker's commit is refused if the worker is not responsible for the object any more.
    pub(crate) commit_knows_owner: bool,
    /// A worker's commit is refused if what is in flight has another id.
    pub(crate) commit_knows_event_id: bool,
    /// What a commit acknowledges is taken from wherever it is by then: it may have gone into flight, or been taken over.
    pub(crate) acknowledgement_follows: bool,
    /// A commit that is sent again finds that it was applied.
    pub(crate) resend_knows_mark: bool,
    /// It does so even if somebody else has committed meanwhile.
    pub(crate) marks_are_kept: bool,
    /// No two authors make the same mark.
    pub(crate) unique_marks: bool,
    /// The id that was given to an event in flight is not used if it has been journaled meanwhile, for another.
    pub(crate) given_ids_are_new: bool,

    /// Objects that workers without a heartbeat hold are put in line again.
    pub(crate) sweep: bool,
    /// Whoever takes an object whose owner has no heartbeat takes it over, and does not leave it to the owner.
    pub(crate) takeover: bool,
    /// A takeover moves the event that is in flight.
    pub(crate) takeover_moves_event: bool,
    /// A takeover moves its id.
    pub(crate) takeover_moves_id: bool,
    /// A process that is started has a name that no other ever had.
    pub(crate) unique_workers: bool,

    /// A direct emit first serves what is in flight and queued for its object.
    pub(crate) emit_serves_first: bool,
    /// It serves all of that, however many pieces it takes.
    pub(crate) emit_serves_all: bool,
    /// Its commit is refused if what is in flight has another id.
    pub(crate) emit_knows_event_id: bool,
}

impl Safeguards {
    pub(crate) fn all() -> Self {
        Self {
            idempotent_pop: true,
            pop_knows_owner: true,
            release_looks: true,
            commit_knows_version: true,
            commit_knows_owner: true,
            commit_knows_event_id: true,
            acknowledgement_follows: true,
            resend_knows_mark: true,
            marks_are_kept: true,
            unique_marks: true,
            given_ids_are_new: true,
            sweep: true,
            takeover: true,
            takeover_moves_event: true,
            takeover_moves_id: true,
            unique_workers: true,
            emit_serves_first: true,
            emit_serves_all: true,
            emit_knows_event_id: true,
        }
    }

    /// All but what is taken out.
    pub(crate) fn without(take_out: impl FnOnce(&mut Self)) -> Self {
        let mut safeguards = Self::all();
        take_out(&mut safeguards);
        safeguards
    }
}
