-- The numbers of the last expired event and of the last expired archived task.
SELECT dropped, hidden FROM pointsman.sequencer
