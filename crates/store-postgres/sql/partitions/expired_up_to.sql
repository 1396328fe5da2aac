-- Up to where the journal and the history are forgotten.
SELECT dropped, hidden FROM pointsman.sequencer
